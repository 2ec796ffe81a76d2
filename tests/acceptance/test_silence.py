"""What used to fail without a word: lost sessions, rows held by others, dead senders, too few connections."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from common import connections
from groups.models import Token
from launch.home import PROJECT
from policy.models import Capability, CapabilityRule
from runs.models import Approval, ApprovalNotice, QueueMessage, Run
from tests.acceptance.house import MODEL, House, children, status, until
from tests.acceptance.proxy import Proxy
from tests.acceptance.web import Web
from tests.acceptance.witness import MailSink
from tests.acting import start
from tests.factories import MembershipFactory

LEASE = 6
SOON = 20  # seconds: a few more than it takes on an idle machine


@pytest.fixture
def proxy(house: House):
    proxy = Proxy(house.server.place.socket_folder / ".s.PGSQL.5432")
    yield proxy
    proxy.close()


@pytest.fixture
def behind(house, proxy):
    """A cluster that reaches PostgreSQL through the proxy."""
    url = proxy.url("deputy", "deputy")
    return house.cluster(DATABASE_URL=url, LEASE_SECONDS=str(LEASE))


def crashes(*runs):
    return set(Run.objects.filter(root__in=runs).values_list("crashes", flat=True))


# sessions


@pytest.mark.slow
def test_workers_whose_sessions_are_gone_without_a_word_notice_and_go_on(house, ask, ended, proxy, behind):
    assert ended(ask("brief")) == "completed"
    assert proxy.fall_silent(new=False) >= 3
    runs = [ask("team keyed_effect"), ask("brief")]

    for run in runs:
        assert ended(run, SOON + LEASE) == "completed", house.report(run)
    assert "gone without a word" in behind.said()
    assert crashes(*runs) == {0}


@pytest.mark.slow
def test_a_cluster_says_that_its_database_does_not_answer_and_comes_back(house, ask, ended, proxy, behind):
    busy = ask("naps 6")
    until(lambda: house.witness.count([busy]))
    proxy.fall_silent(new=True)
    began = time.monotonic()
    until(lambda: "gone without a word" in behind.said(), said=behind.said)
    print(f"noticed after {time.monotonic() - began:.1f} s")
    time.sleep(LEASE)
    later = ask("brief")
    proxy.forward_again()

    for run in (later, busy):
        assert ended(run) == "completed", house.report(run)
    assert crashes(busy, later) == {0}
    assert behind.process.poll() is None


# rows


@contextmanager
def held(house, runs):
    """Somebody else, in psql or a migration, holds these runs' rows."""
    with psycopg.connect(house.url) as own:
        own.execute("SELECT id FROM runs_run WHERE id = ANY(%s) FOR UPDATE", [runs])
        yield
        own.rollback()


@pytest.mark.slow
def test_rows_that_somebody_else_holds_stop_no_worker(house, ask, ended):
    house.end_common()
    locked = [ask("brief"), ask("brief")]
    with held(house, locked):
        cluster = house.cluster()
        until(lambda: "locked by somebody else" in cluster.said(), said=cluster.said)
        for run in [ask("brief") for _ in range(4)]:
            assert ended(run, SOON) == "completed", house.report(run)
        assert {status(run) for run in locked} == {"pending"}

    for run in locked:
        assert ended(run) == "completed", house.report(run)
    assert crashes(*locked) == {0}


@pytest.mark.slow
def test_rows_that_somebody_else_holds_stop_no_web_thread(house, world, ask):
    house.end_common()
    _, secret = Token.objects.issue(
        world.project.organization, world.user, scopes=["runs:read", "runs:write"]
    )
    locked, other = [ask("asking"), ask("asking")], ask("brief")
    web, answers = Web(house), []
    try:
        web.wait()
        with held(house, locked), web.api(secret) as api:

            def ask_for(run):
                answers.append(api.post(f"runs/{run}/cancel/"))

            asking = [threading.Thread(target=ask_for, args=(run,)) for run in locked * 12]
            for one in asking:
                one.start()
            for _ in range(5):
                began = time.monotonic()
                assert web.browser().get("/healthz").json() == {"status": "ok"}
                print(f"healthz {1000 * (time.monotonic() - began):.0f} ms")
                assert api.get(f"runs/{other}/").status_code == 200
                print(f"another run's page {1000 * (time.monotonic() - began):.0f} ms")
            for one in asking:
                one.join()
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(503, "LOCKED")] * 24
        assert {answer.headers["Content-Type"] for answer in answers} == {"application/problem+json"}
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers)
        assert {status(run) for run in locked} == {"pending"}
        with web.api(secret) as api:
            assert api.post(f"runs/{locked[0]}/cancel/").status_code == 200
    finally:
        web.end()


