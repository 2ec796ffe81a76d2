"""What the API itself costs: `GET /api/runs/{id}/` and `POST /api/runs/`, beside bare views doing the same.

    python -m benchmarks.requests [--requests 200] [--repetitions 3]

Web processes as `make run` starts them, without workers, on a database of their own; the floor is a bare
Django view under the same server that does the same statements (benchmarks/requests_floor.py). The subjects
take turns. Told for each: p50 and p95 of one client, requests a second of eight, and the web processes'
processor time of a request. Then 200 runs of the embedded model are posted to a whole `make run`: seconds
from the first post to the last run's end. The last line is JSON.
"""

import argparse
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from benchmarks import harness
from benchmarks.capacity import Installation, processor_seconds, told_by
from benchmarks.start import reached
from launch.home import PROJECT, WEB_PROCESSES
from launch.run import WEB_COMMAND
from tests.ports import free_port

CLIENTS = 8
INSTANT = 200  # runs
PATIENCE = 300  # seconds
GOAL = {"project": "supply", "goal": "What is this project about?"}


class Web:
    """gunicorn with an application of ours, and what its requests cost."""

    def __init__(self, url: str, application: str, path: str, more: dict[str, str]) -> None:
        self.port = free_port()
        command = [application if word == "config.asgi:application" else word for word in WEB_COMMAND]
        command += ["--bind", f"127.0.0.1:{self.port}", "--workers", str(WEB_PROCESSES)]
        self.process = subprocess.Popen(
            [sys.executable, *command], cwd=PROJECT, env=harness.environment(url) | more
        )
        reached(self.port, path, self.process)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@contextlib.contextmanager
def web(url: str, application: str, path: str, more: dict[str, str]) -> Iterator[Web]:
    served = Web(url, application, path, more)
    try:
        yield served
    finally:
        served.stop()


class Client:
    """One connection that is kept."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def get(self, run_id: str) -> Any:
        return self.ask("GET", f"/api/runs/{run_id}/")

    def post(self) -> Any:
        return self.ask("POST", "/api/runs/", json.dumps(GOAL))

    def ask(self, method: str, path: str, body: str | None = None) -> Any:
        self.connection.request(method, path, body, self.headers)
        answer = self.connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise harness.Failed(f"{method} {path}: {answer.status} {said[:200]!r}")
        return json.loads(said)


def timed(act: Callable[[], Any], count: int) -> list[float]:
    """Milliseconds of each."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return times


def measure(served: Web, token: str, run_id: str, count: int) -> dict[str, float]:
    """One repetition: gets and posts by one client, then posts by several at once."""
    one = Client(served.port, token)
    found: dict[str, float] = {}
    for name, act in (("get", lambda: one.get(run_id)), ("post", one.post)):
        timed(act, max(10, count // 10))
        cpu = processor_seconds(served.process.pid)
        times = sorted(timed(act, count))
        spent = processor_seconds(served.process.pid) - cpu
        found[f"{name}_p50_ms"] = harness.percentile(times, 0.5)
        found[f"{name}_p95_ms"] = harness.percentile(times, 0.95)
        found[f"{name}_cpu_ms"] = 1000 * spent / count
    found["posts_per_s"] = at_once(served.port, token, count)
    return found


def at_once(port: int, token: str, count: int) -> float:
    """Posts a second of several clients."""
    clients = [Client(port, token) for _ in range(CLIENTS)]
    each = max(1, count // CLIENTS)
    posting = [threading.Thread(target=timed, args=(client.post, each)) for client in clients]
    began = time.perf_counter()
    for one in posting:
        one.start()
    for one in posting:
        one.join()
    return each * CLIENTS / (time.perf_counter() - began)


def instant(admin_url: str, count: int) -> float:
    """Seconds from the first of so many posts to the end of the last run, by `make run` as it comes."""
    url = harness.database(admin_url, "instant")
    with tempfile.TemporaryDirectory() as home:
        told = prepare(url, Path(home) / "statements")
        installation = Installation(url, "http://127.0.0.1:9", Path(home), DEPUTY_MODEL="local", **LIMITS)
        try:
            time.sleep(3)  # the runs that were posted while the statements were recorded
            began = time.perf_counter()
            client = Client(installation.port, told["token"])
            timed(client.post, count)
            with psycopg.connect(url, autocommit=True) as own:
                while not all_ended(own):
                    time.sleep(0.05)
            return time.perf_counter() - began
        finally:
            installation.stop()


def all_ended(own: Any) -> bool:
    row = own.execute(
        "SELECT NOT EXISTS (SELECT FROM runs_run WHERE status IN ('pending', 'running', 'waiting'))"
    ).fetchone()
    return bool(row[0])


LIMITS = {"API_PER_MINUTE": "0", "QUEUE_LIMIT": "1000000"}


def prepare(url: str, file: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.requests_prepare", url, str(file)]
    return told_by(command, harness.environment(url) | LIMITS)


def side_by_side(admin_url: str, count: int, repetitions: int) -> dict[str, Any]:
    """Deputy's figures and the floor's, medians of the repetitions, which take turns."""
    url = harness.database(admin_url, "ours")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "statements"
        told = prepare(url, file)
        floor_url = url.rpartition("/")[0] + "/floor"
        with psycopg.connect(admin_url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE floor TEMPLATE ours")
        ours_more = {**LIMITS, "DEPUTY_HOME": folder, "SECRET_KEY": "only-for-benchmarks-" + "0123456789" * 4}
        shown = f"/api/runs/{told['run']}/"
        with (
            web(url, "config.asgi:application", "/readyz", ours_more) as ours,
            web(
                floor_url, "benchmarks.requests_floor:application", shown, {"REQUESTS_FILE": str(file)}
            ) as floor,
        ):
            rounds: dict[str, list[dict[str, float]]] = {harness.OURS: [], harness.FLOOR: []}
            for _ in range(repetitions):
                for name, served in ((harness.OURS, ours), (harness.FLOOR, floor)):
                    rounds[name].append(measure(served, told["token"], told["run"], count))
    figures = {name: middle(found) for name, found in rounds.items()}
    return {**figures, "statements": told["statements"]}


def middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The median of the repetitions, and how far the medians of `get` lie apart."""
    found = {name: round(median(one[name] for one in rounds), 2) for name in rounds[0]}
    for name in ("get_p50_ms", "post_p50_ms"):
        values = [one[name] for one in rounds]
        found[name.replace("p50_ms", "spread")] = round((max(values) - min(values)) / found[name], 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--instant", type=int, default=INSTANT)
    asked = parser.parse_args()
    with harness.server() as admin_url:
        told = side_by_side(admin_url, asked.requests, asked.repetitions)
        for name in (harness.OURS, harness.FLOOR):
            print(name, told[name])
        seconds = instant(admin_url, asked.instant) if asked.instant else None
    print(f"statements: {told['statements']}; {asked.instant} instant runs: {seconds} s")
    print(f"load average: {os.getloadavg()[0]:.1f}")
    print(
        json.dumps(
            {
                "bench": "requests",
                **told,
                "peers": {},
                "instant_runs": asked.instant,
                "instant_s": seconds and round(seconds, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
