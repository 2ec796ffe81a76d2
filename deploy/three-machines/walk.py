#!/usr/bin/env python
"""Walks through three machines on one: network namespaces stand for them. docs/operating.md, Three machines.

    .venv/bin/python deploy/three-machines/walk.py [--short] [--asynchronous] [--keep]

As root, on Debian. It runs the scripts of this folder as an operator would, puts a steady load on all three,
and takes the leader away in two ways: all processes of its machine are killed; its network is cut. It
prints what that cost, as JSON, and exits with 1 if anything that was acknowledged is missing, has not ended,
or has a log that is not whole. `--short` leaves out the second way; `--asynchronous` replicates without
waiting, so that Deputy does not go on until `after_restore` has run.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psycopg

HERE = Path(__file__).resolve().parent
PROGRAMS = ("apt-get", "ip", "setpriv")
BRIDGE, OWN = "deputy-machines", "10.77.0.254"
ADDRESSES = {"m1": "10.77.0.1", "m2": "10.77.0.2", "m3": "10.77.0.3"}
PATIENCE = 90.0  # seconds, for whatever takes a fraction of it when all is well
GOAL = "What do we know about Atlas?"
ASKERS, PAUSE = 2, 0.5  # that start runs, and the seconds between two runs of one
PATIENCE_OF_CLUSTERS = 15.0  # in which they would have gone on by themselves
SILENT_CLUSTERS = 31.0  # after which `after_restore` takes them for stopped
OF_DEPUTY = ("web", "cluster")


class Failed(Exception):
    """The walk has not come to its end; the message says where it stopped."""


def say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


def until(what: Callable[[], Any], name: str, seconds: float = PATIENCE) -> Any:
    """The first true answer. Raises Failed when none comes in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.1)
    raise Failed(f"not within {seconds:g} s: {name}")


def ran(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True)


def ip(*words: str) -> None:
    ran(["ip", *words]).check_returncode()


