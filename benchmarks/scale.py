"""What so many cells would carry, by arithmetic from what one machine measured: the figures of docs/scale.md.

    python -m benchmarks.cells | tail -1 > docs/scale.json; python -m benchmarks.scale

Writes what stands between the marks in docs/scale.md. Nothing on the page between them is typed in
(tests/unit/test_scale.py).
"""

import json
import math
from dataclasses import dataclass, replace
from typing import Any

from launch.home import PROJECT

PAGE = PROJECT / "docs" / "scale.md"
KEPT = PROJECT / "docs" / "scale.json"
BEGIN, END = "<!-- computed by benchmarks/scale.py -->", "<!-- until here -->"
DAY = 86_400
ROW = "| {} | {} |"


@dataclass(frozen=True)
class Assumed:
    """What nobody here has measured. Money in dollars a month, for one processor and for one GB of disk."""

    organizations: int = 10_000
    runs_a_day: int = 10_000_000
    peak: float = 3.0  # the busiest hour, as a multiple of the day's mean
    busy: float = 0.6  # the share of a processor's time that is used at most
    server_processors: int = 16  # of one cell's PostgreSQL
    days_kept: int = 90
    processor_price: float = 25.0
    gigabyte_price: float = 0.12
    copies: int = 3  # of the data: a primary, a synchronous standby, a backup


def model(told: dict[str, Any], assumed: Assumed) -> dict[str, float]:
    """The whole, and one cell's part. Grows with the runs a day, but for what each cell costs idle."""
    run, idle = told["side_by_side"]["together_mean"], told["side_by_side"]["idle"]
    stored_kb = told["side_by_side"]["alone"]["stored_kb"]
    peak = assumed.runs_a_day / DAY * assumed.peak
    usable = assumed.server_processors * assumed.busy - idle["server_ms"] / 1000
    of_cell = usable / (run["server_ms"] / 1000)  # runs a second that one PostgreSQL takes
    cells = math.ceil(peak / of_cell)
    each = peak / cells
    servers = cells * assumed.server_processors
    deputies = (peak * run["deputy_ms"] + cells * idle["deputy_ms"]) / 1000 / assumed.busy
    gb_a_day = assumed.runs_a_day * stored_kb / 1024**2
    disk = gb_a_day * assumed.days_kept * assumed.copies
    processors = servers * 2 + deputies  # a standby as large as each server
    return {
        "peak": peak,
        "of_cell": of_cell,
        "cells": cells,
        "organizations_each": assumed.organizations / cells,
        "runs_a_day_each": assumed.runs_a_day / cells,
        "statements_each": each * run["statements"] + idle["statements"],
        "wal_mb_each": each * run["wal_kb"] / 1024,
        "deputy_processors_each": deputies / cells,
        "gb_a_day_each": gb_a_day / cells,
        "tb_each": gb_a_day * assumed.days_kept / cells / 1024,
        "processors": processors,
        "disk_tb": disk / 1024,
        "cost": processors * assumed.processor_price + disk * assumed.gigabyte_price,
    }


def moving(told: dict[str, Any], assumed: Assumed, runs: float) -> tuple[float, float]:
    """Seconds to copy, and of pause, of an organization with so many runs, if both grow with the runs."""
    found = told["moving"]
    share = runs / found["moves"][0]["runs"]
    copying = sum(one["copying"] for one in found["moves"]) / len(found["moves"])
    return copying * share, found["pause_median_s"] * share


def page(told: dict[str, Any], assumed: Assumed) -> str:
    """What stands between the marks."""
    return "\n\n".join([measured(told), paused(told), modelled(told, assumed), what_if(told, assumed)])


def measured(told: dict[str, Any]) -> str:
    """A run's cost alone and beside other cells."""
    found = told["side_by_side"]
    alone, together = found["alone"], found["together"]
    names = {
        "statements": "statements",
        "server_ms": "processor time of PostgreSQL, ms",
        "deputy_ms": "processor time of Deputy's processes, ms",
        "wal_kb": "WAL, KB",
    }
    cells = " | ".join(f"cell {number + 1} of {len(together)}" for number in range(len(together)))
    lines = [f"| of one run | alone | {cells} |", "|---|" + "---|" * (1 + len(together))]
    for name, words in names.items():
        values = " | ".join(f"{one[name]:,.1f}" for one in together)
        lines.append(f"| {words} | {alone[name]:,.1f} | {values} |")
    idle = found["idle"]
    return "\n".join(
        [
            f"{found['each']} runs in each cell, all begun at once ({told['processors']} processors, load "
            f"average {told['load']}):",
            "",
            *lines,
            "",
            f"One run leaves {alone['stored_kb']:.1f} KB in the database. A cell of which nothing is asked "
            f"makes {idle['statements']:.0f} statements a second, which cost {idle['server_ms']:.1f} ms of "
            f"processor time of PostgreSQL and {idle['deputy_ms']:.1f} ms of Deputy's processes.",
        ]
    )


