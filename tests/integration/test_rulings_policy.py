"""What was decided about permissions and approvals, each shown by a run."""

import pytest

import memory.context
import policy
from groups.models import Role
from policy.models import CapabilityRule
from runs.execution import executor
from runs.models import Approval, Run, ToolCall
from tests.acting import approve
from tests.scripted import by_role, call, in_order, say

from .helpers import events, payload, types
from .test_decisions import TO, decider

pytestmark = pytest.mark.django_db

SEND = call(("send_email", TO))
SEARCH = call(("memory_search", {"query": "prices"}))
FETCH = call(("http_get", {"url": "http://127.0.0.1/"}))
ESCALATE = call(("escalate_to_group", {"goal": "deeper"}))
LEAD = [say("DECISION: done")]


@pytest.fixture
def personal(world):
    """Set the fields of the personal agent's role."""

    def _personal(**fields):
        Role.objects.update_or_create(organization=world.organization, name="Personal agent", defaults=fields)

    return _personal


def role(world, name, **fields):
    Role.objects.filter(organization=world.organization, name=name).update(**fields)


def why(run, type="tool.blocked"):
    return payload(run, type)["decision"]["reason_code"]


def in_group(*replies):
    """The personal agent escalates, the group's researcher does this."""
    return by_role(
        Personal_agent=[ESCALATE, say("done")],
        researcher=[*replies, say("x")],
        analyst=[say("y")],
        lead=LEAD,
    )


# lists


def test_a_roles_list_is_complete_and_an_empty_one_allows_nothing(ask, personal):
    personal(allowed_tools=["http_get"])
    assert why(ask(in_order(SEARCH, say("ok")))) == "role_not_allowed"
    personal(allowed_tools=[])
    assert why(ask(in_order(SEARCH, say("ok")))) == "role_not_allowed"
    personal(allowed_tools=None)
    assert why(ask(in_order(SEARCH, say("ok"))), "tool.called") == "risk_default"


def test_a_high_risk_tool_on_the_roles_list_runs_unless_a_rule_asks(ask, personal, world):
    personal(allowed_tools=None)
    assert ask(in_order(SEND)).waiting_reason == "approval"
    personal(allowed_tools=["send_email"])
    assert why(ask(in_order(SEND, say("ok"))), "tool.called") == "role_allowed"
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_approval"
    )
    assert ask(in_order(SEND)).waiting_reason == "approval"


def test_a_personal_agents_bounds_are_its_users_and_its_roles(ask, personal, world):
    personal(allowed_tools=["memory_search"])
    world.membership.denied_tools = ["memory_search"]
    world.membership.save()
    run = ask(in_order(SEARCH, FETCH, say("ok")))

    reasons = [payload["decision"]["reason_code"] for type, payload in events(run) if type == "tool.blocked"]
    assert reasons == ["boundary_denied", "role_not_allowed"]
    assert run.delegated_permissions is None


def test_without_any_rule_whatever_the_lists_allow_runs(ask, personal):
    personal(allowed_tools=["send_email"])
    assert not CapabilityRule.objects.exists()
    assert ask(in_order(SEND, say("ok"))).status == "completed"


# delegation


def test_what_was_delegated_forbids_what_the_role_allows(ask, world):
    world.membership.denied_tools = ["http_get"]
    world.membership.save()
    role(world, "researcher", allowed_tools=["http_get"])
    ask(in_group(FETCH))

    child = Run.objects.get(kind="group")
    assert child.delegated_permissions == {
        "allowed_tools": None,
        "denied_tools": ["http_get"],
        "vouched_tools": [],
    }
    error = payload(child, "tool.blocked")["error"]
    assert (error["code"], error["unlockable"]) == ("PERMISSION_DENIED", False)
    assert error["message"] == (
        "Tool 'http_get' is denied by policy: the delegated permissions deny it; "
        f"passed on by the role Personal agent, run {child.parent_run_id}"
    )


def test_the_role_forbids_what_was_delegated(ask, world, personal):
    personal(allowed_tools=["escalate_to_group", "memory_search"])
    role(world, "researcher", denied_tools=["memory_search"])
    ask(in_group(SEARCH))

    child = Run.objects.get(kind="group")
    assert "memory_search" in child.delegated_permissions["allowed_tools"]
    assert why(child) == "role_denied"


@pytest.mark.parametrize("said", [{}, {"group_id": ""}])
@pytest.mark.parametrize("effect", ["deny", "require_human", ""])
def test_a_group_that_is_found_is_one_that_the_call_might_name(ask, world, personal, said, effect):
    """A rule about the group that a call names would be passed by leaving the name out."""
    if effect:
        condition = f'has(args.group_id) && args.group_id == "{world.group.pk}"'
        where = {"organization": world.organization, "tool": "escalate_to_group"}
        CapabilityRule.objects.create(**where, effect=effect, condition=condition)
    ask(in_order(call(("escalate_to_group", {"goal": "deeper", **said})), say("done"), *LEAD))
    children = Run.objects.filter(kind="group")
    assert children.count() == (not effect)
    if effect:
        error = ToolCall.objects.get(tool="escalate_to_group").error
        assert error["code"] == "GROUP_NOT_ALLOWED" and world.group.pk in error["message"]


