"""What holds whatever breaks, with real processes, a real database and somebody outside who counts."""

import os
import random
import shutil
import signal as signals
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
from django.db import connection

from common.db import execute, row
from groups.models import Token
from groups.scopes import SCOPES
from launch.home import PROJECT
from runs.log.log import AlreadyEnded
from runs.models import QueueMessage, Run, RunEvent, ToolCall, Wait
from tests.acceptance.house import check_logs, status, tree, until
from tests.acceptance.web import Web
from tests.acting import cancel, message, signal
from tests.auditor import audit, audit_effects, unrest

REPEATABLE = {"keyed_effect", "nap"}


def in_order(house, world):
    """Everything that could go on has, and no rule is broken."""
    organization = world.project.organization_id
    until(lambda: not unrest(organization), said=lambda: str(unrest(organization)))
    assert audit(organization) == []
    ours = set(Run.objects.filter(organization=organization).values_list("pk", flat=True))
    effects = [effect for effect in house.witness.effects if effect[1] in ours]
    assert audit_effects(organization, effects, REPEATABLE) == []


def parked(run):
    return lambda: status(run) == "waiting"


# what comes from outside

DIES = """
import django, os, signal
django.setup()
from common import notifications
from tests.acting import signal as send
notifications.send = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # committed, and nobody has been told
send({run!r}, "input-4.0", {{"answer": "2026"}})
"""


@pytest.mark.slow
def test_a_signal_whose_sender_is_killed_after_its_commit_is_delivered(house, world, ask, ended):
    house.common_cluster()
    run = ask("asking")
    until(parked(run), said=lambda: house.report(run))
    environment = house.environment() | {"PYTHONPATH": str(PROJECT)}
    sender = subprocess.run([sys.executable, "-c", DIES.format(run=run)], cwd=PROJECT, env=environment)
    assert sender.returncode == -signals.SIGKILL

    assert ended(run) == "completed", house.report(run)
    assert signal(run, "input-4.0", {"answer": "2026"}).state == "duplicate"
    in_order(house, world)


@pytest.mark.slow
def test_a_run_that_always_takes_its_worker_down_fails_and_its_parent_is_told(house, world, ask, ended):
    house.cluster()
    run = ask("poisoned")

    assert ended(run) == "completed", house.report(run)
    _, child = tree(run)
    assert (child.status, child.error["code"], child.crashes) == ("failed", "CRASHED", 3)
    words = "Group run failed: The run took its worker down 3 times."
    assert ToolCall.objects.get(run=run).result == {"success": False, "error": words}
    assert ToolCall.objects.get(run=child).status == "unknown"
    in_order(house, world)


# cancelling


@pytest.mark.slow
def test_trees_cancelled_at_200_random_moments_end_whole(house, world, ask):
    house.cluster(SWEEP_SECONDS="1")
    chance = random.Random(11)
    cancelled = {}
    for number in range(200):
        run = ask("marked 3" if number % 2 else "letter 2")
        time.sleep(chance.uniform(0, 0.25))
        try:
            cancel(run, by="mia")
            (cancelled[run],) = row("SELECT clock_timestamp()")
        except AlreadyEnded:
            assert status(run) == "completed"
    assert len(cancelled) > 100

    in_order(house, world)
    for run in cancelled:
        assert {below.status for below in tree(run)} <= {"cancelled", "completed"}
        begun = RunEvent.objects.filter(run__root=run, type="tool.called")
        assert not begun.filter(created_at__gt=cancelled[run]).exists()
    assert not Run.objects.filter(pk__in=[*cancelled]).exclude(status="cancelled").exists()
    assert not any("everybody@example.com" in mail.recipients for mail in house.mail.mails)


# the queue


@pytest.mark.slow
def test_messages_lost_doubled_reordered_and_late_do_no_harm(house, world, ask, ended):
    house.end_common()
    runs = [ask("alone effect") for _ in range(10)]
    told = list(QueueMessage.objects.order_by("id").values_list("id", "payload", "run_id", "queue"))
    QueueMessage.objects.filter(id__in=[number for number, *_ in told[:3]]).delete()
    again = [
        QueueMessage(queue=queue, payload=payload, run_id=run) for _, payload, run, queue in told[3:]
    ] * 3
    QueueMessage.objects.bulk_create(again)
    execute("UPDATE runs_queuemessage SET due_at = now() - random() * interval '1 hour'")
    house.cluster()

    for run in runs:
        assert ended(run) == "completed", house.report(run)
        assert house.witness.count([run]) == {"it": 1}
    before = RunEvent.objects.filter(run__in=runs).count()
    QueueMessage.objects.bulk_create(  # and all of them once more, an hour late
        QueueMessage(queue=queue, payload=payload, run_id=run) for _, payload, run, queue in told
    )
    until(lambda: not QueueMessage.objects.exists())
    assert RunEvent.objects.filter(run__in=runs).count() == before
    in_order(house, world)


# clocks


