"""Open event streams on one web process: what they hold, and how soon they tell what happens.

    python -m benchmarks.streams [STREAMS] [EVENTS]

An embedded PostgreSQL in a temporary folder, the web server of `make run` with one worker, STREAMS (500)
clients in this process that all follow one run. `threads`, `connections`, `memory_kb` are those of the
web process with no stream open and with all open; `statements` is what the database did in ten quiet
seconds. `p50_ms`, `p95_ms`, `max_ms`: from the commit of an event to a client's reading it, over
STREAMS × EVENTS (20) readings. The last line is JSON.
"""

import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from launch import postgres
from launch.home import PROJECT
from launch.run import WEB_COMMAND

AGAIN_SECONDS = 0.1  # before a client that lost the line connects again
QUIET_SECONDS = 10
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


@dataclass
class Listener:
    """A client that follows a run, and goes on where it left off when it loses the line."""

    url: str
    token: str
    run_id: str
    heard: dict[str, float] = field(default_factory=dict)  # id: when
    repeated: int = 0
    ended: bool = False
    connected: int = 0
    last: str = ""
    refused: str = ""  # the web server's line, where it takes no more streams

    async def follow(self) -> None:
        """Until the stream says that it has ended."""
        while not self.ended:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
                await self._once()
            if not self.ended:
                await asyncio.sleep(AGAIN_SECONDS)

    async def _once(self) -> None:
        where = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            writer.write(self._request(where.netloc))
            status = await reader.readline()
            self.refused = status.decode().strip() if status.split(b" ")[1:2] == [b"429"] else ""
            self.ended = b" 204 " in status
            while await reader.readline() not in (b"\r\n", b""):
                pass
            if b" 200 " in status:
                self.connected += 1
                await self._listen(reader)
        finally:
            writer.close()

    def _request(self, host: str) -> bytes:
        lines = [
            f"GET /api/runs/{self.run_id}/events/stream/ HTTP/1.1",
            f"Host: {host}",
            f"Authorization: Token {self.token}",
            *([f"Last-Event-ID: {self.last}"] if self.last else []),
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while size := int(await reader.readline(), 16):
            chunk = await reader.readexactly(size + 2)
            self._read(chunk.decode())

    def _read(self, text: str) -> None:
        for line in text.splitlines():
            if line.startswith("id: "):
                self.last = line[4:]
                self.repeated += self.last in self.heard
                self.heard.setdefault(self.last, time.monotonic())
            elif line == "event: end":
                self.ended = True


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    threads: int
    connections: int
    memory_kb: int


def held(pid: int, database_url: str, others: int = 0) -> Held:
    """Of the web process `pid`; `others` connections to the database are not its own."""
    status = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return Held(
        int(lines["Threads"]), number(database_url, CONNECTIONS) - others, int(lines["VmRSS"].split()[0])
    )


def number(database_url: str, sql: str) -> int:
    with psycopg.connect(database_url, autocommit=True) as own:
        own.execute("SELECT pg_stat_force_next_flush()")
        found = own.execute(sql).fetchone()
    assert found is not None
    return int(found[0])


def worker_of(pid: int) -> int:
    """The one process of a web server that serves."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


async def all_open(listeners: list[Listener], count: int = 1) -> None:
    """When each has been connected so often and has heard what there was."""
    while any(each.connected < count or not each.heard for each in listeners):
        if refused := {each.refused for each in listeners if each.refused}:
            raise RuntimeError(f"Streams were refused: {', '.join(refused)}")
        await asyncio.sleep(0.02)


def main(streams: int = 500, events: int = 20) -> dict[str, Any]:
    """All of it. Starts what it needs on free ports and stops it again."""
    home = postgres.temporary_home()
    server = postgres.Server(home, temporary=True)
    server.start()
    os.environ |= {
        "DATABASE_URL": postgres.url(home),
        "DEPUTY_HOME": str(home),
        "SECRET_KEY": "only-for-benchmarks-" + "0123456789" * 4,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "STREAMS": str(streams),
    }
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "migrate", "--verbosity", "0"], cwd=PROJECT, check=True)
    import django

    django.setup()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listening = listener.fileno()
        web = subprocess.Popen(
            [sys.executable, *WEB_COMMAND, "--bind", f"fd://{listening}", "--workers", "1"],
            cwd=PROJECT,
            pass_fds=(listening,),
        )
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        return asyncio.run(measured(url, os.environ["DATABASE_URL"], web.pid, streams, events))
    finally:
        web.terminate()
        web.wait(20)
        server.leave()


async def measured(url: str, database_url: str, web: int, streams: int, events: int) -> dict[str, Any]:
    run_id, token, say, end = await asyncio.to_thread(run_to_follow)
    first = Listener(url, token, run_id)
    following = [asyncio.create_task(first.follow())]
    await all_open([first])
    before = held(worker_of(web), database_url, others=1)
    listeners = [Listener(url, token, run_id) for _ in range(streams - 1)]
    following += [asyncio.create_task(each.follow()) for each in listeners]
    listeners.append(first)
    await all_open(listeners)
    after = held(worker_of(web), database_url, others=1)
    count = number(database_url, TRANSACTIONS)
    await asyncio.sleep(QUIET_SECONDS)
    statements = number(database_url, TRANSACTIONS) - count
    delays: list[float] = []
    for i in range(events):
        seq, at = await asyncio.to_thread(say, f"word {i}")
        delays += await heard_by_all(listeners, f"{run_id}:{seq}", at)
    await asyncio.to_thread(end)
    await asyncio.wait_for(asyncio.gather(*following), 60)
    delays.sort()
    return {
        "streams": streams,
        "connected": sum(each.connected for each in listeners),
        "one": vars(before),
        "all": vars(after),
        "quiet_seconds": QUIET_SECONDS,
        "statements": statements,
        "events": events,
        "p50_ms": round(statistics.median(delays) * 1000, 1),
        "p95_ms": round(delays[int(len(delays) * 0.95)] * 1000, 1),
        "max_ms": round(delays[-1] * 1000, 1),
        "repeated": sum(each.repeated for each in listeners),
        "missed": sum(len(first.heard) - len(each.heard) for each in listeners),
    }


async def heard_by_all(listeners: list[Listener], event: str, at: float) -> list[float]:
    while any(event not in each.heard for each in listeners):
        await asyncio.sleep(0.005)
    return [max(each.heard[event] - at, 0.0) for each in listeners]


def run_to_follow() -> tuple[str, str, Any, Any]:
    """A run in a new organization, its user's token, `say(words) -> (seq, when)`, and what ends it."""
    from django.contrib.auth import get_user_model

    from groups.models import Membership, Organization, Project, Token
    from groups.scopes import SCOPES
    from runs.models import Run
    from tests.acting import complete, message, start

    organization = Organization.objects.create(slug="streams", name="Streams")
    project = Project.objects.create(organization=organization, slug="streams", name="Streams")
    user = get_user_model().objects.create(username="streams")
    Membership.objects.create(organization=organization, user=user)
    _, secret = Token.objects.issue(organization, user, scopes=list(SCOPES))
    run_id = start(user=user, project=project, goal="Be followed", driver="external")

    def say(words: str) -> tuple[int, float]:
        message(run_id, words, "streams")
        at = time.monotonic()
        return Run.objects.get(pk=run_id).last_seq, at

    return run_id, secret, say, lambda: complete(run_id, "Done.")


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:3]))))