def test_an_approval_that_suffices_for_the_group_lets_the_goal_go_to_it(ask, world, personal):
    where = {"organization": world.organization, "tool": "escalate_to_group"}
    CapabilityRule.objects.create(**where, effect="require_approval")
    run = ask(in_order(call(("escalate_to_group", {"goal": "deeper"})), say("done"), *LEAD))
    approve(Approval.objects.get(run=run).pk, decider(world))
    executor.run(run.pk)
    assert Run.objects.filter(kind="group").count() == 1


def test_a_coordinator_that_may_only_escalate_passes_on_what_its_role_names(ask, world, personal):
    personal(allowed_tools=["escalate_to_group"], delegable_tools=["memory_search"])
    ask(in_group(SEARCH, FETCH))

    child = Run.objects.get(kind="group")
    assert child.delegated_permissions["allowed_tools"] == ["memory_search"]
    assert payload(child, "tool.called")["tool"] == "memory_search"
    assert why(child) == "delegated_not_allowed"


def test_with_each_level_there_is_less_to_pass_on(ask, world, personal):
    personal(allowed_tools=["escalate_to_group", "memory_search", "http_get"])
    role(world, "researcher", denied_tools=["http_get"])

    def play(messages, facts):
        if facts["role"] in ("analyst", "lead") or any(m.role == "tool" for m in messages):
            return say("DECISION: done")
        depth = Run.objects.filter(status="running").latest("depth").depth
        return say("enough") if depth == 2 else ESCALATE

    ask(play)
    first, second = (Run.objects.get(depth=depth).delegated_permissions for depth in (1, 2))
    assert set(first["allowed_tools"]) == {"escalate_to_group", "memory_search", "http_get"}
    assert (set(second["allowed_tools"]), second["denied_tools"]) == (
        set(first["allowed_tools"]),
        ["http_get"],
    )


def test_a_right_given_later_does_not_reach_a_child_and_one_taken_away_does(ask, world, personal):
    personal(allowed_tools=["escalate_to_group", "memory_search"])
    replies = [SEARCH, SEARCH, FETCH, say("x")]

    def play(messages, facts):
        if facts["role"] == "Personal agent":
            return say("done") if any(m.role == "tool" for m in messages) else ESCALATE
        if facts["role"] != "researcher":
            return say("DECISION: done")
        if len(replies) == 3:
            personal(allowed_tools=None)
            world.membership.denied_tools = ["memory_search"]
            world.membership.save()
        return replies.pop(0)

    ask(play)
    child = Run.objects.get(kind="group")
    said = [
        (type, payload["tool"], payload["decision"]["reason_code"])
        for type, payload in events(child)
        if type in ("tool.called", "tool.blocked")
    ]
    assert said == [
        ("tool.called", "memory_search", "risk_default"),
        ("tool.blocked", "memory_search", "boundary_denied"),
        ("tool.blocked", "http_get", "delegated_not_allowed"),
    ]


# approvals


def test_a_call_is_marked_as_begun_only_after_its_decision_and_its_result_is_the_tools_own(ask, world):
    run = ask(in_order(SEND, say("done")))
    assert "tool.called" not in types(run)
    approval = Approval.objects.get(run=run)
    approve(approval.pk, decider(world), "this is no result")
    executor.run(run.pk)

    order = [type for type in types(run) if type.startswith(("tool.", "wait."))]
    assert order == [
        "tool.requires_approval",
        "wait.completed",
        "tool.approved",
        "tool.called",
        "tool.completed",
    ]
    assert ToolCall.objects.get(run=run).result["sent"] == 1


def test_the_correlation_key_is_made_of_the_idempotency_key(ask):
    run = ask(in_order(SEND))
    key = ToolCall.objects.get(run=run).idempotency_key

    assert Approval.objects.get(run=run).correlation_key == f"cap-approval-{key}"
    assert run.waits.get().correlation_key == f"cap-approval-{key}"


def test_a_denied_call_fails_for_good_and_the_run_goes_on(ask, world):
    CapabilityRule.objects.create(
        organization=world.organization, tool="memory_search", effect="deny", name="no search"
    )
    run = ask(in_order(SEARCH, say("went on")))

    assert (run.status, run.output) == ("completed", "went on")
    assert ToolCall.objects.get(run=run).status == "denied"
    assert payload(run, "tool.blocked")["error"]["message"] == (
        "Tool 'memory_search' is denied by policy: no search"
    )


# names


def test_two_things_are_called_agent_context():
    fields = policy.AgentContext.__dataclass_fields__.keys()

    assert fields == {"agent_id", "role_id", "allowed_tools", "denied_tools", "delegated_permissions"}
    assert memory.context.AgentContext is not policy.AgentContext
