"""Lists may be read from a replica; decisions, permissions and what is not there yet are the primary's."""

import logging
import re

import pytest
from django.db import InternalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from common import replica
from common.db import execute, row
from common.env import BadSetting
from common.postgres import lineage
from config import health
from runs.models import Approval, DatabaseLine, Run
from tests.admin_world import client_of, superuser, tenant, url
from tests.factories import MembershipFactory

from .api_client import Api, permit

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "replica"])

LISTS = {
    "runs/": "runs_run",
    "runs/{run}/children/": "runs_run",
    "runs/{run}/events/": "runs_runevent",
    "audit/": "runs_runevent",
    "approvals/decisions/": "runs_approvaldecision",
    "approvals/decisions/export/?as=jsonl": "runs_approvaldecision",
    "audit/changes/": "groups_change",
    "webhooks/deliveries/": "runs_webhookdelivery",
}
PAGES = {
    "runs_run_changelist": "runs_run",
    "runs_runevent_changelist": "runs_runevent",
    "runs_toolcall_changelist": "runs_toolcall",
    "runs_approvaldecision_changelist": "runs_approvaldecision",
    "runs_webhookdelivery_changelist": "runs_webhookdelivery",
    "groups_change_changelist": "groups_change",
    "runs_decided": "runs_approvaldecision",
    "runs_decisions": "runs_runevent",
    "runs_decisions_export": "runs_runevent",
}
AND_THEN = ";;"
STARTED = "pg_postmaster_start_time()"
# by which people and programs are known, and what they may do
WHO = ("groups_token", "groups_membership", "groups_customrole", "django_session", "groups_identityprovider")


def note_the_line():
    connection.ensure_connection()
    lineage.note(connection.connection, *lineage.here(connection.connection))


@pytest.fixture(scope="module", autouse=True)
def named(django_db_setup):
    """A replica that has everything at once: the same database, by connections of the replica's kind."""
    kind = {
        "ENGINE": "common.postgres.replica",
        "TEST": {**connection.settings_dict["TEST"], "MIRROR": "default"},
    }
    connections.databases[replica.ALIAS] = {**connection.settings_dict, **kind}
    yield
    del connections.databases[replica.ALIAS]
    del connections[replica.ALIAS]


@pytest.fixture
def beside(monkeypatch, transactional_db):
    """The settings of its connections."""
    monkeypatch.setattr(replica, "_pause", replica._Pause())
    monkeypatch.setattr(replica, "WAIT_SECONDS", 0.0)
    note_the_line()
    yield connections[replica.ALIAS].settings_dict
    connections[replica.ALIAS].close()


def read_from():
    return replica.reading(lambda alias: alias)


def statements_of(work):
    """What `work` returns, and its statements on the replica and on the primary, each as one text."""
    with (
        CaptureQueriesContext(connections[replica.ALIAS]) as there,
        CaptureQueriesContext(connection) as here,
    ):
        answer = work()
        if getattr(answer, "streaming", False):
            b"".join(answer.streaming_content)
    return (answer, *(AND_THEN.join(one["sql"] for one in each.captured_queries) for each in (there, here)))


def test_lists_are_read_from_the_replica_and_who_asks_from_the_primary(beside):
    made = tenant()
    everything = superuser(made)
    member = MembershipFactory(organization=made.organization).user
    names = ("runs.view_run", "runs.view_runevent", "groups.view_change", "runs.view_webhookendpoint")
    api = Api(permit(member, *names, "runs.change_webhookendpoint", "decide_approval"), made.organization)
    browser = client_of(everything)
    run = Approval.objects.first().run_id
    asked = {path: lambda path=path: api.get(path.format(run=run)) for path in LISTS}
    asked |= {name: lambda name=name: browser.get(url(name)) for name in PAGES}
    counts = {}
    for name, ask in asked.items():
        answer, there, here = statements_of(ask)
        table = re.compile(
            rf'FROM "?{(LISTS | PAGES)[name]}(?!"? U0| c JOIN whose| o WHERE o.model| c\s+WHERE c.created)'
        )  # beside the list
        # U0 is of a number, and the others of what others have lately changed of an account or its place.
        assert answer.status_code == 200, (name, answer.content[:300])
        assert table.search(there), name
        assert not table.search(here) or "children" in name, name  # whose children is asked first
        assert not [one for one in WHO if one in there], name
        assert "groups_token" in here or "django_session" in here, name
        counts[name] = (there.count(AND_THEN) + 1, here.count(AND_THEN) + 1)
    assert counts["audit/"] == (2, 3)  # the position and the list; who asks, what they may do, the position
    assert counts["runs_toolcall_changelist"] == (2, 6)


