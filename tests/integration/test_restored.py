"""A restored database says nothing of what came after: what may have been done is not repeated by guess."""

import io
from datetime import timedelta

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.utils import timezone

from common.db import own_connection, session_lock
from common.env import BadSetting
from common.postgres import lineage
from runs.actions import schedule as schedules
from runs.execution import executor, external
from runs.log.verify import verify
from runs.models import (
    Approval,
    Carrier,
    DatabaseLine,
    OutboundCall,
    Run,
    RunEvent,
    Schedule,
    ScheduledRun,
    ToolCall,
    Wait,
)
from runs.tools.base import ToolContext
from runs.workers import line, tasks
from runs.workers.sweep import sweep
from tests.acting import approve, at_the_pages, request_call, resolve, start
from tests.factories import MembershipFactory, permit
from tests.plays import LETTER
from tests.scripted import call, in_order, say

from .helpers import types
from .test_outbound_calls import carry, taken

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
EFFECT = call(("effect", {}))


@pytest.fixture
def effects(add_tool):
    """The keys under which the effects of a tool that an outside service does once for a key happened."""
    keys = []

    @add_tool(mutating=True, idempotent=True)
    def effect(run: ToolContext):
        keys.append(run.idempotency_key)
        return "done"

    return keys


@pytest.fixture
def think(ask):
    """Start a run and take its first step as a worker does, with carriers to carry what is slow."""

    def _think(*replies):
        run = ask(in_order(*replies), drive=False)
        tasks.advance(run.pk)
        return Run.objects.get(pk=run.pk)

    return _think


@pytest.fixture
def ada(world):
    """Somebody who may decide, and say what became of a call."""
    user = MembershipFactory(organization=world.organization).user
    permit(user, "runs.view_run", "runs.decide_approval", "runs.resolve_review")
    return user


def restore(*said):
    """What the command answers, once all that worked on the database has been gone for a while."""
    Carrier.objects.update(seen_at=timezone.now() - HOUR, lease_expires_at=timezone.now() - HOUR)
    out = io.StringIO()
    call_command("after_restore", *said, stdout=out)
    return out.getvalue()


def go_on(run, times=4):
    """Steps and carriers in turn, as far as the run goes; returns it."""
    for _ in range(times):
        carry("later")
        for each in Run.objects.filter(root_id=run.root_id):
            tasks.resume(each.pk)
            tasks.advance(each.pk)
    run.refresh_from_db()
    return run


def in_review(run):
    return run.status == "waiting" and run.waiting_reason == "review"


def test_what_a_restored_run_would_do_outside_waits_for_a_person_first(think, ada, effects):
    run = think(EFFECT, say("Done."))  # its model was being asked, and has perhaps called the tool since
    assert "1 runs had not ended" in restore()

    assert in_review(go_on(run)) and effects == []
    assert types(run).count("run.restored") == 1
    assert RunEvent.objects.get(run=run, type="tool.outcome_unknown").payload["restored"] is True
    waiting = ToolCall.objects.get(run=run)
    assert waiting.status == "unknown"

    resolve(run.pk, waiting.call_id, "retry", ada)
    assert go_on(run).status == "completed" and len(effects) == 1
    assert not verify(run.pk).broken


def test_a_person_says_that_it_has_happened_and_the_run_goes_on_without_doing_it(think, ada, effects):
    run = think(EFFECT, say("Done."))
    restore()
    go_on(run)
    resolve(run.pk, ToolCall.objects.get(run=run).call_id, "succeeded", ada, result="sent")

    assert go_on(run).status == "completed" and effects == []


def test_a_call_that_no_carrier_had_taken_at_that_time_may_have_been_made_since(think, add_tool):
    done = []

    @add_tool(mutating=True)
    def letter(run: ToolContext):
        done.append(run.call_id)
        return "sent"

    run = think(call(("letter", {})), say("Done."))
    carry()
    tasks.resume(run.pk)
    assert (waiting := OutboundCall.objects.get(run=run)).kind == "tool" and waiting.holder == ""
    assert f"call {waiting.call_id} of {run.pk}" in restore()

    assert in_review(go_on(run)) and done == []


def test_a_call_that_had_begun_and_may_be_repeated_is_made_again_with_its_key(think, effects):
    run = think(EFFECT, say("Done."))
    carry()
    tasks.resume(run.pk)
    taken("of before")
    key = ToolCall.objects.get(run=run).idempotency_key
    restore()

    assert go_on(run).status == "completed" and effects == [key]


def test_an_approval_given_after_the_restore_is_not_enough(ask, ada, rule):
    run = ask(in_order(call(("send_email", LETTER)), say("Done.")))
    approval = Approval.objects.get(run=run, status="pending")
    restore()
    approve(approval.pk, ada)
    executor.run(run.pk)

    run.refresh_from_db()
    assert in_review(run)
    assert Approval.objects.get(pk=approval.pk).consumed_at is None  # what was decided holds for the retry


def test_a_group_that_a_restored_run_asks_again_is_in_the_same_doubt(think, effects):
    run = think(DOWN, EFFECT, say("One."), say("Two."), say("Three."), say("Done."))
    restore()
    go_on(run)

    child = Run.objects.get(parent_run=run)
    assert in_review(child) and effects == []


