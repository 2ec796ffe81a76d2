"""docs/benchmarks.md from what the benchmarks told, and the words between the tables from notes.md."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import FLOOR, OURS

NOTES = Path(__file__).with_name("notes.md")
MARK = re.compile(r"<!-- (\w+) -->")


def page(kept: Mapping[str, Any]) -> str:
    """The notes, with each benchmark's table in the place of its mark."""
    return MARK.sub(lambda mark: section(mark[1], kept.get(mark[1])), NOTES.read_text())


def section(name: str, told: Mapping[str, Any] | None) -> str:
    if told is None:
        return "*Not measured here.*"
    lines = TABLES[name](told)
    at = told["conditions"]
    where = (
        f"`{told['command']}`, {at['at']}, {at['machine']}, {at['cores']} cores, Python {at['python']}; load "
        f"average before it began: {at['load_before']}."
    )
    return "\n".join([*lines, "", where])


def side_by_side(told: Mapping[str, Any]) -> list[str]:
    """Floor, ours and peers, each with its p50 against the floor's."""
    floor = told.get(FLOOR)
    head = ["", "p50 ms", "p95 ms", "per s", "commits", "WAL KB", "p50 ÷ floor", "spread"]
    rows = [("**Deputy**", told.get(OURS)), ("bare SQL", floor), *told["peers"].items()]
    lines = [row(head), row([":--"] + ["--:"] * (len(head) - 1))]
    for name, one in rows:
        if one:
            ratio = f"{one['p50_ms'] / floor['p50_ms']:.1f}" if floor else "–"
            cells = [f"{one['p50_ms']:.1f}", f"{one['p95_ms']:.1f}", f"{one['per_second']:.0f}"]
            cells += [f"{one['commits']:.1f}", f"{one['wal_bytes'] / 1000:.1f}", ratio]
            lines.append(row([name, *cells, f"{one['spread']:.0%}" if "spread" in one else "–"]))
    return lines


def approval(told: Mapping[str, Any]) -> list[str]:
    lines = ["The process that decides goes on:", "", *side_by_side(told)]
    return [*lines, "", "A worker goes on, woken through the queue:", "", *side_by_side(told["queue"])]


def parked(told: Mapping[str, Any]) -> list[str]:
    lines = [row(["", "bytes a run", "of which"]), row([":--", "--:", ":--"])]
    for name, one in (("**Deputy**", told.get(OURS)), ("bare SQL", told.get(FLOOR)), *told["peers"].items()):
        if one:
            tables = sorted(one["bytes_by_table"].items(), key=lambda item: -item[1])[:5]
            shown = ", ".join(f"{table} {size:,}" for table, size in tables)
            lines.append(row([name, f"{one['bytes_per_run']:,}", shown]))
    return [*lines, "", "Waking one, from the answer to the run's end:", "", *side_by_side(told)]