@pytest.fixture
def clock(tmp_path):
    """What to preload so that a process has a clock of its own; `jump` sets it wrong by so many seconds."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C compiler here to build a clock that jumps")
    library, offset = tmp_path / "clock.so", tmp_path / "offset"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    offset.write_text("0")
    environment = {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)}
    yield environment, lambda seconds: offset.write_text(str(seconds))
    offset.write_text("0")


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_runs_complete_while_the_clock_of_all_workers_jumps(house, world, ask, ended, clock, seconds):
    environment, jump = clock
    house.cluster(**environment)
    asking, napping, deep = ask("asking"), ask("naps 6"), ask("deep 3")
    until(parked(asking), said=lambda: house.report(asking))
    until(lambda: house.witness.count([napping]))
    jump(seconds)
    asks_wrong = [sys.executable, "-c", "import time; print(time.time())"]
    said = subprocess.run(asks_wrong, env=os.environ | environment, capture_output=True, check=True).stdout
    assert abs(float(said) - time.time() - seconds) < 60
    later = ask("team keyed_effect")

    for run in (napping, deep, later):
        assert ended(run) == "completed", house.report(run)
    time.sleep(3)  # more than a sweep, and more than a lease
    assert (status(asking), Wait.objects.get(run=asking).resolved_at) == ("waiting", None)
    message(asking, "2026", "mia")
    assert ended(asking) == "completed", house.report(asking)
    assert set(Run.objects.filter(root__in=[napping, later]).values_list("crashes", flat=True)) == {0}
    assert house.witness.count([napping]) == {"nap": 6}
    (now,) = row("SELECT clock_timestamp()")
    told = RunEvent.objects.filter(run__root__in=[asking, napping, later])
    assert not told.filter(created_at__gt=now).exists()
    assert not told.filter(created_at__lt=now - timedelta(minutes=30)).exists()
    in_order(house, world)


# the web process


class Stream:
    """One who follows a run, and keeps the ids of the events."""

    def __init__(self, web, secret, run):
        self.seen, self.web, self.run = [], web, run
        self.headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}

    def follow(self, until_seen):
        """Read on from where it was until so many have been seen, the stream ends, or the server goes."""
        last = {"Last-Event-ID": self.seen[-1]} if self.seen else {}
        url = f"{self.web.url}/api/runs/{self.run}/events/stream/"
        try:
            with httpx.stream("GET", url, headers=self.headers | last, timeout=30) as answer:
                assert answer.status_code == 200, answer.read()
                for line in answer.iter_lines():
                    if line.startswith("id:"):
                        self.seen.append(line.partition(":")[2].strip())
                    if len(self.seen) >= until_seen:
                        return
        except httpx.TransportError:
            return


@pytest.mark.slow
def test_runs_go_on_and_streams_resume_when_the_web_process_is_killed_or_restarted(house, world, ask, ended):
    house.common_cluster()
    _, secret = Token.objects.issue(world.project.organization, world.user, scopes=list(SCOPES))
    run = ask("naps 8")
    for how in (signals.SIGKILL, signals.SIGTERM):
        web = Web(house)
        web.wait()
        if how == signals.SIGKILL:
            stream = Stream(web, secret, run)
        stream.web = web
        stream.follow(len(stream.seen) + 4)
        assert stream.seen
        os.killpg(web.process.pid, how) if how == signals.SIGKILL else web.process.send_signal(how)
        web.process.wait(20)
    assert ended(run) == "completed", house.report(run)
    web = Web(house)
    try:
        web.wait()
        stream.web = web
        stream.follow(10_000)
    finally:
        web.end()

    assert stream.seen == [f"{run}:{seq}" for seq in range(1, Run.objects.get(pk=run).last_seq + 1)]
    assert house.witness.count([run]) == {"nap": 8}
    in_order(house, world)


# the database


@pytest.mark.slow
def test_workers_come_back_by_themselves_when_the_database_was_away_for_half_a_minute(
    house, world, ask, ended
):
    cluster = house.common_cluster()
    waiting, busy = ask("asking"), ask("naps 4")
    until(parked(waiting), said=lambda: house.report(waiting))
    until(lambda: house.witness.count([busy]))
    connection.close()
    keeper = house.server.keeper.pid  # it would start the server again at once
    os.kill(keeper, signals.SIGSTOP)
    try:
        os.kill(house.postmaster(), signals.SIGKILL)
        time.sleep(30)
        assert not house.answers()
    finally:
        os.kill(keeper, signals.SIGCONT)
    until(house.answers)

    message(waiting, "2026", "mia")
    for run in (waiting, busy, ask("team keyed_effect")):
        assert ended(run) == "completed", house.report(run)
    assert cluster.process.poll() is None
    in_order(house, world)


@pytest.fixture
def read_only(house):
    """Call it with yes or no: whether the database takes changes from anybody but this test."""

    def switch(on):
        word = "on" if on else "off"
        with psycopg.connect(house.url, autocommit=True) as own:
            own.execute("SET default_transaction_read_only = off")
            own.execute(f"ALTER DATABASE deputy SET default_transaction_read_only = {word}")
            own.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        connection.close()

    yield switch
    switch(False)


@pytest.mark.slow
def test_a_read_only_database_is_said_to_be_and_nothing_is_half_done(house, world, ask, ended, read_only):
    cluster = house.common_cluster()
    _, secret = Token.objects.issue(world.project.organization, world.user, scopes=list(SCOPES))
    web = Web(house)
    try:
        web.wait()
        waiting, busy = ask("asking"), ask("naps 6")
        until(parked(waiting), said=lambda: house.report(waiting))
        until(lambda: house.witness.count([busy]))
        read_only(True)
        with web.api(secret) as api:
            asked = {"project": world.project.pk, "goal": "brief"}
            for path, body in (("runs/", asked), (f"runs/{waiting}/message/", {"content": "2026"})):
                refused = api.post(path, json=body)
                assert (refused.status_code, refused.json()["code"]) == (503, "READ_ONLY"), refused.text
                assert "Retry-After" in refused.headers
            assert api.get(f"runs/{waiting}/").json()["status"] == "waiting"
            time.sleep(3)
            read_only(False)
            assert api.post(f"runs/{waiting}/message/", json={"content": "2026"}).status_code == 200
            later = api.post("runs/", json=asked).json()["id"]
    finally:
        web.end()
    for run in (waiting, busy, later):
        assert ended(run) == "completed", house.report(run)
    assert set(house.witness.count([busy])) == {"nap"}
    assert cluster.process.poll() is None
    in_order(house, world)


@pytest.fixture
def small_disk(house):
    """The database lies on a disk of its own; call it to have it full, or with room again."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can make a small disk")
    place = Path(tempfile.mkdtemp(prefix="deputy-disk-"))
    made = ["mount", "-t", "tmpfs", "-o", "size=300m,mode=755", "tmpfs", str(place)]
    if subprocess.run(made, capture_output=True).returncode:
        place.rmdir()
        pytest.skip("no disk can be mounted here")
    ballast = place / "ballast"
    tables = place / "tables"
    tables.mkdir(mode=0o700)
    owner = house.server.place.data.stat()
    os.chown(tables, owner.st_uid, owner.st_gid)

    def move(where):
        connection.close()
        with house.beside() as own:
            own.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'deputy'")
            own.execute(f"ALTER DATABASE deputy SET TABLESPACE {where}")

    house.end_common()
    with psycopg.connect(house.url, autocommit=True) as own:
        own.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
    move("small")

    def fill(full):
        if not full:
            ballast.unlink(missing_ok=True)
            return
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(65_536))
            except OSError:
                pass

    yield fill
    fill(False)
    house.end_clusters()
    move("pg_default")
    with psycopg.connect(house.url, autocommit=True) as own:
        own.execute("DROP TABLESPACE small")
    subprocess.run(["umount", str(place)], check=True)
    place.rmdir()


