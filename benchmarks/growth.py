"""Does a step cost more the longer its run is, the more runs there are, or the more is known?

    python -m benchmarks.growth [--picture]

`step`: the median of the transactions around step N of one run. `runs`: an escalation's time with N runs
in the tables. Each is told against its first point, so that 1.0 throughout means: it does not grow.
`--picture` draws docs/images/growth.svg.
"""

import argparse
import json
import os
import sys
from statistics import median
from typing import Any

from benchmarks import harness
from launch.home import PROJECT

STEPS = (10, 100, 500, 1000, 1500, 2000)
RUNS = (0, 10_000, 100_000)
AROUND = 20  # items or steps to each point
PICTURE = PROJECT / "docs" / "images" / "growth.svg"

# Runs that have ended, each with ten events: as many as there would be after that much work.
FILL_RUNS = """
INSERT INTO runs_run (id, organization_id, project_id, user_id, root_id, depth, kind, driver, session_key,
    goal, context, status, budgets, usage, attempt, crashes, last_seq, last_digest, created_at, ended_at)
SELECT 'run_0' || lpad(n::text, 25, '0'), o.id, p.id, u.id, 'run_0' || lpad(n::text, 25, '0'), 0, 'personal',
    'internal', '', 'An old goal', '', 'completed', '{}', '{}', 1, 0, 10, '', now(), now()
FROM generate_series(%s + 1, %s) n, groups_organization o, groups_project p, auth_user u
WHERE u.username = 'mia'
"""
FILL_EVENTS = """
INSERT INTO runs_runevent (organization_id, run_id, seq, type, agent, payload, created_at, digest)
SELECT o.id, 'run_0' || lpad(n::text, 25, '0'), seq, 'message.created', '',
    jsonb_build_object('v', 1, 'role', 'user', 'content', repeat('word ', 40)), now(), repeat('0', 64)
FROM generate_series(%s + 1, %s) n, generate_series(1, 10) seq, groups_organization o
"""


def fill(old: int, new: int) -> None:
    """Bring the number of ended runs from `old` to `new`."""
    from common.db import execute

    execute(FILL_RUNS, [old, new])
    execute(FILL_EVENTS, [old, new])
    execute("VACUUM ANALYZE runs_run, runs_runevent")


def over_runs(url: str) -> list[tuple[int, float]]:
    """(how many runs there are, milliseconds of an escalation)."""
    from benchmarks.escalation_ours import Escalation

    work, points, there = Escalation(url), [], 0
    for count in RUNS:
        if count > there:
            fill(there, count)
            there = count
        points.append((count, _timed(work.item)))
    return points


def over_steps(url: str) -> list[tuple[int, float]]:
    """(which step of one run, milliseconds from one of its model's replies to the next)."""
    from django.conf import settings

    from benchmarks import plays
    from benchmarks.deputy import Deputy

    work = Deputy(url)
    settings.DEPUTY_MODEL = "scripted:long"
    settings.RUN_STEPS, settings.RUN_TOKENS = max(STEPS) + 100, 10**9
    plays.LONG = max(STEPS) + AROUND
    plays.asked_at.clear()
    work.run()
    times = [(b - a) * 1000 for a, b in zip(plays.asked_at, plays.asked_at[1:], strict=False)]
    assert len(times) >= plays.LONG, f"the run ended after {len(times)} steps"
    return [(step, median(times[max(1, step - AROUND) : step + AROUND])) for step in STEPS]


def _timed(item: Any) -> float:
    import time

    times = []
    for _ in range(AROUND * 3):
        started = time.perf_counter()
        item()
        times.append((time.perf_counter() - started) * 1000)
    return median(times[AROUND:])


def told(points: list[tuple[int, float]]) -> dict[str, Any]:
    first = points[0][1]
    return {
        "at": [at for at, _ in points],
        "ms": [round(ms, 2) for _, ms in points],
        "of_first": [round(ms / first, 2) for _, ms in points],
    }


def picture(curves: dict[str, dict[str, Any]]) -> str:
    """Both curves as an SVG: each point's cost as a multiple of the first's."""
    names = {"step": "the Nth step of one run", "runs": "an escalation, among N runs"}
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="720" height="260" font-family="sans-serif" '
        'font-size="12"><rect width="720" height="260" fill="white"/>'
    ]
    for place, (name, curve) in enumerate(curves.items()):
        parts += _plot(40 + 350 * place, names[name], curve)
    return "\n".join([*parts, "</svg>\n"])


def _plot(left: int, title: str, curve: dict[str, Any]) -> list[str]:
    top, height, width = 40, 170, 290
    most = max(2.0, *curve["of_first"]) * 1.1
    gap = width / max(1, len(curve["at"]) - 1)
    spots = [
        (left + gap * i, top + height - height * value / most) for i, value in enumerate(curve["of_first"])
    ]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in spots)
    base = top + height
    one = base - height / most
    parts = [
        f'<text x="{left}" y="24" font-size="14">{title}</text>',
        f'<path d="M{left} {top}V{base}H{left + width}" fill="none" stroke="#888"/>',
        f'<path d="M{left} {one:.0f}H{left + width}" stroke="#ccc" stroke-dasharray="4"/>',
        f'<polyline points="{line}" fill="none" stroke="#2563eb" stroke-width="2"/>',
    ]
    for (x, y), at, ms in zip(spots, curve["at"], curve["ms"], strict=True):
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="#2563eb"/>')
        parts.append(f'<text x="{x:.0f}" y="{y - 8:.0f}" text-anchor="middle">{ms:g} ms</text>')
        parts.append(f'<text x="{x:.0f}" y="{base + 18}" text-anchor="middle">{at:,}</text>')
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth")
    parser.add_argument("--picture", action="store_true")
    options = parser.parse_args()
    with harness.server() as admin_url:
        url = harness.database(admin_url, "growth")
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}
        from benchmarks import deputy

        deputy.prepare(url)
        curves = {"runs": told(over_runs(url)), "step": told(over_steps(url))}
        from django.db import connections

        connections.close_all()
    for name, curve in curves.items():
        print(
            f"{name:<6}"
            + "  ".join(f"{at:,}: {ms} ms" for at, ms in zip(curve["at"], curve["ms"], strict=True))
        )
    if options.picture:
        PICTURE.write_text(picture(curves))
    print(json.dumps({"bench": "growth", **curves}))


if __name__ == "__main__":
    sys.exit(main())