def test_what_is_started_after_the_restore_and_what_only_reads_is_in_no_doubt(think, effects, add_tool):
    restore()
    assert go_on(think(EFFECT, say("Done."))).status == "completed" and len(effects) == 1

    @add_tool()
    def look():
        return "seen"

    old = think(call(("look", {})), say("Done."))
    restore()
    assert go_on(old).status == "completed"


def test_a_call_of_an_outside_agent_is_in_doubt_as_well(world, effects):
    run_id = start(user=world.user, project=world.project, goal="Outside", driver="external")
    restore()
    request_call(run_id, "c1", "effect", {})
    external.execute(ToolCall.objects.get(run=run_id).pk)

    assert Wait.objects.filter(run_id=run_id, kind="review", resolved_at=None).exists() and effects == []


def test_who_is_asked_twice_what_became_of_a_call_answers_twice(think, add_tool, ada):
    done = []

    @add_tool(mutating=True)
    def letter(run: ToolContext):
        done.append(run.call_id)
        return "sent"

    run = think(call(("letter", {})), say("Done."))
    restore()
    go_on(run)
    call_id = ToolCall.objects.get(run=run).call_id
    resolve(run.pk, call_id, "retry", ada)
    tasks.advance(run.pk)
    taken("dies")  # the carrier that has the letter dies with it
    Carrier.objects.update(lease_expires_at=timezone.now() - HOUR)
    sweep()
    tasks.resume(run.pk)

    run.refresh_from_db()
    assert in_review(run) and done == []  # the first 'try again' does not count for the second time


def test_processes_act_on_no_restored_database_until_somebody_has_looked(monkeypatch, settings):
    monkeypatch.setattr(lineage, "guarded", False)
    line.guard()  # the first notes where it is
    noted = DatabaseLine.objects.get()
    line.guard()

    for change in ({"timeline": "0000FFFF"}, {"system": "1"}):
        monkeypatch.setattr(lineage, "guarded", True)
        DatabaseLine.objects.update(**change)
        with pytest.raises(BadSetting, match="after_restore"):
            line.guard()
        connection.close()
        with pytest.raises(psycopg.OperationalError, match="restored"):
            own_connection()
        monkeypatch.setattr(lineage, "guarded", False)
        assert "Noted" in restore("--nothing-lost")
        assert DatabaseLine.objects.values("system", "timeline").get() == {
            "system": noted.system,
            "timeline": noted.timeline,
        }

    DatabaseLine.objects.update(timeline="0000FFFF")
    settings.SYNCHRONOUS_STANDBY = True
    line.guard()  # the standby that has taken over has everything
    assert DatabaseLine.objects.get().timeline == noted.timeline
    DatabaseLine.objects.update(system="1")
    with pytest.raises(BadSetting):
        line.guard()


def test_the_command_refuses_while_somebody_works_and_what_is_no_time():
    for bad in ("yesterday", "2026-13-45T00:00:00Z", "2026-05-01T12:00:00"):
        with pytest.raises(CommandError, match="no time with its zone"):
            restore("--stopped-at", bad)
    Carrier.objects.create(name="car_1", host="here", lease_expires_at=timezone.now())
    with pytest.raises(CommandError, match="are running"):
        call_command("after_restore")


def test_due_times_of_which_nobody_knows_whether_they_were_taken_start_nothing(world):
    actor = at_the_pages(world.user, world.organization.pk)
    said = {"project": world.project, "goal": "News?", "time_zone": "UTC", "cron": "* * * * *"}
    before = {name: schedules.create(actor, {**said, "on_missed": "once"}) for name in ("unknown", "after")}
    Schedule.objects.update(next_at=schedules.now() - HOUR)
    Schedule.objects.filter(pk=before["after"].pk).update(next_at=schedules.now() - timedelta(minutes=9))

    stopped = (schedules.now() - timedelta(minutes=10)).isoformat()
    assert "1 schedules were due meanwhile" in restore("--stopped-at", stopped)
    assert Run.objects.count() == 0
    (entry,) = ScheduledRun.objects.all()
    assert (entry.schedule, entry.outcome, entry.code) == (before["unknown"], "missed", "RESTORED")
    assert entry.times >= 50
    assert Schedule.objects.filter(next_at__lt=schedules.now()).count() == 2  # late, as ever


def test_behind_a_pooler_a_connection_that_stays_open_is_looked_at_again(monkeypatch):
    monkeypatch.setattr(lineage, "guarded", False)
    line.guard()
    connection.ensure_connection()
    DatabaseLine.objects.update(timeline="0000FFFF")
    assert connection.is_usable()  # its session is with the server that it was made with
    monkeypatch.setitem(connection.settings_dict, "POOLED", True)
    assert not connection.is_usable()
    with pytest.raises(psycopg.OperationalError, match="restored"):
        own_connection()


def test_behind_a_pooler_a_lock_of_a_session_has_a_session_of_its_own(monkeypatch, settings):
    settings.SESSION_DATABASE = "beside"
    monkeypatch.setitem(connections.databases, "beside", connection.settings_dict)
    with session_lock("42") as first, session_lock("42") as second:
        assert (first, second) == (True, False)
    with session_lock("42") as again:
        assert again