@pytest.mark.slow
def test_a_full_disk_is_said_to_be_and_nothing_is_half_done(house, world, ask, ended, small_disk):
    cluster = house.cluster()
    _, secret = Token.objects.issue(world.project.organization, world.user, scopes=list(SCOPES))
    web = Web(house)
    try:
        web.wait()
        waiting, busy = ask("asking"), ask("naps 6")
        until(parked(waiting), said=lambda: house.report(waiting))
        until(lambda: house.witness.count([busy]))
        small_disk(full=True)
        with web.api(secret) as api:
            asked = {"project": world.project.pk, "goal": "brief", "context": "x" * 150_000}
            refused = until(lambda: no_room(api, asked))
            assert refused.json()["code"] == "DISK_FULL", refused.text
            assert api.get(f"runs/{waiting}/").json()["status"] == "waiting"
            time.sleep(3)
            small_disk(full=False)
            assert api.post(f"runs/{waiting}/message/", json={"content": "2026"}).status_code == 200
            later = api.post("runs/", json=asked | {"context": ""}).json()["id"]
    finally:
        web.end()
    for run in (waiting, busy, later):
        assert ended(run) == "completed", house.report(run)
    assert cluster.process.poll() is None
    in_order(house, world)


def no_room(api, asked):
    """The first answer that is no 202: what is free in a page is used before the disk is asked for more."""
    answer = api.post("runs/", json=asked | {"context": random.randbytes(75_000).hex()})
    return answer if answer.status_code != 202 else None


# many


@pytest.mark.slow
def test_a_thousand_parked_runs_survive_a_restart_and_complete_in_any_order(house, world, ask, ended):
    first = house.cluster()
    runs = [ask("asking") for _ in range(1000)]
    ours = Run.objects.filter(pk__in=runs)
    until(lambda: ours.filter(status="waiting").count() == 1000, seconds=300, said=first.said)
    first.end()
    second = house.cluster(WORKERS="1")
    assert ended(ask("brief")) == "completed"  # the only worker is free: 1,000 waiting runs hold none
    assert not ours.exclude(status="waiting").exists()
    assert not ours.exclude(lease_expires_at=None).exists()

    for run in random.Random(16).sample(runs, 1000):
        message(run, "2026", "mia")
    until(lambda: not ours.exclude(status="completed").exists(), seconds=300, said=second.said)
    for run in runs[::50]:
        check_logs(run)
    in_order(house, world)
