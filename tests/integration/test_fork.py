"""Run again from here: a new run that goes on from an event of another."""

import pytest
from django.core import mail

from groups.models import AgentInstance, Membership, Role
from policy.authority import NotAllowed
from policy.models import CapabilityRule, Grant
from runs.actions.start import CannotStart
from runs.execution import executor
from runs.log.verify import verify
from runs.models import Approval, Run, RunEvent, ToolCall
from tests.acting import cancel, fork
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, RoleFactory
from tests.scripted import Scripted, by_role, call, say

from .api_client import Api, permit
from .helpers import chain_holds, events, payload, state_of, types

pytestmark = pytest.mark.django_db

LETTER = {"to": ["ada@example.org"], "subject": "Prices", "body": "Six euros."}


@pytest.fixture
def sent(ask, world):
    """A run that has sent a letter and then said so."""
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="send_email", any_arguments=True,
        granted_by=MembershipFactory(organization=world.organization, role="decider").user, max_uses=1,
    )  # fmt: skip
    return ask(by_role(Personal_agent=[call(("send_email", LETTER)), say("Sent.")]))


def seq_of(run, type, nth=0):
    found = RunEvent.objects.filter(run=run, type=type).order_by("seq").values_list("seq", flat=True)
    return found[nth]


def drive(run_id, *replies):
    Scripted.play = staticmethod(by_role(Personal_agent=list(replies)))
    executor.run(run_id)
    return Run.objects.get(pk=run_id)


def test_it_goes_on_from_the_event_and_repeats_no_effect(sent, world):
    assert len(mail.outbox) == 1
    before = (sent.last_digest, sent.status, events(sent))
    at = seq_of(sent, "tool.completed")

    new = drive(fork(sent.pk, at, world.user), say("Sent, and filed."))

    assert (new.status, new.output, new.depth, new.parent_run_id) == (
        "completed",
        "Sent, and filed.",
        0,
        None,
    )
    assert len(mail.outbox) == 1
    said = [message.content for message in Scripted.asked[-1][0] if message.role == "assistant"]
    assert said == [""]  # the call, and not yet the last word
    sent.refresh_from_db()
    assert (sent.last_digest, sent.status, events(sent)) == before


def test_its_log_says_where_it_comes_from_and_holds_by_itself(sent, world):
    at = seq_of(sent, "tool.completed")

    new = drive(fork(sent.pk, at, world.user), say("Done."))

    digest = RunEvent.objects.get(run=sent, seq=at).digest
    assert payload(new, "run.created")["forked_from"] == {"run": sent.pk, "seq": at, "digest": digest}
    assert types(new)[1:at] == types(sent)[1:at]
    assert events(new)[1:at] == events(sent)[1:at]
    assert chain_holds(new) and verify(new.pk).broken == ""
    assert verify(sent.pk).broken == ""
    assert state_of(new).ended == "run.completed"


def test_the_copied_call_keeps_its_result_under_a_key_of_its_own(sent, world):
    new = fork(sent.pk, seq_of(sent, "tool.completed"), world.user)

    old_call, new_call = (ToolCall.objects.get(run=run) for run in (sent.pk, new))
    assert (new_call.call_id, new_call.result, new_call.status) == (
        old_call.call_id,
        old_call.result,
        "succeeded",
    )
    assert new_call.idempotency_key != old_call.idempotency_key


def test_a_further_word_stands_at_its_end(sent, world):
    new = drive(
        fork(sent.pk, seq_of(sent, "tool.completed"), world.user, "In German, please"), say("Gesendet.")
    )

    assert Scripted.asked[-1][0][-1].content.endswith("In German, please")
    assert new.output == "Gesendet."


def test_from_the_first_message_everything_is_asked_anew_and_passes_the_gate(sent, world):
    new = drive(fork(sent.pk, 2, world.user), call(("send_email", LETTER)))

    assert (new.status, new.waiting_reason) == ("waiting", "approval")
    assert Approval.objects.get(run=new).status == "pending"
    assert len(mail.outbox) == 1


def test_a_waiting_run_can_be_gone_on_with_from_an_earlier_point(ask, world):
    asking = by_role(
        Personal_agent=[call(("memory_search", {"query": "a"})), call(("ask_user", {"question": "?"}))]
    )
    old = ask(asking)

    new = drive(fork(old.pk, seq_of(old, "tool.completed"), world.user), say("I know already."))

    old.refresh_from_db()
    assert (old.status, new.status) == ("waiting", "completed")


