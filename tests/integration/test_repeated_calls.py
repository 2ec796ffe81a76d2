"""Calls that need something first, which a person gives elsewhere: they wait, and are made again."""

import dataclasses
from datetime import timedelta

import pytest
from django.test import Client

from policy.models import CapabilityRule, Grant
from runs.a2a.tasks import STATES, state_of
from runs.actions import repeat
from runs.actions.message import message
from runs.actions.signal import SignalRefused, signal
from runs.agui import interrupts
from runs.execution import executor
from runs.gate import repeats
from runs.models import A2ATask, Approval, Run, ToolCall, Wait
from runs.outbound import packing
from runs.tools.base import WaitFor
from runs.webhooks import task_words
from runs.workers import restored, sweep
from tests.acting import approve, at_the_pages, cancel
from tests.factories import MembershipFactory
from tests.integration.helpers import events, types
from tests.scripted import call, say

pytestmark = pytest.mark.django_db
NEED = "key:vault"


@pytest.fixture
def vault(add_tool):
    """A tool that needs a key; `keys` has who gave theirs, `opened` each call that had an effect."""
    kept = dataclasses.make_dataclass("Vault", ["keys", "opened", "asked"])(set(), [], 0)

    @add_tool(risk_level="low", mutating=True)
    def open_vault(run, *, door: str):
        kept.asked += 1
        if run.user_id not in kept.keys:
            return WaitFor(
                "input", "Bring your key", timedelta(hours=1), key=NEED, repeats=True, link="/keys/"
            )
        kept.opened.append((door, run.idempotency_key))
        return {"inside": door}

    repeats.register("key", lambda organization_id, user_id, what: what == "vault" and user_id in kept.keys)
    yield kept
    del repeats._kinds["key"]


def opening():
    asked = call(("open_vault", {"door": "north"}))
    return lambda messages, facts: say("It is open.") if messages[-1].role == "tool" else asked


def checked(world):
    return CapabilityRule.objects.create(
        organization=world.organization, tool="open_vault", effect="require_approval"
    )


def give(world, vault):
    """The person brings the key, and the run goes on."""
    vault.keys.add(world.user.pk)
    return repeat.met(world.organization.pk, world.user.pk, NEED)


def test_a_call_waits_for_what_it_needs_and_is_made_again(world, vault, ask):
    run = ask(opening())
    wait = Wait.objects.get(run=run)
    assert (run.status, run.waiting_reason) == ("waiting", "input")
    assert wait.correlation_key.startswith("repeat-key:vault-") and wait.expires_at is not None
    assert dict(events(run))["tool.waits"]["link"] == "/keys/" and vault.opened == []

    assert give(world, vault) == 1 and give(world, vault) == 0
    executor.run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.output) == ("completed", "It is open.")
    assert [door for door, _ in vault.opened] == ["north"]
    called = [payload for type, payload in events(run) if type == "tool.called"]
    assert len(called) == 2 and {one["idempotency_key"] for one in called} == {vault.opened[0][1]}


def test_what_is_there_before_the_call_is_parked_is_not_waited_for(world, vault, ask, monkeypatch):
    """The key comes between the call's answer and the step that parks it."""
    monkeypatch.setitem(repeats._kinds, "key", lambda *about: vault.keys.add(world.user.pk) is None)
    run = ask(opening())
    assert run.status == "completed" and len(vault.opened) == 1
    assert "run.waiting" not in types(run)


def test_no_word_and_no_signal_stands_for_it(world, vault, ask):
    run = ask(opening())
    key = Wait.objects.get(run=run).correlation_key
    mia = at_the_pages(world.user, world.organization.pk)
    assert message(run.pk, "here it is", mia).state == "kept"
    for answer in (lambda: message(run.pk, "here", mia, key), lambda: signal(run.pk, key, mia, {})):
        with pytest.raises(SignalRefused):
            answer()
    assert Wait.objects.get(run=run).resolved_at is None and vault.opened == []


