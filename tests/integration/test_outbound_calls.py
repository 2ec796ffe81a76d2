"""What a run asks of the network is a row that nobody's process holds: taken in turn, answered once."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Annotated

import psycopg
import pytest
from django.db import connections
from django.utils import timezone

from runs.execution import executor
from runs.models import Carrier, OutboundCall, OutboundTarget, QueueMessage, Run, ToolCall
from runs.observe import doing
from runs.observe import outbound as observed
from runs.outbound import asking, packing
from runs.outbound import carrier as carrying
from runs.outbound.circuits import Circuits
from runs.outbound.table import Table
from runs.providers.base import ProviderError
from runs.tools.base import ToolContext, ToolError
from runs.workers import tasks
from runs.workers.sweep import sweep
from tests.acting import cancel, message, start
from tests.factories import OrganizationFactory
from tests.integration.api_client import Api
from tests.scripted import Scripted, call, in_order, say

from .helpers import chain_holds, types

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


@pytest.fixture
def think(world):
    """Start a run and take its first step as a worker does, with carriers to carry what is slow."""

    def _think(*replies, **fields):
        Scripted.play = staticmethod(in_order(*replies))
        run_id = start(user=world.user, project=world.project, goal="What do they charge?", **fields)
        tasks.advance(run_id)
        return Run.objects.get(pk=run_id)

    return _think


def taken(name="one", room=100, threads=100):
    """The calls a carrier of this name takes now."""

    async def take():
        table = Table(name)
        try:
            return (await table.take(room, threads, 0))[0]
        finally:
            await table.close()

    return asyncio.run(take())


def carry(name="one"):
    """Take all there is, ask, and write the answers; returns the ids of those that were wanted."""

    async def go():
        table, circuits = Table(name), Circuits(Table(name))
        with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(1) as gate:
            calls, _ = await table.take(100, 100, 0)
            answers = [(each, await asking.ask(each, pool, gate, None)) for each in calls]
            gate.submit(connections.close_all)
        for each, answer in answers:
            circuits.heard(each, answer)
        await circuits.note()
        written = await table.answer([(c.id, packing.text(a)) for c, a in answers], "deputy")
        await table.close()
        await circuits.table.close()
        return written

    return asyncio.run(go())


def gone(name):
    """The carrier of this name has died, and its lease is over."""
    Carrier.objects.filter(pk=name).update(lease_expires_at=timezone.now() - HOUR)


def waiting(organization, target="m:1", rank=1, count=1, **fields):
    """Calls that wait to be taken; returns their ids."""
    standing = {
        "attempt": 1,
        "kind": "model",
        "host": target,
        "most": 1000,
        "host_most": 1000,
        "request": "{}",
    }
    rows = [
        OutboundCall(
            organization=organization,
            run_id=f"run_{organization.pk}{target}{rank}{number}"[-31:],
            root_id="run_x",
            target=target,
            rank=rank,
            wake="",
            seconds=10,
            **standing | fields,
        )
        for number in range(count)
    ]
    return [row.pk for row in OutboundCall.objects.bulk_create(rows)]


# A run at its model


def test_a_run_whose_model_thinks_is_in_nobodys_hands_and_no_sweep_takes_it_for_lost(think):
    run = think(say("Nine euros."))

    assert (run.status, run.lease_expires_at, run.attempt) == ("running", None, 1)
    asked = OutboundCall.objects.get(run=run)
    assert (asked.target, asked.rank, asked.attempt, asked.threaded) == ("scripted", 0, 1, True)
    found = sweep()
    assert (found.leases, found.outbound) == (0, 0)
    assert Run.objects.get(pk=run.pk).crashes == 0


def test_the_answer_is_taken_once_by_whoever_comes_first(think):
    run = think(say("Nine euros."))
    tasks.resume(run.pk)  # too early
    assert Run.objects.get(pk=run.pk).status == "running"

    carry()
    for _ in range(3):
        tasks.resume(run.pk)

    run.refresh_from_db()
    assert (run.status, run.output, run.attempt) == ("completed", "Nine euros.", 1)
    assert types(run).count("message.created") == 2
    assert not OutboundCall.objects.exists()
    assert chain_holds(run)


def test_what_a_run_waits_for_is_told(think, world):
    first, second = think(say("a")), think(say("b"))
    shown = Api(world.user, world.organization).get(f"runs/{second.pk}/").json()["doing"]
    assert (shown["kind"], shown["name"], shown["under_way"], shown["before"]) == (
        "model",
        "scripted",
        False,
        1,
    )

    taken(room=1)
    assert doing.of(first).under_way
    assert [(found.under_way, found.waiting) for found in observed.calls()] == [(1, 1)]


def test_a_word_in_between_takes_the_question_back_and_is_in_the_next(think):
    run = think(say("Nine euros."))
    taken()
    message(run.pk, "In dollars, please", "mia")
    assert not OutboundCall.objects.exists()

    tasks.resume(run.pk)
    asked = OutboundCall.objects.get(run=run)
    assert "In dollars, please" in asked.request


def test_a_written_answer_is_kept_when_somebody_speaks(think):
    run = think(say("Nine euros."), say("Ten dollars."))
    carry()
    message(run.pk, "In dollars, please", "mia")
    tasks.resume(run.pk)
    carry()
    tasks.resume(run.pk)

    assert [type for type in types(run) if type == "message.created"] == ["message.created"] * 4
    assert Run.objects.get(pk=run.pk).output == "Ten dollars."


def test_the_answer_for_a_run_that_was_cancelled_is_not_wanted(think):
    run = think(say("Nine euros."))
    assert len(taken()) == 1
    cancel(run.pk)

    assert not OutboundCall.objects.exists()
    assert Run.objects.get(pk=run.pk).output is None


def test_an_answer_that_no_step_can_take_ends_the_run_after_three_times(think, monkeypatch):
    run = think(say("Nine euros."))
    carry()
    monkeypatch.setattr(executor, "record", lambda claimed, done: 1 / 0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            tasks.resume(run.pk)

    run.refresh_from_db()
    assert (run.status, run.error["code"]) == ("failed", "CRASHED")


def test_a_run_whose_time_is_over_before_its_call_went_out_fails(think):
    run = think(say("Nine euros."))
    past = timezone.now() - HOUR
    Run.objects.filter(pk=run.pk).update(deadline=past)
    OutboundCall.objects.update(expires_at=past)

    assert sweep().outbound == 1
    tasks.resume(run.pk)
    run.refresh_from_db()
    assert (run.status, run.error["code"]) == ("failed", "BUDGET_SECONDS")


# Carriers that die


def test_a_question_whose_carrier_died_is_asked_again_by_another(think):
    run = think(say("Nine euros."))
    taken("first")
    assert sweep().outbound == 0
    gone("first")

    assert sweep().outbound == 1
    assert carry("second") == {OutboundCall.objects.get(run=run).pk: True}
    tasks.resume(run.pk)
    run.refresh_from_db()
    assert (run.status, run.crashes) == ("completed", 0)


def test_what_was_taken_as_the_connection_was_lost_is_taken_again():
    lost = set(waiting(OrganizationFactory(), count=2))
    begun = set()

    async def go():
        carrier = carrying.Carrier("one", "deputy")
        take = carrier.table.take

        async def unheard(*room):
            await take(*room)
            carrier.table.take = take
            raise psycopg.OperationalError("the connection is lost")

        carrier.table.take = unheard
        carrier._begin = lambda call: begun.add(call.id)
        duty = asyncio.create_task(carrier._always(carrier._take))
        async with asyncio.timeout(30):
            while begun != lost:
                await asyncio.sleep(0.01)
        duty.cancel()
        await carrier.table.close()

    asyncio.run(go())


def test_what_a_dead_carrier_says_late_is_not_written(think):
    think(say("Nine euros."))
    (call_of_first,) = taken("first")
    gone("first")
    sweep()
    taken("second")

    async def late():
        table = Table("first")
        try:
            return await table.answer([(call_of_first.id, "{}")], "deputy")
        finally:
            await table.close()

    assert asyncio.run(late()) == {}


@pytest.mark.parametrize(
    ("idempotent", "status", "reason"), [(True, "completed", None), (False, "waiting", "review")]
)
def test_a_tool_whose_carrier_died_is_called_again_only_where_that_is_harmless(
    think, add_tool, idempotent, status, reason
):
    keys = []

    @add_tool(mutating=True, idempotent=idempotent)
    def effect(run: ToolContext):
        keys.append(run.idempotency_key)
        return "done"

    run = think(call(("effect", {})), say("Done."))
    carry()
    tasks.resume(run.pk)
    assert OutboundCall.objects.get(run=run).kind == "tool"
    taken("first")
    gone("first")
    sweep()
    tasks.resume(run.pk)
    for _ in range(3):
        carry("second")
        tasks.resume(run.pk)

    run.refresh_from_db()
    assert (run.status, run.waiting_reason) == (status, reason)
    assert len(keys) == int(idempotent)


def test_a_worker_that_died_before_it_took_the_answer_is_found(think):
    run = think(say("Nine euros."))
    carry()
    OutboundCall.objects.update(answered_at=timezone.now() - HOUR)
    QueueMessage.objects.all().delete()

    assert sweep().outbound == 1
    tasks.resume(run.pk)
    assert Run.objects.get(pk=run.pk).status == "completed"


# Tools


def test_calls_of_one_reply_go_out_side_by_side_and_come_back_together(think, add_tool):
    @add_tool()
    def look(run: ToolContext, *, place: Annotated[str, "where"]):
        if place == "nowhere":
            raise ToolError("Nobody is there.", "NOT_FOUND")
        return f"at {place}"

    run = think(call(("look", {"place": "a"}), ("look", {"place": "nowhere"})), say("Seen."))
    carry()
    tasks.resume(run.pk)
    assert OutboundCall.objects.filter(run=run, kind="tool").count() == 2
    carry()
    tasks.resume(run.pk)
    carry()
    tasks.resume(run.pk)

    assert Run.objects.get(pk=run.pk).output == "Seen."
    ended = dict(ToolCall.objects.filter(run=run).values_list("arguments__place", "status"))
    assert ended == {"a": "succeeded", "nowhere": "failed"}


def test_words_that_cannot_be_encoded_are_written_all_the_same():
    assert json.loads(packing.text({"said": "\ud800\x00 ü"})) == {"said": "\ud800\x00 ü"}
    packing.text({"said": "\ud800"}).encode()


# Whose turn it is


def test_organizations_take_turns_however_long_one_of_them_queues():
    busy, quiet = OrganizationFactory(), OrganizationFactory()
    waiting(busy, count=50)
    (other,) = waiting(quiet)

    assert other in {call.id for call in taken(room=2)}


def test_who_has_calls_under_way_lets_others_go_first():
    busy, quiet = OrganizationFactory(), OrganizationFactory()
    waiting(busy, count=10)
    taken(room=5)
    others = waiting(quiet, count=3)

    assert {call.id for call in taken(room=3)} == set(others)


def test_what_a_person_waits_for_goes_first_and_what_waited_long_goes_with_it():
    organization = OrganizationFactory()
    background = waiting(organization, count=3)
    (interactive,) = waiting(organization, rank=0)
    assert [call.id for call in taken(room=1)] == [interactive]

    OutboundCall.objects.filter(pk=background[0]).update(due_at=timezone.now() - HOUR)
    waiting(organization, target="m:2", rank=0, count=9)
    found = {call.id for call in taken(room=5)}
    assert background[0] in found
    assert len(found & set(background)) == 1  # people still go first


def test_limits_of_a_model_a_host_and_an_organization_hold(settings):
    first, second = OrganizationFactory(), OrganizationFactory()
    waiting(first, "m:1", count=9, most=2)
    waiting(first, "m:2", count=9, host="h", host_most=3)
    waiting(first, "m:3", count=9, host="h", host_most=3)
    settings.ORGANIZATION_CALLS = 4
    waiting(second, "m:4", count=9)

    for _ in range(5):
        taken(room=3)
    held = OutboundCall.objects.exclude(holder="")
    assert held.filter(organization=first).count() == held.filter(organization=second).count() == 4
    assert held.filter(target="m:1").count() <= 2
    assert held.filter(host="h").count() <= 3


def test_an_organization_has_a_lower_limit_of_its_own_and_none_beyond_the_deployments(settings):
    settings.ORGANIZATION_CALLS = 4
    lower, higher = OrganizationFactory(calls_limit=2), OrganizationFactory(calls_limit=9)
    for organization in (lower, higher):
        waiting(organization, f"m:{organization.pk}", count=9)

    taken()
    held = OutboundCall.objects.exclude(holder="")
    assert held.filter(organization=lower).count() == 2
    assert held.filter(organization=higher).count() == 4


def test_one_organization_leaves_room_for_others_at_a_model_and_in_a_carrier(settings):
    (at_a_model,) = settings.MODEL_CALLS.values()

    assert min(at_a_model, settings.CARRIER_CALLS) > settings.ORGANIZATION_CALLS


def test_threads_are_not_taken_beyond_those_there_are():
    organization = OrganizationFactory()
    waiting(organization, "tool", count=5, kind="tool", threaded=True)
    models = waiting(organization, "m:1", count=5)

    found = taken(threads=2)
    assert sum(call.threaded for call in found) == 2
    assert {call.id for call in found if not call.threaded} == set(models)


def test_a_call_that_is_due_later_is_left_until_then():
    organization = OrganizationFactory()
    waiting(organization, due_at=timezone.now() + HOUR)

    assert taken() == []


# Models in trouble


def hear(*answers, target="m:1"):
    """A carrier hears these of a model."""

    async def go():
        table = Table("one")
        circuits = Circuits(table)
        for answer in answers:
            circuits.heard(next(iter(call_of)), answer)
            await circuits.note()
        await table.close()

    organization = OrganizationFactory()
    waiting(organization, target)
    call_of = [call for call in taken() if call.target == target]
    asyncio.run(go())
    return organization


HUNG = packing.reply(ProviderError("MODEL_TIMEOUT", "no answer", retryable=True))
LIMITED = packing.reply(ProviderError("MODEL_RATE_LIMITED", "429", retryable=True, retry_after=30))
FINE = {"content": "ok", "tool_calls": [], "usage": [0, 0], "model": "", "truncated": False}


def test_a_model_that_asks_for_a_pause_is_asked_by_nobody_and_others_are():
    hear(LIMITED)
    organization = OrganizationFactory()
    waiting(organization, "m:1", count=3)
    others = waiting(organization, "m:2", count=3)

    assert {call.id for call in taken()} == set(others)


def test_a_model_that_hangs_again_and_again_is_asked_by_one_at_a_time_until_it_works():
    organization = hear(*[HUNG] * 5)
    OutboundCall.objects.all().delete()
    waiting(organization, "m:1", count=5)
    assert taken() == []
    assert [(model.target, model.open) for model in observed.troubled()] == [("m:1", True)]

    OutboundTarget.objects.update(paused_until=timezone.now() - HOUR)
    assert len(taken()) == 1
    assert taken() == []


def test_a_model_that_works_again_has_its_failures_forgotten():
    hear(HUNG, HUNG, FINE)

    assert not OutboundTarget.objects.filter(failures__gt=0).exists()


def test_a_carrier_that_has_seen_no_failure_closes_the_circuit_that_another_opened():
    waiting(OrganizationFactory(), "m:1", count=2)

    async def go():
        one, two = Circuits(Table("one")), Circuits(Table("two"))
        ((first, *_), _) = await one.table.take(1, 1, 0)
        for circuits, answer in ((two, FINE), *[(one, HUNG)] * 5):
            circuits.heard(first, answer)
            await circuits.note()
        own = await one.table.connection()
        await own.execute("UPDATE runs_outboundtarget SET paused_until = now() - interval '1 hour'")
        await one.table.answer([(first.id, packing.text(HUNG))], "nobody's")
        ((probe,), _) = await two.table.take(1, 1, 0)
        two.heard(probe, FINE)
        await two.note()
        for circuits in (one, two):
            await circuits.table.close()

    asyncio.run(go())

    assert not OutboundTarget.objects.exists()