@pytest.mark.parametrize(
    ("choose", "code"),
    [
        (lambda run: seq_of(run, "tool.called"), "NOT_A_POINT"),
        (lambda run: seq_of(run, "message.created", 1), "NOT_A_POINT"),  # the message that asks for the call
        (lambda run: seq_of(run, "message.created", 2), "NOT_A_POINT"),  # the last word
        (lambda run: run.last_seq, "NOT_A_POINT"),
        (lambda run: run.last_seq + 1, "NO_SUCH_EVENT"),
        (lambda run: 0, "NO_SUCH_EVENT"),
    ],
)
def test_where_a_call_is_open_or_nothing_is_left_nobody_goes_on(sent, world, choose, code):
    with pytest.raises(CannotStart) as refused:
        fork(sent.pk, choose(sent), world.user)

    assert refused.value.code == code
    assert Run.objects.count() == 1


def test_only_the_person_it_works_for_runs_it_again(sent, world):
    other = MembershipFactory(organization=world.organization, user__username="omar").user

    with pytest.raises(NotAllowed) as refused:
        fork(sent.pk, 2, other)

    assert refused.value.code == "NOT_ENTITLED"


def test_who_has_left_the_organization_starts_nothing(sent, world):
    Membership.objects.filter(user=world.user).update(active=False)

    with pytest.raises(NotAllowed) as refused:
        fork(sent.pk, 2, world.user)

    assert refused.value.code == "NOT_ENTITLED"


def test_the_budget_is_a_new_one_on_top_of_what_was_used(sent, world, settings):
    settings.RUN_STEPS, settings.RUN_TOKENS = 3, 1000
    used = state_of(sent)

    new = Run.objects.get(pk=fork(sent.pk, seq_of(sent, "tool.completed"), world.user))

    assert new.budgets["steps"] == 3 + 1
    assert 1000 < new.budgets["tokens"] <= 1000 + used.tokens
    assert new.deadline > sent.created_at


def test_a_groups_run_is_run_again_within_todays_rights(ask, world):
    group = [say("EVIDENCE: 5"), say("PROPOSAL: match"), say("DECISION: 5")]
    replies = {"researcher": group[:1], "analyst": group[1:2], "lead": group[2:]}
    ask(by_role(Personal_agent=[call(("escalate_to_group", {"goal": "Compare"})), say("5")], **replies))
    old = Run.objects.get(kind="group")
    Membership.objects.filter(user=world.user).update(denied_tools=["http_get"])

    new_id = fork(old.pk, seq_of(old, "message.created", 2), world.user)
    Scripted.play = staticmethod(by_role(lead=[say("DECISION: 4")]))
    executor.run(new_id)

    new = Run.objects.get(pk=new_id)
    assert (new.status, new.output, new.depth) == ("completed", "DECISION: 4", 0)
    assert "http_get" in new.delegated_permissions["denied_tools"]
    assert [e["content"] for t, e in events(new) if t == "message.created"][1:] == [
        "EVIDENCE: 5", "PROPOSAL: match", "DECISION: 4",
    ]  # fmt: skip
    assert verify(new.pk).broken == ""


@pytest.mark.parametrize("restricts", ["a rule", "its list", ""])
def test_a_groups_run_is_run_again_below_the_role_that_the_persons_agent_has_today(ask, world, restricts):
    """What a role is denied it has nobody below it do, also where the run is from before the agent had it."""
    search = call(("memory_search", {"query": "prices"}))
    first = by_role(
        Personal_agent=[call(("escalate_to_group", {"goal": "Compare"})), say("5")],
        researcher=[search, say("EVIDENCE: 5")],
        analyst=[say("PROPOSAL: match")],
        lead=[say("DECISION: 5")],
    )
    ask(first)
    old = Run.objects.get(kind="group")
    assert "tool.called" in types(old)
    role = RoleFactory(organization=world.organization, name="restricted")
    AgentInstance.objects.filter(user=world.user).update(role=role)
    if restricts == "a rule":
        deny = {"organization": world.organization, "tool": "memory_search", "effect": "deny"}
        CapabilityRule.objects.create(**deny, role=role)
    elif restricts:
        Role.objects.filter(pk=role.pk).update(denied_tools=["memory_search"])

    new_id = fork(old.pk, seq_of(old, "message.created"), world.user)
    again = {"analyst": [say("PROPOSAL: match")], "lead": [say("DECISION: 5")]}
    Scripted.play = staticmethod(by_role(researcher=[search, say("EVIDENCE: 5")], **again))
    executor.run(new_id)
    new = Run.objects.get(pk=new_id)
    assert ("tool.blocked" in types(new), "tool.called" in types(new)) == (bool(restricts), not restricts)


