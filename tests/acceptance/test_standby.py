"""Lists read a streaming replica: one that follows, one that has stopped following, and one that is gone."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from groups.member_permissions import LOOKS, STARTS
from groups.models import Membership, Token
from groups.scopes import SCOPES
from launch import binaries, postgres
from policy.models import CapabilityRule
from runs.models import Approval
from tests.acceptance.house import MODEL, House, status, until
from tests.acceptance.proxy import Proxy
from tests.acceptance.web import Web
from tests.acting import start
from tests.factories import MembershipFactory, ProjectFactory, permit

# every statement in the server's log, which is how it is known which server was asked what
LOGGING = ("log_statement=all", "log_line_prefix=")
WATCHER = "0123456789abcdef"


class Standby:
    """A server that follows the house's."""

    def __init__(self, house: House) -> None:
        self.home = postgres.temporary_home()
        self.server = postgres.Server(self.home, durable=False, temporary=True)
        self.server.options += LOGGING
        where, leader = self.server.place, house.server.place
        programs = postgres._reachable(leader, binaries.find())
        folder = Path(tempfile.mkdtemp(prefix="deputy-standby-"))
        leader.own(folder)
        copy = folder / "data"
        command = [programs / "pg_basebackup", "--pgdata", copy, "--checkpoint=fast", "--write-recovery-conf"]
        command += ["-h", leader.socket_folder, "-p", postgres.PORT, "-U", postgres.DATABASE]
        done = subprocess.run(
            command,
            env=postgres.clean_environment(),
            cwd="/",
            capture_output=True,
            text=True,
            **leader.popen(),
        )
        assert done.returncode == 0, done.stderr
        shutil.move(copy, where.data)
        folder.rmdir()
        self.server.start()
        self.url = postgres.url(self.home)
        self.asked("SELECT 1")

    def asked(self, sql: str) -> object:
        with psycopg.connect(self.url, autocommit=True) as own:
            return own.execute(sql).fetchone()[0]

    def close(self) -> None:
        self.server.leave()


def statements(server: postgres.Server) -> list[str]:
    """What the server was asked so far."""
    log = server.place.log.read_text(errors="replace")
    found = re.findall(
        r"^LOG:  (?:execute [^:]+|statement): (.*?)(?=^[A-Z]+:  |\Z)", log, re.MULTILINE | re.DOTALL
    )
    return [one.strip() for one in found]


def asked_since(server: postgres.Server, before: int) -> list[str]:
    return statements(server)[before:]


@pytest.fixture
def house(django_db_blocker, their_tools) -> Iterator[House]:
    before = dict(connection.settings_dict)
    connection.close()
    house = House(*LOGGING)
    connection.settings_dict.update(house.settings())
    with django_db_blocker.unblock(), override_settings(QUEUE_ENABLED=True, DEPUTY_MODEL=MODEL):
        yield house
        house.end_clusters()
        connection.close()
    connection.settings_dict.clear()
    connection.settings_dict.update(before)
    house.close()


@pytest.fixture
def standby(house):
    standby = Standby(house)
    yield standby
    standby.close()


@pytest.fixture
def people(house):
    """A person who decides, with a program of theirs; and a run that waits for a decision."""
    project = ProjectFactory()
    owner = MembershipFactory(organization=project.organization).user
    member = MembershipFactory(organization=project.organization)
    permit(member.user, *LOOKS, *STARTS, "runs.decide_approval", "runs.view_runevent")
    CapabilityRule.objects.create(
        organization=project.organization, tool="keyed_effect", effect="require_approval", name="asked"
    )
    token, secret = Token.objects.issue(project.organization, member.user, scopes=list(SCOPES))
    return SimpleNamespace(project=project, owner=owner, member=member, token=token, secret=secret)


@pytest.fixture
def web(house, standby):
    web = Web(house, DATABASE_REPLICA_URL=standby.url, METRICS_TOKEN=WATCHER)
    web.wait()
    yield web
    web.end()


def ids(answer) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {row["id"] for row in answer.json()["results"]}


def begun(api, people) -> str:
    answer = api.post("runs/", json={"project": people.project.slug, "goal": "brief"})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def watched(web) -> dict:
    answer = web.api(WATCHER).get(f"{web.url}/readyz")
    return answer.json()["checks"]["replica"]


def read_from_replica(api, standby) -> bool:
    """Whether the list is read there now."""
    before = len(statements(standby.server))
    assert api.get("runs/").status_code == 200
    return any('FROM "runs_run"' in one for one in asked_since(standby.server, before))


