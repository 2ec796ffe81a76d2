"""Every benchmark, and docs/benchmarks.md from what they tell.

    python -m benchmarks [NAME ...]

Without names all of them; with names, these sections of the page are measured anew and the others stay as
they were. What was told is kept in docs/benchmarks.json, from which the page is written.
"""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

from benchmarks import report
from launch.home import PROJECT

PAGE = PROJECT / "docs" / "benchmarks.md"
KEPT = PROJECT / "docs" / "benchmarks.json"
COMMANDS: dict[str, list[str]] = {
    "escalation": ["-m", "benchmarks.escalation", "--clients", "1", "--items", "50"],
    "escalation_8": ["-m", "benchmarks.escalation", "--clients", "8", "--items", "96"],
    "approval": ["-m", "benchmarks.approval", "--items", "60"],
    "parked": ["-m", "benchmarks.parked", "--items", "10000"],
    "queue": ["-m", "benchmarks.queue", "1000"],
    "policy": ["-m", "benchmarks.policy"],
    "pages": ["-m", "benchmarks.pages"],
    "idle": ["-m", "benchmarks.idle"],
    "start": ["-m", "benchmarks.start"],
    "capacity": ["-m", "benchmarks.capacity"],
    "requests": ["-m", "benchmarks.requests", "--requests", "60", "--instant", "100"],
    "fairness": ["-m", "benchmarks.fairness", "--calls", "1000", "--times", "40"],
    "sizing": ["-m", "benchmarks.sizing"],
    "growth": ["-m", "benchmarks.growth", "--picture"],
}


def measure(name: str) -> dict[str, Any] | None:
    """The JSON object a benchmark ends with, and the conditions; None, said on stderr, when it failed."""
    print(f"--- {name}", file=sys.stderr, flush=True)
    load = os.getloadavg()[0]
    done = subprocess.run([sys.executable, *COMMANDS[name]], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    print(done.stdout, file=sys.stderr)
    if done.returncode:
        print(f"{name} failed; its section stays as it was", file=sys.stderr)
        return None
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return {**figures, "command": " ".join(["python", *COMMANDS[name]]), "conditions": conditions(load)}


def conditions(load: float) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_before": round(load, 1),
    }


def main() -> None:
    names = sys.argv[1:] or list(COMMANDS)
    unknown = sorted(set(names) - COMMANDS.keys())
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(COMMANDS)}")
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in names:
        figures = measure(name)
        if figures:
            kept[name] = figures
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(report.page(kept))
    print(f"wrote {PAGE.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()
