"""The benchmarks' harness on made-up workloads: what it tells, never how fast anything is."""

import json
from types import SimpleNamespace

import pytest

from benchmarks import client, harness, parked, report
from benchmarks.harness import Figures, Measured


class FakeClient:
    """Counts what it is asked to do."""

    def __init__(self) -> None:
        self.items = 0
        self.statements: list[str] = []
        self.closed = False

    def item(self) -> None:
        self.items += 1

    def execute(self, sql: str) -> None:
        self.statements.append(sql)

    def close(self) -> None:
        self.closed = True


def test_a_client_warms_up_waits_for_the_word_and_tells_each_items_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeClient()
    heard: list[int] = []
    monkeypatch.setattr("sys.argv", ["client", "work", "postgresql://here", "3", "5"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(readline=lambda: heard.append(fake.items) or "go\n"))
    monkeypatch.setattr("sys.stdout", client.sys.stdout)
    client.serve(lambda url: None, work=lambda url: fake)
    ready, told = capsys.readouterr().out.splitlines()
    result = json.loads(told)
    assert ready == "ready"
    assert heard == [3, 8]  # warm; done
    assert fake.items == 8
    assert fake.statements == [client.FLUSH]
    assert fake.closed
    assert len(result["times_ms"]) == 5
    assert result["threads"] == 0
    assert result["ended"] - result["started"] == pytest.approx(sum(result["times_ms"]) / 1000)


def test_a_client_whose_harness_is_gone_does_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeClient()
    monkeypatch.setattr("sys.argv", ["client", "work", "postgresql://here", "3", "5"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(readline=lambda: ""))
    monkeypatch.setattr("sys.stdout", client.sys.stdout)
    client.serve(lambda url: None, work=lambda url: fake)
    assert fake.items == 3


def test_percentiles_are_values_that_were_measured() -> None:
    ordered = [float(n) for n in range(1, 101)]
    assert harness.percentile(ordered, 0.5) == 50
    assert harness.percentile(ordered, 0.95) == 95
    assert harness.percentile([7.0], 0.95) == 7


def test_figures_are_per_item_over_all_clients() -> None:
    results = [
        {"started": 10.0, "ended": 11.0, "times_ms": [1.0, 3.0]},
        {"started": 10.5, "ended": 12.0, "times_ms": [2.0, 4.0]},
    ]
    assert harness.figures(results, commits=40, wal_bytes=10_000) == Figures(2.0, 4.0, 10.0, 2500.0, 2.0)


def measured(*p50s: float) -> Measured:
    return Measured.of([Figures(p50, p50 * 2, 8.0, 6000.0, 1000 / p50) for p50 in p50s])


def test_the_median_of_the_repetitions_is_told_with_their_spread() -> None:
    one = measured(5.0, 4.0, 8.0)
    assert one.figures.p50_ms == 5.0
    assert one.spread() == pytest.approx(0.8)


def test_the_last_line_is_one_json_object_with_everybody_in_their_place() -> None:
    told = {
        name: measured(p50).figures.told() for name, p50 in (("floor", 4), ("ours", 8), ("langgraph", 16))
    }
    line = harness.last_line("escalation", told, clients_8=harness.by_role(told))
    assert "\n" not in line
    read = json.loads(line)
    assert read.keys() == {"bench", "ours", "floor", "peers", "clients_8"}
    assert read["bench"] == "escalation"
    assert read["peers"].keys() == {"langgraph"}
    for figures in (read["ours"], read["floor"], read["peers"]["langgraph"]):
        assert {"p50_ms", "p95_ms", "commits", "wal_bytes"} <= figures.keys()
    assert read["ours"]["p50_ms"] == 8


def test_who_was_left_out_is_null_or_missing() -> None:
    read = json.loads(harness.last_line("escalation", {"floor": measured(4).figures.told()}))
    assert read["ours"] is None
    assert read["peers"] == {}


def test_the_table_sets_everybody_against_the_floor() -> None:
    lines = harness.table({"floor": measured(4.0), "ours": measured(6.0)}, clients=8).splitlines()
    assert lines[0].startswith("8 clients")
    assert lines[1].split()[6] == "1.00"
    assert lines[2].split()[6] == "1.50"


def test_a_subject_that_fails_is_left_out_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepare(subject: harness.Subject, url: str) -> None:
        if subject.name == "broken":
            raise harness.Failed("no such module")

    monkeypatch.setattr(harness, "database", lambda admin_url, name: name)
    monkeypatch.setattr(harness, "prepare", prepare)
    monkeypatch.setattr(harness, "repeat", lambda *_: harness.Repetition(Figures(1, 2, 3, 4, 5), 0, 0, 0))
    subjects = [harness.Subject("broken", "x"), harness.Subject("floor", "y")]
    assert harness.measure(subjects, "admin", 1, 10, 3).keys() == {"floor"}
    assert "broken is left out: no such module" in capsys.readouterr().err


def test_parked_runs_are_told_in_bytes_each_and_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = iter([{"run": 8192, "wait": 8192}, {"run": 8192 + 50_000, "wait": 8192 + 10_000, "queue": 20}])
    monkeypatch.setattr(harness, "database", lambda *_: "a database")
    monkeypatch.setattr(harness, "prepare", lambda *_: None)
    monkeypatch.setattr(
        harness, "repeat", lambda *_, **__: harness.Repetition(Figures(1, 2, 3, 4, 5), 0, 1, 200)
    )
    monkeypatch.setattr(parked, "sizes", lambda url: next(looked))
    told = parked.look(harness.Subject("ours", "x"), "admin", 100, 3)
    assert told["bytes_per_run"] == 600
    assert told["bytes_by_table"] == {"run": 500, "wait": 100}
    assert (told["threads_held"], told["connections_held"], told["process_kb_per_run"]) == (1, 0, 2.0)
    assert {"p50_ms", "p95_ms", "commits", "wal_bytes"} <= told.keys()
    assert "run 500, wait 100" in parked.lines("ours", told)


def test_a_client_that_dies_is_told_with_its_last_words() -> None:
    subject = harness.Subject("broken", "benchmarks.no_such_module")
    with pytest.raises(harness.Failed, match="no_such_module"):
        harness.prepare(subject, "postgresql://nowhere/x")
    with (
        pytest.raises(harness.Failed, match="no_such_module"),
        harness._client(subject, "x", 1, 1) as process,
    ):
        process.expect()


def test_the_page_has_each_benchmark_in_its_place_with_its_command_and_conditions() -> None:
    figures = {"p50_ms": 8.0, "p95_ms": 9.0, "per_second": 100.0, "commits": 7.0, "wal_bytes": 36_000.0}
    told = {
        "ours": figures,
        "floor": {**figures, "p50_ms": 4.0},
        "peers": {"langgraph": {**figures, "spread": 0.25}},
        "command": "python -m benchmarks.escalation",
        "conditions": {"at": "now", "machine": "Linux", "cores": 2, "python": "3.11", "load_before": 6.2},
    }
    page = report.page({"escalation": told})
    assert "| **Deputy** | 8.0 | 9.0 | 100 | 7.0 | 36.0 | 2.0 | – |" in page
    assert "| langgraph | 8.0 | 9.0 | 100 | 7.0 | 36.0 | 2.0 | 25% |" in page
    assert "`python -m benchmarks.escalation`, now, Linux, 2 cores" in page
    assert "load average before it began: 6.2" in page
    assert page.count("*Not measured here.*") == len(report.TABLES) - 1
    assert "<!--" not in page