def growth(told: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, words in (("step", "The Nth step of one run"), ("runs", "An escalation, among N runs")):
        curve = told[name]
        lines += [
            row([words, *(f"{at:,}" for at in curve["at"])]),
            row([":--"] + ["--:"] * len(curve["at"])),
            row(["ms", *map(str, curve["ms"])]),
            row(["of the first", *map(str, curve["of_first"])]),
            "",
        ]
    return [*lines, "![What a step and a run cost as there are more](images/growth.svg)"]


def pages(told: Mapping[str, Any]) -> list[str]:
    head = ["page", "statements among 100 runs", f"among {told['runs']:,}", "p95 ms", "the statements alone"]
    lines = [row(head), row([":--"] + ["--:"] * (len(head) - 1))]
    for name, one in told["pages"].items():
        few, many = one["queries_among_few"], one["queries"]
        lines.append(row([name, str(few), str(many), str(one["p95_ms"]), str(one["statements_p95_ms"])]))
    return lines


def idle(told: Mapping[str, Any]) -> list[str]:
    return [f"{told['per_second']} transactions a second."]


def start(told: Mapping[str, Any]) -> list[str]:
    lines = [row(["seconds until", "the first time", "from then on"]), row([":--", "--:", "--:"])]
    words = {
        "answers": "it answers",
        "ready": "it is ready",
        "working": "workers live",
        "stopped": "it has stopped",
    }
    return lines + [row([words[name], str(told["first"][name]), str(told["second"][name])]) for name in words]


def policy(told: Mapping[str, Any]) -> list[str]:
    rows = [("**Deputy**", told[OURS]), ("plain Python", told[FLOOR]), *told["peers"].items()]
    lines = [row([f"{told['rules']:,} rules", "p50 µs", "p95 µs"]), row([":--", "--:", "--:"])]
    for name, one in rows:
        lines.append(row([name, f"{one['p50_ms'] * 1000:.1f}", f"{one['p95_ms'] * 1000:.1f}"]))
    return lines


def capacity(told: Mapping[str, Any]) -> list[str]:
    head = ["runs at once", "", "wall s", "calls per s", "processor ms a call", "KB a call in flight"]
    head += ["most in flight", "p50 gap ms", "p95 gap ms"]
    lines = [row(head), row([":--", ":--"] + ["--:"] * (len(head) - 2))]
    for result in told["results"]:
        for name, one in (("**Deputy**", result[OURS]), *result["peers"].items()):
            gaps = one["gap_ms"]
            cells = [
                f"{result['runs']:,}, {result['kind']}",
                name,
                str(one["wall_s"]),
                str(one["calls_per_s"]),
            ]
            cells += [str(one["cpu_ms_per_call"]), str(one["kb_per_call"]), str(one["peak_in_flight"])]
            lines.append(row([*cells, str(gaps.get("50", "–")), str(gaps.get("95", "–"))]))
    return lines


def requests(told: Mapping[str, Any]) -> list[str]:
    head = ["", "statements", "**Deputy** p50 ms", "p95 ms", "processor ms", "bare views p50 ms", "p95 ms"]
    lines = [row([*head, "processor ms"]), row([":--"] + ["--:"] * len(head))]
    for name, words in (("get", "`GET /api/runs/{id}/`"), ("post", "`POST /api/runs/`")):
        cells = [words, str(told["statements"][name])]
        for one in (told[OURS], told[FLOOR]):
            cells += [str(one[f"{name}_{figure}_ms"]) for figure in ("p50", "p95", "cpu")]
        lines.append(row(cells))
    ours, floor = told[OURS]["posts_per_s"], told[FLOOR]["posts_per_s"]
    lines += ["", f"Eight clients: {ours:.0f} posts a second, the bare views {floor:.0f}."]
    return [*lines, f"{told['instant_runs']} posted runs of the embedded model: {told['instant_s']} s."]


NOTICED = {
    "run_asks": "a run of B asks its model",
    "run_asks_same_model": "the same, where it is the model of A's calls",
    "mail_arrives": "an approved mail of B arrives",
    "cancel_closes": "a cancelled run of A lets go of its connection",
    "page": "the admin's list of runs",
    "word_comes": "a streamed word of B's model reaches who follows",
}


def fairness(told: Mapping[str, Any]) -> list[str]:
    head = ["ms", "without load, p50", "p95", "under load, p50", "p95"]
    lines = [row(head), row([":--"] + ["--:"] * (len(head) - 1))]
    for name, words in NOTICED.items():
        pair = [told["floor"].get(name, {}), told[OURS][name]]
        lines.append(row([words, *(str(one.get(key, "–")) for one in pair for key in ("p50_ms", "p95_ms"))]))
    burden, alone, beside = told["burden"], told["beside_nothing"], told["beside_hanging"]
    return [
        *lines,
        "",
        f"The load: {burden['under_way']:,} calls of A under way and {burden['queued']:,} queued. Thirty"
        f" runs of B at once: {alone['all_ms']:.0f} ms with nothing beside them (p50 {alone['p50_ms']:.0f}), "
        f"{beside['all_ms']:.0f} ms beside models and receivers that hang (p50 {beside['p50_ms']:.0f}).",
    ]


def sizing(told: Mapping[str, Any]) -> list[str]:
    head = ["load", "workers, carriers", "calls under way: said", "found", "processors of workers: said"]
    head += ["found", "of carriers: said", "found", "first step p50 ms", "p95 ms"]
    lines = [row(head), row([":--", ":--"] + ["--:"] * (len(head) - 2))]
    for one in told["results"]:
        said, found = one["formula"], one["measured"]
        cells = [f"{one['per_minute']} a minute, {one['kind']}", f"{said['workers']}, {said['carriers']}"]
        for name in ("calls_under_way", "processors_of_workers", "processors_of_carriers"):
            cells += [str(said[name]), str(found[name])]
        lines.append(row([*cells, str(found["first_step_p50_ms"]), str(found["first_step_p95_ms"])]))
    return lines


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


TABLES = {
    "escalation": side_by_side,
    "escalation_8": side_by_side,
    "approval": approval,
    "parked": parked,
    "queue": side_by_side,
    "policy": policy,
    "pages": pages,
    "idle": idle,
    "start": start,
    "capacity": capacity,
    "requests": requests,
    "fairness": fairness,
    "sizing": sizing,
    "growth": growth,
}
