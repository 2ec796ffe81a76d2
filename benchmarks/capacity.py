"""Many runs at once that wait for a slow model: Deputy as `make run` starts it, beside LangGraph and DBOS.

    python -m benchmarks.capacity [--runs 20 200 1000] [--seconds 3] [--kind single escalation] [--peers 0]

All on one PostgreSQL and one model server, in turns. Deputy's runs are started through the action, in the
process of the benchmark, as the peers' are; web process, workers and carriers are those of `make run` with
its defaults. Told for each: wall time, model calls a second, processor time of a call (without PostgreSQL's
and the model server's; of Deputy's also the carriers' share and that of its other processes), memory of a
call in flight beyond the idle processes', the most calls in flight, and how long after a reply's last byte
the next request of the same run came. The last line is JSON.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import harness, peers
from benchmarks.capacity_peer import memory_kb
from benchmarks.start import HIDDEN, reached
from launch.home import PROJECT
from tests.ports import free_port

CALLS = {"single": 1, "escalation": 3}  # of the model, a run
PATIENCE = 1800  # seconds
TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def model_server(seconds: float) -> Iterator[str]:
    """A model server; its address."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.capacity_model", str(port), str(seconds)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE) as server:
        assert server.stdout
        server.stdout.readline()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def ask(url: str, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(url + path, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def below(pid: int) -> list[int]:
    """The process, and all that it and those have started."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def processor_seconds(pid: int) -> float:
    """Of these processes, as far as they live; none ends while it is measured."""
    ticks = 0
    for each in below(pid):
        with contextlib.suppress(OSError), open(f"/proc/{each}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Installation:
    """Deputy as `make run` starts it, on this database and model."""

    def __init__(self, url: str, model_url: str, home: Path, **more: str) -> None:
        self.port = free_port()
        environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        self.environment = environment | {
            "DATABASE_URL": url,
            "DEPUTY_HOME": str(home),
            "PORT": str(self.port),
            "DEMO": "no",
            "DEPUTY_MODEL": "openai:slow",
            "OPENAI_BASE_URL": f"{model_url}/v1",
            "QUEUE_LIMIT": "100000",
            **more,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "launch.run"],
            cwd=PROJECT,
            env=self.environment,
            stdout=(home / "log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        reached(self.port, "/readyz?all", self.process)

    def memory_kb(self) -> int:
        return sum(memory_kb(pid) for pid in below(self.process.pid))

    def processor_seconds(self) -> float:
        return processor_seconds(self.process.pid)

    def carriers(self) -> list[int]:
        return [pid for pid in below(self.process.pid) if name_of(pid) == "deputy-carrier"]

    def carrier_seconds(self) -> float:
        """Of processor time, of the carriers alone."""
        return sum(processor_seconds(pid) for pid in self.carriers())

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)


def ours(installation: Installation, kind: str, runs: int) -> dict[str, float]:
    """Start the runs through the action and wait for their ends, in a process of their own."""
    peak, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.25):
            peak[0] = max(peak[0], installation.memory_kb())

    idle_kb, cpu = installation.memory_kb(), installation.processor_seconds()
    carriers = installation.carrier_seconds()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        command = [sys.executable, "-m", "benchmarks.capacity_ours", "work", kind, str(runs)]
        told = told_by(command, installation.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"})
    finally:
        stop.set()
        watcher.join()
    spent, carried = installation.processor_seconds() - cpu, installation.carrier_seconds() - carriers
    return {
        "wall_s": told["wall_s"],
        "cpu_s": told["cpu_s"] + spent,
        "carrier_s": carried,
        "worker_s": spent - carried,
        "idle_kb": idle_kb,
        "peak_kb": peak[0],
    }


def told_by(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise harness.Failed((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def figures(found: dict[str, float], stats: dict[str, Any], kind: str, runs: int) -> dict[str, Any]:
    calls = CALLS[kind] * runs
    return {
        "wall_s": round(found["wall_s"], 2),
        "calls_per_s": round(calls / found["wall_s"], 1),
        "cpu_ms_per_call": round(1000 * found["cpu_s"] / calls, 2),
        **{
            f"{name}_ms": round(1000 * found[f"{name}_s"] / calls, 2)
            for name in ("carrier", "worker")
            if f"{name}_s" in found
        },
        "idle_mb": round(found["idle_kb"] / 1000),
        "kb_per_call": round(max(0, found["peak_kb"] - found["idle_kb"]) / max(1, stats["peak"]), 1),
        "peak_in_flight": stats["peak"],
        "model_calls": stats["requests"],
        "gap_ms": stats["gap_ms"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, nargs="+", default=[20, 200, 1000])
    parser.add_argument("--kind", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--peers", type=int, default=1)
    asked = parser.parse_args()
    python = peers.python() if asked.peers else None
    results: list[dict[str, Any]] = []
    with (
        harness.server() as admin_url,
        model_server(asked.seconds) as model_url,
        tempfile.TemporaryDirectory() as home,
    ):
        url = harness.database(admin_url, "ours")
        told_by([sys.executable, "-m", "benchmarks.capacity_ours", "prepare", url], harness.environment(url))
        installation = Installation(url, model_url, Path(home))
        try:
            for kind in asked.kind:
                for runs in asked.runs:
                    results.append(round_of(installation, admin_url, model_url, python, kind, runs))
                    print(json.dumps(results[-1]), flush=True)
        finally:
            installation.stop()
    print(json.dumps({"bench": "capacity", "seconds": asked.seconds, "results": results, **results[-1]}))


def round_of(
    installation: Installation, admin_url: str, model_url: str, python: str | None, kind: str, runs: int
) -> dict[str, Any]:
    """One number of runs of one kind: ours, then each peer on a new database."""
    ask(model_url, "/reset")
    mine = figures(ours(installation, kind, runs), ask(model_url, "/stats"), kind, runs)
    others: dict[str, Any] = {}
    for peer in ("langgraph", "dbos") if python else ():
        ask(model_url, "/reset")
        url = harness.database(admin_url, f"{peer}_{kind}_{runs}")
        command = [str(python), "-m", f"benchmarks.capacity_{peer}", url, f"{model_url}/v1", kind, str(runs)]
        with harness.left_out(peer):
            found = told_by(command, harness.environment(url))
            others[peer] = figures(found, ask(model_url, "/stats"), kind, runs)
    return {"kind": kind, "runs": runs, "ours": mine, "peers": others}


if __name__ == "__main__":
    main()