def test_whoever_decides_reads_the_primary(beside, monkeypatch):
    made = tenant()
    everything = superuser(made)
    decider = MembershipFactory(organization=made.organization).user
    api = Api(permit(decider, "decide_approval"), made.organization)
    approval = made.approval
    browser = client_of(everything)
    asked = []

    def refuse(*_):
        asked.append(1)
        raise AssertionError("the replica was asked")

    monkeypatch.setattr(connections[replica.ALIAS], "connect", refuse)
    assert api.get("runs/").status_code == 500 and asked  # or nothing below would show anything
    asked.clear()

    path = f"approvals/{approval.pk}/"
    pages = (
        url("runs_approval_changelist"),
        url("runs_approval_change", approval.pk),
        "/",
        f"/{path}",
    )
    looked = [api.get("approvals/"), api.get(path), api.get(f"runs/{approval.run_id}/")]
    looked += [browser.get(page) for page in pages]
    body = {"arguments_digest": approval.arguments_digest}
    acted = [
        api.post(f"{path}approve/", body),
        api.post(f"runs/{approval.run_id}/message/", {"content": "Go"}),
    ]
    acted += [api.post(f"runs/{approval.run_id}/cancel/")]
    assert [one.status_code for one in looked] == [200] * len(looked)
    assert acted[0].status_code == 200, acted[0].content
    assert Approval.objects.get(pk=approval.pk).status == "approved"
    assert all(one.status_code < 500 for one in acted)
    assert not asked


def test_the_primary_is_read_while_the_replica_lacks_anything(beside, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "runs.replica")
    assert read_from() == "replica"
    with transaction.atomic():
        assert read_from() == "default"  # what this transaction has written is nowhere else
    assert read_from() == "replica" and not caplog.messages

    def says(name, old, new):
        monkeypatch.setattr(replica, name, getattr(replica, name).replace(old, new))

    cases = [
        (replica.BEHIND, lambda: says("REPLAYED", "NOT pg_is_in_recovery() OR", "false AND")),
        (replica.ANOTHER, lambda: says("REPLAYED", "timeline = %s", "timeline <> %s")),
        (replica.ANOTHER, lambda: says("COMMITTED", STARTED, f"({STARTED} - interval '1 s')")),
        (replica.UNKNOWN, lambda: DatabaseLine.objects.update(timeline="0000FFFF")),
        (replica.UNTOLD, lambda: says("COMMITTED", "SELECT", "SELECT no_such_function(),")),
        (replica.NO_ANSWER, lambda: monkeypatch.setitem(beside, "HOST", "/nowhere")),
    ]
    replayed, committed = replica.REPLAYED, replica.COMMITTED
    for problem, happens in cases:
        caplog.clear()
        connections[replica.ALIAS].close()
        happens()
        assert [read_from() for _ in range(3)] == ["default"] * 3
        assert caplog.messages == [f"lists read the primary, not the replica: {problem}"], problem
        assert health.working()["replica"] == {"ok": False, "problem": problem}

        monkeypatch.setattr(replica, "REPLAYED", replayed)
        monkeypatch.setattr(replica, "COMMITTED", committed)
        beside["HOST"] = connection.settings_dict["HOST"]
        note_the_line()
        assert read_from() == "default"  # it is left alone for a while
        replica._pause.until = 0.0
        assert read_from() == "replica"
        assert caplog.messages[1:] == ["lists read the replica again"]
    assert health.working()["replica"] == {"ok": True}


def test_a_list_whose_replica_fails_meanwhile_is_read_from_the_primary(beside, caplog):
    def slow(alias):
        if alias == "replica":
            row("SELECT set_config('statement_timeout', '10ms', false)", using=alias)
            row("SELECT pg_sleep(5)", using=alias)
        return alias

    def cut(alias):
        if alias == "replica":
            row("SELECT pg_terminate_backend(pg_backend_pid())", using=alias)
        return alias

    assert replica.reading(slow) == "default" and not caplog.messages
    assert read_from() == "replica"  # it has refused one statement, and is there
    assert replica.reading(cut) == "default"
    assert caplog.messages == [f"lists read the primary, not the replica: {replica.NO_ANSWER}"]


def test_nothing_is_written_by_way_of_the_replica(beside):
    with pytest.raises(InternalError, match="read-only"):
        Run.objects.using(replica.ALIAS).update(goal="")
    execute("SELECT 1")


def test_a_process_starts_with_no_replica_that_lends_its_sessions_or_has_too_few(beside, monkeypatch):
    replica.check_sessions(5, "a web process")
    with pytest.raises(BadSetting, match="max_connections"):
        replica.check_sessions(10_000, "a web process")
    monkeypatch.setattr(replica, "share_session", lambda *_: True)
    with pytest.raises(BadSetting, match="DATABASE_REPLICA_URL leads to a pooler"):
        replica.check_sessions(5, "a web process")


def test_without_a_replica_nothing_is_asked_that_was_not_before(
    transactional_db, monkeypatch, django_assert_num_queries
):
    monkeypatch.delitem(connections.databases, replica.ALIAS)
    with django_assert_num_queries(0):
        assert read_from() == "default"
    assert "replica" not in health.working()