@pytest.mark.parametrize(
    "effect", ["deny", "deny unnamed", "require_approval", "a standing approval", "of another", ""]
)
def test_a_groups_run_is_run_again_where_the_group_may_be_asked_today(ask, world, effect):
    """Else a rule about the group would be passed by a run from before it, also by a fork's fork."""
    ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "Compare"})), say("5")],
            researcher=[say("EVIDENCE: 5")],
            analyst=[say("PROPOSAL: match")],
            lead=[say("DECISION: 5")],
        )
    )
    old = Run.objects.get(kind="group")
    seq = seq_of(old, "message.created")
    between = fork(old.pk, seq, world.user)
    if effect:
        group = "grp_other" if effect == "of another" else world.group.pk
        rule = {"effect": "deny" if effect.startswith("deny") else "require_approval"}
        rule["condition"] = f'has(args.group_id) && args.group_id == "{group}"'
        if effect == "deny unnamed":  # as the call was made
            rule["condition"] = "!has(args.group_id)"
        CapabilityRule.objects.create(organization=world.organization, tool="escalate_to_group", **rule)
    if effect == "a standing approval":
        by = MembershipFactory(organization=world.organization, role="decider").user
        about = {"tool": "escalate_to_group", "any_arguments": True, "granted_by": by, "max_uses": 1}
        Grant.objects.create(organization=world.organization, project=world.project, **about)

    for run_id in (old.pk, between):
        if effect in ("", "of another"):
            assert fork(run_id, seq, world.user)
            continue
        with pytest.raises(CannotStart) as refused:
            fork(run_id, seq, world.user)
        assert refused.value.code == "GROUP_NOT_ALLOWED"


@pytest.mark.parametrize("by", ["a rule", "its list", ""])
def test_nor_is_it_where_the_role_of_today_above_the_one_that_asked_may_not_pass_it_on(ask, world, by):
    """Two groups deep: the person's agent asks one group, which asks another."""
    deep = GroupFactory(project=world.project, name="Deep")
    MemberFactory(group=deep, role=RoleFactory(organization=world.organization, name="writer"))
    ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "g"})), say("done")],
            researcher=[call(("escalate_to_group", {"goal": "h", "group_id": deep.pk})), say("x")],
            writer=[say("DECISION: w")],
            analyst=[say("y")],
            lead=[say("DECISION: z")],
        )
    )
    old = Run.objects.get(group=deep)
    role = RoleFactory(organization=world.organization, name="restricted")
    AgentInstance.objects.filter(user=world.user).update(role=role)
    if by == "a rule":
        deny = {"organization": world.organization, "tool": "escalate_to_group", "effect": "deny"}
        CapabilityRule.objects.create(**deny, role=role, condition=f'args.group_id == "{deep.pk}"')
    elif by:
        Role.objects.filter(pk=role.pk).update(
            allowed_tools=["escalate_to_group"], delegable_tools=["send_email"]
        )

    seq = seq_of(old, "message.created")
    if not by:
        assert fork(old.pk, seq, world.user)
        return
    with pytest.raises(CannotStart) as refused:
        fork(old.pk, seq, world.user)
    assert refused.value.code == "GROUP_NOT_ALLOWED"


def test_the_old_runs_working_memory_is_left_alone(ask, world):
    long = {"index": "sys-0"}
    note = {"parent": "usr-0", "name": "Note", "description": "d", "detail": "kept"}
    old = ask(
        by_role(
            Personal_agent=[
                call(("context_create_detail", note)),
                call(("context_view", long)),
                say("Done."),
            ]
        )
    )
    assert "context.changed" in types(old)
    before = RunEvent.objects.filter(type="context.changed").count()

    new = drive(
        fork(old.pk, seq_of(old, "tool.completed"), world.user),
        call(("context_create_detail", note | {"name": "Other"})),
        say("Done again."),
    )

    assert new.status == "completed"
    assert verify(new.pk).broken == ""
    changed = {e["view"] for t, e in events(new) if t == "context.changed"}
    assert changed and not changed & {e["view"] for t, e in events(old) if t == "context.changed"}
    assert RunEvent.objects.filter(run=old, type="context.changed").count() == before


def test_a_cancelled_run_can_be_run_again(ask, world):
    old = ask(by_role(Personal_agent=[call(("ask_user", {"question": "?"}))]))
    cancel(old.pk)

    assert drive(fork(old.pk, 2, world.user), say("So be it.")).status == "completed"


def test_a_program_runs_it_again_by_the_api(sent, world):
    api = Api(permit(world.user, "start_run"), world.organization)
    at = seq_of(sent, "tool.completed")

    made = api.post(f"runs/{sent.pk}/fork/", {"seq": at})
    refused = api.post(f"runs/{sent.pk}/fork/", {"seq": sent.last_seq})

    assert made.status_code == 202
    new = made.json()["id"]
    assert made["Location"].endswith(f"/api/runs/{new}/")
    assert payload(new, "run.created")["forked_from"]["run"] == sent.pk
    assert (refused.status_code, refused.json()["code"]) == (409, "NOT_A_POINT")


def test_a_program_does_not_run_somebody_elses_run_again(sent, world):
    other = MembershipFactory(organization=world.organization, user__username="omar").user

    refused = Api(other, world.organization).post(f"runs/{sent.pk}/fork/", {"seq": 2})

    assert (refused.status_code, refused.json()["code"]) == (403, "NOT_ENTITLED")