@pytest.mark.slow
def test_lists_read_a_replica_that_follows_and_no_other(house, standby, people, web):
    house.cluster()  # which notes the timeline
    waits = start(user=people.owner, project=people.project, goal="alone keyed_effect")
    until(lambda: Approval.objects.filter(run=waits).exists())
    api = web.api(people.secret)
    until(lambda: read_from_replica(api, standby))

    # what was just written is there, from the replica, and who asks is known by the primary
    mine = {begun(api, people) for _ in range(3)}
    until(lambda: {status(run) for run in mine} == {"completed"})
    here, there = len(statements(house.server)), len(statements(standby.server))
    assert ids(api.get("runs/")) == mine | {waits}
    on_replica = Counter(one.split()[0] for one in asked_since(standby.server, there))
    assert on_replica["SELECT"] >= 2 and set(on_replica) == {"SELECT"}
    assert any("groups_token" in one for one in asked_since(house.server, here))
    assert not any("groups_token" in one for one in asked_since(standby.server, there))
    assert not [one for one in asked_since(house.server, here) if 'FROM "runs_run"' in one]
    assert watched(web) == {"ok": True}

    # the replica stops following: nobody sees what is no more, or misses what is new
    standby.asked("SELECT pg_wal_replay_pause()::text")
    other, other_secret = Token.objects.issue(
        people.project.organization, people.member.user, scopes=list(SCOPES)
    )
    new = begun(api, people)
    assert ids(web.api(other_secret).get("runs/")) == mine | {waits, new}
    assert standby.asked(f"SELECT count(*) FROM runs_run WHERE id = '{new}'") == 0
    Token.objects.filter(pk=other.pk).update(revoked_at=other.created_at)
    assert web.api(other_secret).get("runs/").status_code == 401
    Membership.objects.filter(pk=people.member.pk).update(projects=[])
    assert ids(api.get("runs/")) == set()
    Membership.objects.filter(pk=people.member.pk).update(active=False)
    refused = api.get("runs/")
    assert refused.status_code == 403, refused.text
    Membership.objects.filter(pk=people.member.pk).update(active=True, projects=None)
    assert watched(web) == {"ok": False, "problem": "it lags behind"}

    # meanwhile people decide
    before = len(statements(standby.server))
    approval = Approval.objects.get(run=waits)
    headers = {"If-Match": f'"{approval.arguments_digest}"'}
    assert [row["id"] for row in api.get("approvals/", params={"status": "pending"}).json()["results"]] == [
        approval.pk
    ]
    assert api.post(f"approvals/{approval.pk}/approve/", json={}, headers=headers).status_code == 200
    until(lambda: status(waits) == "completed")
    assert not [one for one in asked_since(standby.server, before) if "approval" in one]

    standby.asked("SELECT pg_wal_replay_resume()::text")
    until(lambda: read_from_replica(api, standby))
    assert web.said().count("lists read the primary, not the replica") == 1
    assert web.said().count("lists read the replica again") == 1

    # it is killed: its sessions break, and it comes back
    pid = int((standby.server.place.data / "postmaster.pid").read_text().split("\n", 1)[0])
    os.kill(pid, signal.SIGKILL)
    assert ids(api.get("runs/")) == mine | {waits, new}
    until(lambda: read_from_replica(api, standby))
    # it is gone
    standby.close()
    assert ids(api.get("runs/")) == mine | {waits, new}
    assert watched(web) == {"ok": False, "problem": "it cannot be asked"}
    assert api.get("runs/").status_code == 200


@pytest.mark.slow
def test_a_replica_that_answers_nothing_holds_a_list_up_for_a_moment_only(house, standby, people):
    house.cluster()
    proxy = Proxy(standby.server.place.socket_folder / ".s.PGSQL.5432")
    web = Web(house, DATABASE_REPLICA_URL=proxy.url("deputy", "deputy"))
    try:
        web.wait()
        api = web.api(people.secret)
        until(lambda: read_from_replica(api, standby))
        assert proxy.fall_silent(new=True) >= 1
        before = len(statements(standby.server))
        assert api.get("runs/").status_code == 200  # within the time that the client has
        assert "it cannot be asked" in web.said()
        proxy.forward_again()
        until(lambda: read_from_replica(api, standby))
        assert len(statements(standby.server)) > before
    finally:
        web.end()
        proxy.close()