# notices


class Stuck(MailSink):
    """A mail server that takes its time with whom it does not know yet."""

    def __init__(self):
        super().__init__()
        self.connected = []
        self.go_on = threading.Event()
        handler = self.server.RequestHandlerClass
        handle, sink = handler.handle, self

        def slow(self):
            sink.connected.append(self.client_address)
            sink.go_on.wait(60)
            with suppress(ConnectionError):  # who was killed listens no more
                handle(self)

        handler.handle = slow


def test_an_approver_is_told_by_somebody_else_when_the_sender_was_killed(house, world, ask):
    organization = world.project.organization
    capability = Capability.objects.create(organization=organization, name="mail")
    capability.bindings.create(organization=organization, pattern="send_*")
    CapabilityRule.objects.create(organization=organization, capability=capability, effect="require_approval")
    addresses = ("a@example.org", "b@example.org")
    for address in addresses:
        MembershipFactory(organization=organization, user__email=address, role="decider")
    mail = Stuck()
    cluster = house.cluster(DEPUTY_SMTP=mail.address)
    try:
        with override_settings(DEPUTY_MODEL=MODEL):
            start(user=world.user, project=world.project, goal="letter 0", context=world.group.pk)
        until(lambda: Approval.objects.filter(run__organization=organization).exists(), said=cluster.said)
        notices = ApprovalNotice.objects.filter(organization=organization)
        under_way = lambda: notices.filter(status="sending").count()  # noqa: E731
        until(lambda: under_way() == 2 and len(mail.connected) >= 2, said=cluster.said)
        for pid in cluster.carriers():
            cluster.kill(pid)
        killed = time.monotonic()
        mail.go_on.set()
        told = lambda: {to for one in mail.mails for to in one.recipients}  # noqa: E731
        until(lambda: told() >= {*addresses}, SOON, said=cluster.said)  # tests before have left others
        print(f"both told {time.monotonic() - killed:.1f} s after the kill")
        until(lambda: notices.filter(status="sent").count() == 2, said=cluster.said)
    finally:
        mail.go_on.set()
        mail.close()


@pytest.mark.slow
def test_what_a_whole_cluster_had_comes_back_to_another_within_seconds(house, ask, ended):
    house.end_common()
    busy = [ask("brief"), ask("brief")]
    with held(house, busy):  # so that the workers cannot be done before they die
        first = house.cluster()
        until(lambda: QueueMessage.objects.exclude(holder="").count() >= 2, said=first.said)
        for pid in [first.process.pid, *children(first.process.pid)]:
            first.inner()
            first.kill(pid)
        first.process.wait()
        held_by = set(QueueMessage.objects.exclude(holder="").values_list("holder", flat=True))
    house.cluster()

    assert held_by
    until(lambda: not QueueMessage.objects.filter(holder__in=held_by).exists(), seconds=30)
    for run in busy:
        assert ended(run) == "completed", house.report(run)


# connections


@pytest.mark.slow
def test_a_cluster_needs_no_more_connections_than_it_says(house, ask, ended):
    house.cluster(WORKERS="4")
    runs = [ask("naps 3") for _ in range(12)]
    most = 0
    with house.beside() as own:
        while any(status(run) not in ("completed", "failed") for run in runs):
            (count,) = own.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'deputy' AND pid <> %s",
                [connection.connection.info.backend_pid],
            ).fetchone()
            most = max(most, count)
            time.sleep(0.1)
    print(f"{most} connections, {connections.of_cluster(4, 1, 8)} said")

    assert {ended(run) for run in runs} == {"completed"}
    assert 4 < most <= connections.of_cluster(4, 1, 8)


def test_a_cluster_for_which_the_server_has_too_few_connections_is_refused_in_one_line(house):
    with psycopg.connect(house.url, autocommit=True) as own:
        own.execute("ALTER ROLE deputy CONNECTION LIMIT 20")
        try:
            done = subprocess.run(
                [sys.executable, "manage.py", "cluster"],
                cwd=PROJECT,
                env=house.environment(WORKERS="64"),
                capture_output=True,
                text=True,
                timeout=60,
            )
        finally:
            own.execute("ALTER ROLE deputy CONNECTION LIMIT -1")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "WORKERS=64 needs" in done.stderr
