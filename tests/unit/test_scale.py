"""docs/scale.md: its figures are computed from what was measured, and by which rules."""

import json

from benchmarks import scale
from benchmarks.scale import Assumed, model

TOLD = {
    "side_by_side": {
        "together_mean": {"statements": 100, "server_ms": 20, "deputy_ms": 40, "wal_kb": 30},
        "alone": {"stored_kb": 10},
        "idle": {"statements": 5, "server_ms": 600, "deputy_ms": 0},
    }
}


def test_the_page_says_what_was_measured_and_computed() -> None:
    text = scale.PAGE.read_text("utf-8")
    assert scale.written(text, json.loads(scale.KEPT.read_text("utf-8"))) == text


def test_cells_follow_from_the_time_that_a_run_takes_of_a_server() -> None:
    assumed = Assumed(runs_a_day=86_400 * 100, peak=3, server_processors=16, busy=0.6, days_kept=1)
    found = model(TOLD, assumed)
    assert found["peak"] == 300
    assert found["of_cell"] == (16 * 0.6 - 0.6) / 0.02  # what an idle cell takes is not there for runs
    assert found["cells"] == 1 and found["statements_each"] == 300 * 100 + 5
    assert model(TOLD, Assumed(runs_a_day=86_400 * 200, peak=3))["cells"] == 2
    assert found["tb_each"] == 86_400 * 100 * 10 / 1024**3