def test_no_door_offers_to_answer_it(world, vault, ask):
    """AG-UI and A2A say where it is given; people's pages show the way there, and the way without."""
    run = ask(opening())
    (wait,) = Wait.objects.filter(run=run)
    mia = at_the_pages(world.user, world.organization.pk)
    (told,) = interrupts.of(mia, run)
    assert told.shown["reason"] == "deputy:needs" and told.shown["metadata"] == {"page": "/keys/"}
    assert told.wait is None and "responseSchema" not in told.shown
    assert state_of(run, [wait]) == task_words.AUTH_REQUIRED
    task = A2ATask.objects.create(organization=world.organization, project=world.project, run=run)
    states = {state for state, which in STATES.items() if A2ATask.objects.filter(which, pk=task.pk).exists()}
    assert states == {task_words.AUTH_REQUIRED}
    browser = Client()
    browser.force_login(world.user)
    page = browser.get(f"/talk/{run.pk}/").content.decode()
    assert 'href="/keys/"' in page and f'action="/talk/{run.pk}/decline/"' in page
    assert f'action="/talk/{run.pk}/answer/"' not in page
    browser.post(f"/talk/{run.pk}/decline/", {"run": run.pk, "key": wait.correlation_key})
    executor.run(run.pk)
    assert ToolCall.objects.get(run=run).error["code"] == "DECLINED"


def test_nobody_elses_key_counts_and_only_its_person_declines(world, vault, ask):
    run = ask(opening())
    key = Wait.objects.get(run=run).correlation_key
    other = MembershipFactory(organization=world.organization, role="administrator").user
    vault.keys.add(other.pk)
    assert repeat.met(world.organization.pk, other.pk, NEED) == 0
    with pytest.raises(Exception, match="person"):
        repeat.decline(run.pk, key, at_the_pages(other, world.organization.pk))

    repeat.decline(run.pk, key, at_the_pages(world.user, world.organization.pk))
    executor.run(run.pk)
    made = ToolCall.objects.get(run=run)
    assert (made.status, made.error["code"]) == ("failed", "DECLINED") and vault.opened == []


def test_it_expires_and_goes_with_its_run(world, vault, ask):
    expired, cancelled = ask(opening()), ask(opening())
    Wait.objects.filter(run=expired).update(expires_at="2020-01-01T00:00:00Z")
    sweep.sweep()
    executor.run(expired.pk)
    assert ToolCall.objects.get(run=expired).status == "expired"

    cancel(cancelled.pk, world.user)
    assert give(world, vault) == 0
    assert Run.objects.get(pk=cancelled.pk).status == "cancelled" and vault.opened == []


def test_an_approval_is_asked_for_once_and_a_deny_in_the_meantime_wins(world, vault, ask):
    rule = checked(world)
    approver = MembershipFactory(organization=world.organization, role="administrator").user
    let, denied = ask(opening()), ask(opening())
    assert vault.asked == 0  # the gate comes before what the call needs
    for run in (let, denied):
        approve(Approval.objects.get(run=run).pk, approver)
        executor.run(run.pk)
        assert Run.objects.get(pk=run.pk).waiting_reason == "input"
    assert give(world, vault) == 2
    executor.run(let.pk)
    rule.effect = "deny"
    rule.save()
    executor.run(denied.pk)
    assert ToolCall.objects.get(run=let).status == "succeeded" and len(vault.opened) == 1
    assert ToolCall.objects.get(run=denied).status == "denied"
    assert Approval.objects.count() == 2


def test_a_standing_approval_is_used_once(world, vault, ask):
    checked(world)
    grant = Grant.objects.create(
        organization=world.organization, project=world.project, tool="open_vault", any_arguments=True,
        max_uses=1, granted_by=MembershipFactory(organization=world.organization, role="decider").user,
    )  # fmt: skip
    run = ask(opening())
    give(world, vault)
    executor.run(run.pk)
    assert Run.objects.get(pk=run.pk).status == "completed" and grant.uses.count() == 1


def test_a_restored_run_asks_a_person_instead(world, vault, ask):
    run = ask(opening())
    restored.mark(run.pk, restored.Found())
    give(world, vault)
    executor.run(run.pk)
    assert Run.objects.get(pk=run.pk).waiting_reason == "review" and vault.opened == []


def test_carriers_hand_it_on_whole():
    told = WaitFor("input", "Bring it", timedelta(seconds=5), ("a",), NEED, True, "/keys/")
    assert packing.read_tool(packing.result(told)) == told
    assert packing.read_tool({"wait_for": ["input", "What?", None]}) == WaitFor("input", "What?")
