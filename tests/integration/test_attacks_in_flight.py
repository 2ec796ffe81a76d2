"""Calls that policy has let pass and that have not left yet: what changes meanwhile still stops them.

A call waits in the carriers' table, or comes back after its worker or carrier has died.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core import mail
from django.db import connections
from django.utils import timezone

from groups.models import Membership, Project, Token
from policy import cache
from policy.models import CapabilityRule, Grant
from runs.actions.message import message
from runs.execution import executor
from runs.gate import admission, opening
from runs.models import Approval, ApprovalDecision, McpServer, OutboundCall, Run, ToolCall, Wait
from runs.outbound import asking, packing
from runs.tools import call as gate_calls
from runs.tools import leaving as last_look
from runs.tools import registry
from runs.tools.base import ToolContext
from runs.tools.builtin import mail as mails
from runs.workers import tasks
from runs.workers.sweep import sweep
from tests.acting import approve, at_the_pages, cancel, request_call, resolve, start
from tests.at_once import Beside
from tests.factories import MembershipFactory, permit
from tests.integration.helpers import chain_holds, types
from tests.integration.outside import Outside, work_off
from tests.integration.test_mcp_asks import BOOK, HOW_MANY
from tests.integration.test_mcp_servers import FIND, accepted, site  # noqa: F401
from tests.integration.test_mcp_tasks import methods, poll
from tests.integration.test_outbound_calls import carry, gone, taken
from tests.scripted import Scripted, call, in_order, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def effect(add_tool):
    """A tool of high risk that leaves the database; returns the keys it was called with."""
    keys = []

    @add_tool(mutating=True, risk_level="high")
    def pay(run: ToolContext, *, to: str):
        keys.append(run.idempotency_key)
        return "paid"

    return keys


@pytest.fixture
def ada(world):
    return permit(
        MembershipFactory(organization=world.organization, user__username="ada").user,
        "decide_approval",
        "add_grant",
    )


@pytest.fixture
def rule(world):
    return CapabilityRule.objects.create(
        organization=world.organization, tool="pay", effect="allow", name="may be paid unasked"
    )


@pytest.fixture
def leaving(world, effect):
    """A run whose call of the tool has passed the gate and waits for a carrier."""

    def _leaving(decide=None):
        pays = (say("Done."), call(("pay", {"to": "ann"})))
        Scripted.play = staticmethod(lambda messages, facts: pays[messages[-1].role == "user"])
        run_id = start(user=world.user, project=world.project, goal="Pay Ann")
        tasks.advance(run_id)
        carry()
        tasks.resume(run_id)
        if decide:
            approve(Approval.objects.get(run=run_id).pk, decide)
            tasks.advance(run_id)
        assert OutboundCall.objects.get(run=run_id).kind == "tool"
        return Run.objects.get(pk=run_id)

    return _leaving


def goes_on(run):
    """Whatever carriers and workers have to do."""
    for _ in range(4):
        carry()
        tasks.resume(run.pk)
    run.refresh_from_db()
    assert chain_holds(run)
    return run


def test_nothing_has_changed_and_it_leaves_once(leaving, rule, effect):
    run = goes_on(leaving())
    assert (run.status, len(effect), types(run).count("tool.called")) == ("completed", 1, 1)


def test_what_was_approved_leaves_once(leaving, ada, effect):
    run = goes_on(leaving(ada))
    assert (run.status, len(effect), types(run).count("tool.called")) == ("completed", 1, 1)


def test_a_run_of_who_may_start_none_any_more_goes_on_and_asks_as_before(leaving, ada, effect, world):
    waits = leaving(ada)
    Membership.objects.filter(pk=world.membership.pk).update(role="viewer")
    assert (goes_on(waits).status, len(effect)) == ("completed", 1)


def denied(world, rule):
    CapabilityRule.objects.create(organization=world.organization, tool="pay", effect="deny")


def membership_over(world, rule):
    Membership.objects.filter(pk=world.membership.pk).update(active=False)


def account_closed(world, rule):
    type(world.user).objects.filter(pk=world.user.pk).update(is_active=False)


def boundary_closed(world, rule):
    Membership.objects.filter(pk=world.membership.pk).update(denied_tools=["pay"])


@pytest.mark.parametrize("change", [denied, membership_over, account_closed, boundary_closed])
def test_a_deny_stops_what_has_not_left(leaving, rule, effect, world, change):
    run = leaving()
    change(world, rule)
    run = goes_on(run)

    assert effect == []
    assert ToolCall.objects.get(run=run).status == "denied"
    assert (run.status, "tool.blocked" in types(run)) == ("completed", True)


def test_a_rule_taken_back_asks_first(leaving, rule, effect, ada):
    run = leaving()
    rule.delete()  # the risk asks
    run = goes_on(run)
    assert (effect, run.status, run.waiting_reason) == ([], "waiting", "approval")

    approve(Approval.objects.get(run=run).pk, ada)
    tasks.advance(run.pk)
    assert (goes_on(run).status, len(effect)) == ("completed", 1)


def rule_stricter(world, ada):
    CapabilityRule.objects.create(
        organization=world.organization, tool="pay", effect="require_approval", deciders_needed=2
    )


def decider_gone(world, ada):
    Membership.objects.filter(user=ada).update(active=False)


@pytest.mark.parametrize("change", [rule_stricter, decider_gone])
def test_an_approval_that_suffices_no_more_is_asked_for_again(leaving, effect, world, ada, change):
    run = leaving(ada)
    first = Approval.objects.get(run=run)
    change(world, ada)
    run = goes_on(run)

    assert (effect, run.status, run.waiting_reason) == ([], "waiting", "approval")
    second = Approval.objects.get(run=run, status="pending")
    first.refresh_from_db()
    assert (second.replaces_id, first.status) == (first.pk, "superseded")
    for name in ("bo", "cy"):
        other = permit(
            MembershipFactory(organization=world.organization, user__username=name).user, "decide_approval"
        )
        if Approval.objects.get(pk=second.pk).status == "pending":
            approve(second.pk, other)
    tasks.advance(run.pk)
    assert (goes_on(run).status, len(effect)) == ("completed", 1)


@pytest.mark.parametrize(
    "change", [{"revoked_at": timezone.now()}, {"expires_at": timezone.now() - timedelta(hours=1)}]
)
def test_a_standing_approval_that_is_over_lets_nothing_leave(leaving, effect, world, ada, change):
    grant = Grant.objects.create(
        organization=world.organization, project=world.project, tool="pay", any_arguments=True,
        max_uses=1, granted_by=ada,
    )  # fmt: skip
    run = leaving()
    Grant.objects.filter(pk=grant.pk).update(**change)
    run = goes_on(run)
    assert (effect, run.status, run.waiting_reason) == ([], "waiting", "approval")


@pytest.mark.parametrize("token", [False, True])
def test_nor_does_one_whose_maker_may_make_none_any_more(leaving, effect, world, ada, token):
    key, _ = Token.objects.issue(world.organization, ada, scopes=["policy:write", "approvals:decide"])
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="pay", any_arguments=True,
        max_uses=1, granted_by=ada, via="token" if token else "session", token_id=key.pk if token else None,
    )  # fmt: skip
    run = leaving()
    if token:
        Token.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    else:
        decider_gone(world, ada)
    run = goes_on(run)
    assert (effect, run.status, run.waiting_reason) == ([], "waiting", "approval")


def test_nor_where_it_comes_back(leaving, harmless, world, ada):
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="pay", any_arguments=True,
        max_uses=1, granted_by=ada,
    )  # fmt: skip
    run = leaving()
    decider_gone(world, ada)
    lost(run)
    run = goes_on(run)
    assert (harmless, run.status, run.waiting_reason) == ([], "waiting", "review")


def test_the_last_use_of_a_standing_approval_is_the_calls_own(leaving, effect, world, ada):
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="pay", any_arguments=True,
        max_uses=1, granted_by=ada,
    )  # fmt: skip
    run = goes_on(leaving())
    assert (run.status, len(effect)) == ("completed", 1)


def test_a_cancelled_run_sends_nothing_even_where_a_carrier_has_taken_its_call(leaving, rule, effect):
    run = leaving()
    (held,) = taken("one")
    cancel(run.pk)

    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as gates:
        assert asyncio.run(asking.ask(held, pool, gates, None)) == packing.HELD_BACK
        gates.submit(connections.close_all)
    assert effect == []


def only_thread_busy(held, meanwhile):
    """What comes of a call whose carrier has no thread free, since what hung in it was cancelled; `meanwhile`
    happens once all has been done about the call that is done without one.
    """

    async def go(pool, gates):
        loop = asyncio.get_running_loop()
        hangs = threading.Event()
        pool.submit(hangs.wait)
        try:
            asked = loop.create_task(asking.ask(held, pool, gates, None))
            await asyncio.sleep(0)
            await loop.run_in_executor(gates, connections.close_all)  # after what it may ask by now
            await loop.run_in_executor(None, meanwhile)
        finally:
            hangs.set()
        return await asked

    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as gates:
        answer = asyncio.run(go(pool, gates))
        gates.submit(connections.close_all)
    return answer


@pytest.mark.parametrize("change", [denied, membership_over, account_closed, boundary_closed])
def test_a_deny_stops_what_waits_in_its_carrier_for_a_thread(leaving, rule, effect, world, change):
    leaving()
    (held,) = taken("one")

    def meanwhile():
        change(world, rule)
        connections.close_all()

    assert only_thread_busy(held, meanwhile) == packing.HELD_BACK
    assert effect == []


# Calls that come back


@pytest.fixture
def harmless(add_tool):
    keys = []

    @add_tool(mutating=True, idempotent=True, risk_level="high")
    def pay(run: ToolContext, *, to: str):
        keys.append(run.idempotency_key)
        return "paid"

    return keys


def lost(run):
    """Its carrier takes the call and dies."""
    taken("first")
    gone("first")
    sweep()
    tasks.resume(run.pk)


def test_an_approved_call_comes_back_with_its_approval(leaving, harmless, ada):
    run = leaving(ada)
    lost(run)
    run = goes_on(run)
    assert (run.status, len(harmless)) == ("completed", 1)


def test_a_granted_call_comes_back_with_its_own_use(leaving, harmless, world, ada):
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="pay", any_arguments=True,
        max_uses=1, granted_by=ada,
    )  # fmt: skip
    run = leaving()
    lost(run)
    assert (goes_on(run).status, len(harmless)) == ("completed", 1)


@pytest.mark.parametrize("change", [rule_stricter, decider_gone])
def test_a_call_that_comes_back_meets_what_is_demanded_now(leaving, harmless, world, ada, change):
    run = leaving(ada)
    change(world, ada)
    lost(run)
    run = goes_on(run)
    assert (harmless, run.status, run.waiting_reason) == ([], "waiting", "review")


def asks_before_a_second_try(run, effect, world, ada):
    """It is interrupted, and tried again while a rule allows it that is gone before the call leaves."""
    lost(run)
    rule = CapabilityRule.objects.create(organization=world.organization, tool="pay", effect="allow")
    resolve(run.pk, ToolCall.objects.get(run=run).call_id, "retry", ada)
    tasks.advance(run.pk)
    rule.delete()
    run = goes_on(run)

    assert (effect, run.status, run.waiting_reason) == ([], "waiting", "approval")
    approve(Approval.objects.get(run=run, status="pending").pk, ada)
    tasks.advance(run.pk)
    assert (goes_on(run).status, len(effect)) == ("completed", 1)


def test_what_was_approved_before_it_was_interrupted_is_no_leave_for_a_second_try(
    leaving, effect, world, ada
):
    permit(ada, "decide_approval", "resolve_review")
    asks_before_a_second_try(leaving(ada), effect, world, ada)


def test_nor_is_a_standing_approval_that_was_used_up_by_it(leaving, effect, world, ada):
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="pay", any_arguments=True,
        max_uses=1, granted_by=ada,
    )  # fmt: skip
    permit(ada, "decide_approval", "add_grant", "resolve_review")
    asks_before_a_second_try(leaving(), effect, world, ada)


def test_a_second_try_takes_another_use_of_a_standing_approval(leaving, effect, world, ada):
    grant = Grant.objects.create(
        organization=world.organization, project=world.project, tool="pay", any_arguments=True,
        max_uses=2, granted_by=ada,
    )  # fmt: skip
    permit(ada, "decide_approval", "add_grant", "resolve_review")
    run = leaving()
    lost(run)
    resolve(run.pk, ToolCall.objects.get(run=run).call_id, "retry", ada)
    tasks.advance(run.pk)

    assert (goes_on(run).status, len(effect), grant.uses.count()) == ("completed", 1, 2)


def test_so_does_one_that_nobody_had_to_approve(leaving, harmless, rule):
    run = leaving()
    rule.delete()
    lost(run)
    run = goes_on(run)
    assert (harmless, run.status, run.waiting_reason) == ([], "waiting", "review")


def test_a_worker_that_dies_between_brings_no_call_past_the_gate(world, harmless, rule):
    """As `ask --inline` and tests drive a run: what was begun is recovered at the next claim."""
    Scripted.play = staticmethod(in_order(call(("pay", {"to": "ann"})), say("Done.")))
    run_id = start(user=world.user, project=world.project, goal="Pay Ann")
    tasks.advance(run_id)
    carry()
    tasks.resume(run_id)
    OutboundCall.objects.all().delete()
    Run.objects.filter(pk=run_id).update(status="pending", lease_expires_at=None)
    rule.delete()
    executor.run(run_id)
    assert harmless == []
    assert Run.objects.get(pk=run_id).waiting_reason == "review"
    assert not ApprovalDecision.objects.exists()


def test_a_tool_that_was_switched_off_meanwhile_is_not_called(leaving, rule, effect):
    """As a tool of an MCP server that was disabled, or moved to another origin."""
    run = leaving()
    registry._tools.pop("pay")
    run = goes_on(run)
    assert (effect, run.status) == ([], "completed")
    assert ToolCall.objects.get(run=run).error["code"] == "UNKNOWN_TOOL"


# What is asked about a call is of one moment


@pytest.fixture
def between(monkeypatch):
    """Has something done, and committed by somebody else, right before this function is called."""

    def _between(module, name, changes):
        read = getattr(module, name)

        def later(*arguments):
            monkeypatch.setattr(module, name, read)
            assert Beside(changes).result() is None
            return read(*arguments)

        monkeypatch.setattr(module, name, later)

    return _between


@pytest.mark.parametrize("changed", ["denied", "moved", ""])  # to where nothing answers
@pytest.mark.parametrize("by", ["a carrier", "a worker"])
@pytest.mark.parametrize("tool", ["send_email", "crm.delete_customer"])
def test_a_deny_stops_a_call_while_its_server_is_slow_to_greet(
    world,
    ada,
    site,  # noqa: F811
    between,
    monkeypatch,
    tool,
    by,
    changed,
):
    monkeypatch.setattr(last_look, "SOON", 0)
    crm = McpServer.objects.create(organization=world.organization, name="crm", url=site.url)
    accepted(crm, ada)
    allowed = CapabilityRule.objects.create(organization=world.organization, tool=tool, effect="allow")
    deny = {"tool": tool, "effect": "deny", "organization": allowed.organization}

    if changed == "moved" and tool == "send_email":
        pytest.skip("there is one mail server")

    def changes():
        if changed == "denied":
            CapabilityRule.objects.create(**deny)
        elif changed == "moved":
            McpServer.objects.filter(pk=crm.pk).update(url=site.url.replace("/mcp", "/mcp/other"))

    between(last_look, "once_more", changes)
    said = {"to": ["a@example.com"], "subject": "s", "body": "b"} if tool == "send_email" else {}
    if by == "a worker":
        status = Outside(world).call("p", tool, **said).status
    else:
        acts = (say("Done."), call((tool, said)))
        Scripted.play = staticmethod(lambda messages, facts: acts[messages[-1].role == "user"])
        run_id = start(user=world.user, project=world.project, goal="Do it")
        tasks.advance(run_id)
        goes_on(Run.objects.get(pk=run_id))
        status = ToolCall.objects.get(run=run_id).status
    assert len(mail.outbox) + len(site.calls) == (not changed)
    assert status == {"denied": "denied", "moved": "failed", "": "succeeded"}[changed]


@pytest.mark.parametrize("changed", ["denied", ""])
def test_so_it_does_an_answer_to_what_the_call_has_become(
    world,
    ada,
    site,  # noqa: F811
    between,
    monkeypatch,
    changed,
):
    """A person's answer goes to a server's task, which goes on acting with it."""
    monkeypatch.setattr(last_look, "SOON", 0)
    crm = McpServer.objects.create(organization=world.organization, name="crm", url=site.url)
    site.behave(FIND, BOOK, task={})
    accepted(crm, ada)
    allowed = CapabilityRule.objects.create(
        organization=world.organization, tool="crm.find_customer", effect="allow"
    )
    deny = {"tool": allowed.tool, "effect": "deny", "organization": allowed.organization}
    outside = Outside(world)
    request_call(outside.run.pk, "p", "crm.find_customer", {"name": "Ada"})
    work_off()
    site.say(task={"status": "input_required", "inputRequests": HOW_MANY})
    poll()
    work_off()

    def changes():
        if changed:
            CapabilityRule.objects.create(**deny)

    between(last_look, "once_more", changes)
    key = Wait.objects.get(run=outside.run, resolved_at=None).correlation_key
    message(outside.run.pk, "3", at_the_pages(world.user, world.organization.pk), key)
    work_off()
    assert ("tasks/update" in methods(site)) == (not changed)
    assert outside.look("p").status == ("denied" if changed else "waiting")
    poll()
    assert methods(site)[-1] == ("tasks/cancel" if changed else "tasks/get")


def test_a_mail_server_has_greeted_when_policy_is_asked_again(monkeypatch):
    """Its answer to EHLO is a part of that, and says nothing of the mail."""
    done = []

    class Backend:
        connection = SimpleNamespace(ehlo_or_helo_if_needed=lambda: done.append("greeted"))

        def open(self):
            done.append("opened")

        def send_messages(self, mails):
            done.append("sent")
            return len(mails)

        close = open

    monkeypatch.setattr(mails, "get_connection", Backend)
    monkeypatch.setattr(last_look, "once_more", lambda: done.append("looked"))
    mails._sent(mail.EmailMessage("s", "b", to=["a@example.com"]))
    assert done == ["opened", "greeted", "looked", "sent", "opened"]


def test_a_right_that_is_taken_away_before_a_deny_is_lets_nothing_leave_between(world, effect, rule, between):
    """At each moment one of the two forbids it."""
    outside = Outside(world)
    outside.call("p", "pay", work=False, to="ann")
    deny = CapabilityRule.objects.create(organization=world.organization, tool="pay", effect="deny")

    def changes():
        boundary_closed(world, rule)
        CapabilityRule.objects.filter(pk=deny.pk).delete()

    between(cache, "compiled", changes)
    work_off()
    assert (effect, outside.look("p").status) == ([], "denied")


def cancelled(world, rule):
    cancel(Run.objects.get().pk)


@pytest.fixture
def where_from_counts(world, rule):
    Project.objects.filter(pk=world.project.pk).update(approval_profile="balanced")


@pytest.mark.parametrize("change", [denied, membership_over, account_closed, boundary_closed, cancelled])
@pytest.mark.usefixtures("where_from_counts")
def test_what_changes_while_it_is_found_out_where_its_values_come_from_stops_a_call(
    leaving, effect, world, rule, between, change
):
    """Of a long conversation that takes a minute."""
    run = leaving()
    between(admission, "of_run", lambda: change(world, rule))
    run = goes_on(run)
    assert (effect, ToolCall.objects.get().status in ("denied", "unknown")) == ([], True)


@pytest.mark.parametrize("change", [denied, membership_over, account_closed, boundary_closed])
def test_so_does_what_changes_while_conditions_are_weighed_that_take_long(
    leaving, effect, world, rule, between, monkeypatch, change
):
    """An agent may choose how long, by a text that a rule names."""
    run = leaving()
    monkeypatch.setattr(gate_calls, "AT_ONCE", -1)
    between(gate_calls, "evaluate", lambda: change(world, rule))
    run = goes_on(run)
    assert (effect, ToolCall.objects.get().status in ("denied", "unknown")) == ([], True)


@pytest.mark.parametrize("change", [denied, membership_over, account_closed, boundary_closed])
@pytest.mark.usefixtures("where_from_counts")
def test_so_it_does_with_an_outside_agents(effect, world, rule, ada, between, change):
    outside = Outside(world)
    outside.call("p", "pay", to="ann")
    approve(Approval.objects.get().pk, ada)
    between(opening, "gathered", lambda: change(world, rule))
    work_off()
    assert (effect, outside.look("p").status) == ([], "denied")