def paused(told: dict[str, Any]) -> str:
    """The moves, one a line."""
    found = told["moving"]
    lines = [
        f"Moves of an organization with {found['runs']:,} ended runs of {found['events']} events, with "
        f"{found['a_second']:g} more begun in it each second until it has gone:",
        "",
        "| rows | copied while it works, s | left, s | pause, s | rows again in the pause | removed, s "
        "| begun meanwhile, all completed |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in found["moves"]:
        lines.append(
            f"| {one['rows']:,.0f} | {one['copying']:.1f} | {one['leaving']:.1f} | {one['pause']:.2f} "
            f"| {one['caught_up']:,.0f} | {one['removing']:.1f} | {one['begun']:,.0f} |"
        )
    lines += [
        "",
        f"The pause was {found['pause_median_s']:.2f} s in the median of {len(found['moves'])} moves and "
        f"{found['pause_most_s']:.2f} s at most.",
    ]
    return "\n".join(lines)


def modelled(told: dict[str, Any], assumed: Assumed) -> str:
    """The whole on paper."""
    found = model(told, assumed)
    average = assumed.runs_a_day / assumed.organizations * assumed.days_kept
    copying, pause = moving(told, assumed, average)
    rows = [
        (f"runs a second at the peak ({assumed.peak:g} times the mean)", f"{found['peak']:,.0f}"),
        (
            f"runs a second that one cell takes ({assumed.server_processors} processors for PostgreSQL, "
            f"{assumed.busy:.0%} used)",
            f"{found['of_cell']:,.0f}",
        ),
        ("**cells**", f"**{found['cells']:.0f}**"),
        ("organizations in each", f"{found['organizations_each']:,.0f}"),
        ("runs a day in each", f"{found['runs_a_day_each']:,.0f}"),
        ("statements a second in each, at the peak", f"{found['statements_each']:,.0f}"),
        ("WAL a second in each, at the peak", f"{found['wal_mb_each']:,.1f} MB"),
        (
            "processors for Deputy's processes in each, at the peak",
            f"{found['deputy_processors_each']:,.0f}",
        ),
        ("written a day in each", f"{found['gb_a_day_each']:,.0f} GB"),
        (f"kept for {assumed.days_kept} days in each", f"{found['tb_each']:,.1f} TB"),
        ("processors in all, with a standby for each PostgreSQL", f"{found['processors']:,.0f}"),
        (f"disk in all, in {assumed.copies} copies", f"{found['disk_tb']:,.0f} TB"),
        (
            f"cost a month, at ${assumed.processor_price:g} a processor and ${assumed.gigabyte_price:g} a GB",
            f"${found['cost']:,.0f}",
        ),
        ("the same for 1,000 runs", f"${found['cost'] / assumed.runs_a_day / 30 * 1000:,.3f}"),
        (f"to copy an average organization ({average:,.0f} runs)", f"{copying:,.0f} s"),
        ("its pause, if that grows as the copy does", f"{pause:,.1f} s"),
    ]
    head = f"| {assumed.organizations:,} organizations, {assumed.runs_a_day:,} runs a day | |"
    return "\n".join([head, "|---|---|", *(ROW.format(*row) for row in rows)])


def what_if(told: dict[str, Any], assumed: Assumed) -> str:
    """How the number of cells follows each assumption."""
    changed: dict[str, dict[str, Any]] = {
        "as assumed": {},
        "twice the runs": {"runs_a_day": assumed.runs_a_day * 2},
        "a peak of 6 times the mean": {"peak": 6.0},
        "8 processors for each PostgreSQL": {"server_processors": 8},
        "64 processors for each PostgreSQL": {"server_processors": 64},
        "30 days kept": {"days_kept": 30},
    }
    lines = ["| if | cells | TB in each | cost a month |", "|---|---|---|---|"]
    for words, values in changed.items():
        found = model(told, replace(assumed, **values))
        lines.append(f"| {words} | {found['cells']:.0f} | {found['tb_each']:,.1f} | ${found['cost']:,.0f} |")
    return "\n".join(lines)


def written(text: str, told: dict[str, Any]) -> str:
    """The page with its figures computed anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{page(told, Assumed())}\n\n{END}{after}"


def main() -> None:
    told = json.loads(KEPT.read_text("utf-8"))
    PAGE.write_text(written(PAGE.read_text("utf-8"), told), "utf-8")


if __name__ == "__main__":
    main()
