"""Whether docs/operating.md's formula for workers and carriers holds: a steady load, and what it took.

    python -m benchmarks.sizing [--per-minute 600 240] [--kind single escalation] [--seconds 3] [--minutes 2]
        [--worker-ms 10] [--carrier-ms 6]

For each load: `make run` with as many workers and carriers as the formula says from the processor time of a
call (`worker_ms`, `carrier_ms`: of benchmarks.capacity), runs started through the action at even intervals.
Told beside what the formula foresees: calls under way, the share of a worker's and a carrier's time that was
used, and how long runs waited for their first step. The last line is JSON.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import threading
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import harness
from benchmarks.capacity import CALLS, Installation, ask, model_server, told_by

BUSY = 0.6  # the share of its time that a worker or a carrier is to be used at most
ROOM = 2000  # CARRIER_CALLS


def formula(
    per_minute: float, calls: int, seconds: float, worker_ms: float, carrier_ms: float
) -> dict[str, Any]:
    """What docs/operating.md says about a load."""
    per_second = per_minute / 60 * calls
    flying = per_second * seconds
    return {
        "calls_under_way": round(flying, 1),
        "workers": max(1, math.ceil(per_second * worker_ms / 1000 / BUSY)),
        "carriers": max(1, math.ceil(flying / ROOM), math.ceil(per_second * carrier_ms / 1000 / BUSY)),
        "processors_of_workers": round(per_second * worker_ms / 1000, 2),
        "processors_of_carriers": round(per_second * carrier_ms / 1000, 2),
    }


def load(
    admin_url: str, model_url: str, kind: str, per_minute: int, minutes: float, said: dict[str, Any]
) -> Any:
    """The load on a database and an installation of its own."""
    url = harness.database(admin_url, f"{kind}_{per_minute}")
    module = [sys.executable, "-m", "benchmarks.capacity_ours"]
    told_by([*module, "prepare", url], harness.environment(url))
    with tempfile.TemporaryDirectory() as home:
        many = {"WORKERS": str(said["workers"]), "CARRIERS": str(said["carriers"])}
        installation = Installation(url, model_url, Path(home), **many)
        flying, stop = [], threading.Event()

        def watch() -> None:
            while not stop.wait(0.2):
                flying.append(ask(model_url, "/stats")["now"])

        try:
            ask(model_url, "/reset")
            cpu, carriers = installation.processor_seconds(), installation.carrier_seconds()
            watcher = threading.Thread(target=watch)
            watcher.start()
            environment = installation.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
            told = told_by([*module, "steady", kind, str(per_minute), str(minutes)], environment)
            stop.set()
            watcher.join()
            carried = installation.carrier_seconds() - carriers
            spent = installation.processor_seconds() - cpu - carried
        finally:
            stop.set()
            installation.stop()
    wall = told["wall_s"]
    middle = flying[len(flying) // 4 : -len(flying) // 4]
    return {
        "calls_under_way": round(mean(middle), 1),
        "processors_of_workers": round(spent / wall, 2),
        "processors_of_carriers": round(carried / wall, 2),
        "first_step_p50_ms": told["p50_ms"],
        "first_step_p95_ms": told["p95_ms"],
        "runs": told["runs"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--per-minute", type=int, nargs="+", default=[600, 240])
    parser.add_argument("--kind", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--worker-ms", type=float, default=10.0)
    parser.add_argument("--carrier-ms", type=float, default=6.0)
    asked = parser.parse_args()
    results = []
    with harness.server() as admin_url, model_server(asked.seconds) as model_url:
        for kind, per_minute in zip(asked.kind, asked.per_minute, strict=True):
            said = formula(per_minute, CALLS[kind], asked.seconds, asked.worker_ms, asked.carrier_ms)
            found = load(admin_url, model_url, kind, per_minute, asked.minutes, said)
            results.append({"kind": kind, "per_minute": per_minute, "formula": said, "measured": found})
            print(json.dumps(results[-1]), flush=True)
    print(f"load average: {os.getloadavg()[0]:.1f}")
    print(json.dumps({"bench": "sizing", "seconds": asked.seconds, "results": results}))


if __name__ == "__main__":
    main()