@dataclass
class Machine:
    """A network namespace, and what runs in it."""

    name: str
    folder: Path
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return ADDRESSES[self.name]

    @property
    def space(self) -> str:
        return f"deputy-{self.name}"

    def plug_in(self) -> None:
        """Make the machine and connect it to the network."""
        outside, inside = self.cable, f"d{self.name}-in"
        ip("netns", "add", self.space)
        ip("link", "add", outside, "type", "veth", "peer", "name", inside)
        ip("link", "set", inside, "netns", self.space)
        ip("-n", self.space, "addr", "add", f"{self.address}/24", "dev", inside)
        for device in ("lo", inside):
            ip("-n", self.space, "link", "set", device, "up")
        ip("link", "set", outside, "up")
        self.reconnect()

    @property
    def cable(self) -> str:
        return f"d{self.name}"

    def cut(self) -> None:
        """The network drops what it is given; nobody is told."""
        ip("link", "set", self.cable, "nomaster")

    def reconnect(self) -> None:
        ip("link", "set", self.cable, "master", BRIDGE)

    def command(self, script: str, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.space, str(HERE / script), self.name, *words]

    def start(self, script: str, *words: str) -> None:
        """A script that stays, with its output in a file."""
        part = words[0] if words else script.removesuffix(".sh")
        with (self.folder / f"{self.name}-{part}.log").open("ab") as log:
            self.running[part] = subprocess.Popen(
                self.command(script, *words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, script: str, *words: str) -> str:
        """A script that ends; returns what it said. Raises Failed."""
        done = ran(self.command(script, *words))
        if done.returncode:
            raise Failed(f"{self.name}: {script} {' '.join(words)}: {done.stderr[-2000:]}")
        return done.stdout

    def start_all(self) -> None:
        self.start("etcd.sh")
        self.start("patroni.sh")
        self.start_deputy()

    def start_deputy(self) -> None:
        for part in OF_DEPUTY:
            self.start("deputy.sh", part)

    def stop_deputy(self) -> None:
        for part in OF_DEPUTY:
            self.running[part].terminate()
        for part in OF_DEPUTY:
            self.running.pop(part).wait(60)

    def kill(self) -> None:
        """All that runs here ends at once, and whatever that leaves behind."""
        while found := ran(["ip", "netns", "pids", self.space]).stdout.split():
            for pid in map(int, found):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        for process in self.running.values():
            process.wait(10)
        self.running.clear()

    def remove(self) -> None:
        self.kill()
        for words in (("link", "del", self.cable), ("netns", "del", self.space)):
            with suppress(subprocess.CalledProcessError):
                ip(*words)

    def role(self) -> str:
        """What Patroni says this PostgreSQL is; nothing where it does not answer."""
        with suppress(httpx.HTTPError, ValueError):
            said = httpx.get(f"http://{self.address}:8008/patroni", timeout=1).json()
            return str(said.get("role", "")) if said.get("state") == "running" else ""
        return ""


@dataclass
class Asked:
    """A run that a program has asked for, and when it was told that it will be done."""

    key: str
    at: float
    acknowledged: float = 0.0
    run: str = ""


class Load:
    """Programs that start runs, one after the other, at whichever web server answers."""

    def __init__(self, token: str) -> None:
        self.headers = {"Authorization": f"Bearer {token}"}
        self.asked: list[Asked] = []
        self.lists = 0
        self.not_listed: list[str] = []  # runs that a list lacked although they had been acknowledged
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(ASKERS)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Ask for nothing more; what was asked for is asked until somebody acknowledges it."""
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _ask(self, turn: int) -> None:
        with httpx.Client(headers=self.headers, timeout=httpx.Timeout(3, connect=0.5)) as client:
            while not self.over.is_set():
                one = Asked(key=uuid.uuid4().hex, at=time.time())
                self.asked.append(one)
                while not one.run:
                    turn += 1
                    self._once(client, one, list(ADDRESSES.values())[turn % 3])
                self._look(client, one.run, list(ADDRESSES.values())[(turn + 1) % 3])
                self.over.wait(PAUSE)

    def _look(self, client: httpx.Client, run: str, address: str) -> None:
        """The list of runs at another web server has what one has just acknowledged, wherever it reads it."""
        with suppress(httpx.HTTPError, ValueError):
            said = client.get(f"http://{address}:8000/api/runs/", params={"limit": 100})
            if said.is_success:
                self.lists += 1
                if run not in {one["id"] for one in said.json()["results"]}:
                    self.not_listed.append(run)

    @staticmethod
    def _once(client: httpx.Client, one: Asked, address: str) -> None:
        body = {"project": "atlas", "goal": GOAL}
        try:
            said = client.post(
                f"http://{address}:8000/api/runs/", json=body, headers={"Idempotency-Key": one.key}
            )
            if said.is_success:
                one.run, one.acknowledged = said.json()["id"], time.time()
                return
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.1)


class Walk:
    """The three machines, from the first package to the last check."""

    def __init__(self, synchronous: bool) -> None:
        self.synchronous = synchronous
        self.folder = Path(tempfile.mkdtemp(prefix="dm-"))
        self.folder.chmod(0o755)
        self.conf = self._settings()
        os.environ["MACHINES_CONF"] = str(self.conf)
        self.machines = [Machine(name, self.folder) for name in ADDRESSES]
        self.figures: dict[str, Any] = {"synchronous": synchronous}

    def _settings(self) -> Path:
        """machines.conf as an operator fills it in."""
        lines = []
        self.passwords = {}
        for line in (HERE / "machines.conf").read_text().splitlines():
            name = line.partition("=")[0]
            if line.endswith("="):
                self.passwords[name] = secrets.token_hex(24)
                line += self.passwords[name]
            elif name == "FOLDER":
                line = f"FOLDER={self.folder}"
            elif name == "SYNCHRONOUS":
                line = f"SYNCHRONOUS={'yes' if self.synchronous else 'no'}"
            elif name == "LISTS_FROM_STANDBY":
                line = f"{name}=yes"
            lines.append(line)
        path = self.folder / "machines.conf"
        path.touch(0o600)
        path.write_text("\n".join(lines) + "\n")
        return path

    # The steps of docs/operating.md

    def connect(self) -> None:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{OWN}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for machine in self.machines:
            machine.plug_in()

    def install(self) -> None:
        packages = ran([str(HERE / "install.sh")])  # once: the namespaces share this machine's files
        if packages.returncode:
            raise Failed(f"install.sh: {packages.stderr[-2000:]}")
        for machine in self.machines:
            machine.start("etcd.sh")
        for machine in self.machines:
            machine.start("patroni.sh")
            until(machine.role, f"PostgreSQL on {machine.name}")
        self.wait_for_all()
        first = self.machines[0]
        first.run("database.sh")
        first.run("deputy.sh", "manage", "migrate", "--verbosity", "0")
        made = json.loads(first.run("deputy.sh", "manage", "demo", "--json"))
        self.token = made["users"]["member"]["token"]
        for machine in self.machines:
            machine.start_deputy()
        for machine in self.machines:
            until(lambda m=machine: self.is_ready(m), f"web on {machine.name}")  # type: ignore[misc]

    @staticmethod
    def is_ready(machine: Machine) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"http://{machine.address}:8000/readyz", timeout=3).is_success
        return False

    def leader(self) -> Machine | None:
        return next((machine for machine in self.machines if machine.role() in ("master", "primary")), None)

    def wait_for_all(self) -> None:
        """Until there is a leader with two standbys, one of which may take over without a loss.

        Patroni names that one only after the server waits for it: a leader that is lost in between is missed
        until it comes back.
        """
        wanted = ["leader", "replica", "sync_standby" if self.synchronous else "replica"]

        def complete() -> bool:
            for machine in self.machines:
                with suppress(httpx.HTTPError, ValueError):
                    said = httpx.get(f"http://{machine.address}:8008/cluster", timeout=1).json()
                    live = [one for one in said["members"] if one["state"] in ("running", "streaming")]
                    return sorted(one["role"] for one in live) == wanted
            return False

        until(complete, "a leader and two standbys")

    @contextmanager
    def database(self, name: str = "deputy") -> Iterator["psycopg.Connection[Any]"]:
        """Whichever leads, as its superuser."""
        with psycopg.connect(
            host=",".join(ADDRESSES.values()),
            user="postgres",
            password=self.passwords["SUPERUSER_PASSWORD"],
            dbname=name,
            target_session_attrs="read-write",
            connect_timeout=2,
            autocommit=True,
        ) as own:
            yield own

    # What happens to them

    def warm_up(self, load: Load) -> None:
        until(lambda: self.completed() >= 10, "ten runs completed")
        say(f"{self.completed()} runs completed, {len(load.asked)} asked for")

    def completed(self) -> int:
        with suppress(psycopg.OperationalError), self.database() as own:
            found = own.execute("SELECT count(*) FROM runs_run WHERE status = 'completed'").fetchone()
            return int(found[0]) if found else 0
        return 0

    def lose(self, how: str, load: Load) -> None:
        """The leader goes: how long until others are served, and until work asked for then is done."""
        gone = until(self.leader, "a leader")
        say(f"{how}: {gone.name}")
        at = time.time()
        gone.kill() if how == "killed" else gone.cut()
        next_ = until(
            lambda: next(
                (m for m in self.machines if m is not gone and m.role() in ("master", "primary")), None
            ),
            "another leader",
        )
        figures = {"leader": gone.name, "next": next_.name, "promoted_after": round(time.time() - at, 1)}
        self.figures[how] = figures
        if not self.synchronous:
            self.go_on_by_hand(gone, at, load)
        until(lambda: self.done_since(at, load), "a run that was asked for afterwards")
        figures |= self.gaps(at, load)
        say(json.dumps(figures))
        gone.start_all() if how == "killed" else gone.reconnect()
        self.wait_for_all()
        figures["whole_again_after"] = round(time.time() - at, 1)
        until(lambda: self.is_ready(gone), f"web on {gone.name}")

    def done_since(self, at: float, load: Load) -> bool:
        """Whether a run completed that was asked for after that moment."""
        since = [one.run for one in load.asked if one.run and one.at > at]
        with suppress(psycopg.OperationalError), self.database() as own:
            return bool(own.execute(DONE, [since]).fetchone())
        return False

    def gaps(self, at: float, load: Load) -> dict[str, float]:
        """Seconds from the loss to the first acknowledgement, and to the first end of a run, after it."""
        first = min(one.acknowledged for one in load.asked if one.acknowledged and one.at > at)
        with self.database() as own:
            ended = [moment.timestamp() for (moment,) in own.execute(ENDED)]
        after = min(moment for moment in ended if moment > first)
        around = [moment for moment in ended if at - 10 < moment <= after]
        return {
            "acknowledged_after": round(first - at, 1),
            "completed_after": round(after - at, 1),
            "longest_gap_of_completions": round(max(b - a for a, b in pairwise(around)), 1),
        }

    def go_on_by_hand(self, gone: Machine, at: float, load: Load) -> None:
        """With asynchronous replication Deputy waits until somebody says what may be missing."""
        left = [machine for machine in self.machines if machine is not gone]
        time.sleep(PATIENCE_OF_CLUSTERS)
        if self.done_since(at, load):
            raise Failed("the clusters went on without being told")
        self.figures["waited_for_after_restore"] = True
        for machine in left:
            machine.stop_deputy()
        time.sleep(SILENT_CLUSTERS)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        say(left[0].run("deputy.sh", "manage", "after_restore", "--stopped-at", moment))
        for machine in left:
            machine.start_deputy()

    def audit(self, load: Load) -> bool:
        """Whether everything acknowledged is there once, has ended, and has a log that is whole."""
        load.stop()
        acknowledged = [one.run for one in load.asked]
        with self.database() as own:
            there = {run for (run,) in own.execute(THERE, [acknowledged])}
        missing = [run for run in acknowledged if run not in there]
        with suppress(Failed):
            until(lambda: not self.not_ended(there), "the end of all runs", 180)
        said = self.machines[0].run("deputy.sh", "manage", "verify_run", "--all").strip().splitlines()
        self.figures |= {
            "not_listed": len(load.not_listed),
            "lists": load.lists,
            "lists_of_standbys": sum(map(self.lists_read, ADDRESSES.values())),
            "asked": len(acknowledged),
            "missing": len(missing),
            "twice": len(acknowledged) - len(set(acknowledged)),
            "not_ended": len(self.not_ended(there)),
            "verify_run": said[-1] if said else "",
        }
        whole = not (self.figures["twice"] or self.figures["not_ended"] or load.not_listed)
        return whole and not (self.synchronous and missing)

    def lists_read(self, address: str) -> int:
        """How often the runs were looked at on that machine, if it follows."""
        there: dict[str, Any] = {
            "host": address,
            "user": "postgres",
            "dbname": "deputy",
            "connect_timeout": 2,
        }
        with psycopg.connect(**there, password=self.passwords["SUPERUSER_PASSWORD"]) as own:
            found = own.execute(LOOKS).fetchone()
            return int(found[0] or 0) if found else 0

    def not_ended(self, runs: set[str]) -> list[str]:
        with self.database() as own:
            return [run for (run,) in own.execute(OPEN, [list(runs)])]

    def remove(self, keep: bool) -> None:
        for machine in self.machines:
            machine.remove()
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", BRIDGE)
        if keep:
            say(f"logs and data: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


DONE = "SELECT 1 FROM runs_run WHERE status = 'completed' AND id = ANY(%s) LIMIT 1"
ENDED = "SELECT ended_at FROM runs_run WHERE status = 'completed' AND depth = 0 ORDER BY 1"
THERE = "SELECT id FROM runs_run WHERE id = ANY(%s)"
LOOKS = """
SELECT sum(idx_scan + seq_scan) FROM pg_stat_user_tables WHERE relname = 'runs_run' AND pg_is_in_recovery()
"""
OPEN = "SELECT id FROM runs_run WHERE id = ANY(%s) AND status <> 'completed'"


def walk(short: bool, synchronous: bool, keep: bool) -> int:
    the = Walk(synchronous)
    load = None
    try:
        the.connect()
        say("etcd, PostgreSQL, Deputy")
        the.install()
        load = Load(the.token)
        the.warm_up(load)
        the.lose("killed", load)
        if not short and synchronous:
            the.lose("cut", load)
        good = the.audit(load)
        print(json.dumps(the.figures, indent=2))
        return 0 if good else 1
    except Failed as failed:
        keep = True
        say(f"stopped: {failed}")
        return 1
    finally:
        if load is not None:
            load.over.set()
            for one in load.asked:
                one.run = one.run or "never"
        the.remove(keep)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    for option in ("--short", "--asynchronous", "--keep"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was begun is taken away
    if lacking := [program for program in PROGRAMS if shutil.which(program) is None]:
        sys.exit(f"walk.py: not here: {', '.join(lacking)}")
    if os.geteuid() != 0:
        sys.exit("walk.py: network namespaces take root.")
    sys.exit(walk(options.short, not options.asynchronous, options.keep))


if __name__ == "__main__":
    main()
