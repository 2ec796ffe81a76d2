"""What would happen: the gate's own answer, with every reason, and nothing done."""

import pytest
from django.core import mail

from groups.models import AgentInstance, Role
from policy.authority import Demand
from policy.models import Capability, CapabilityRule, Grant
from runs.actions.decide import DecisionRefused, check_entitled
from runs.gate.deciders import who_may_decide
from runs.gate.simulation import CannotSimulate, simulate
from runs.models import Approval, Run
from tests.acting import at_the_pages
from tests.factories import MembershipFactory, ProjectFactory, RoleFactory, permit
from tests.scripted import call, in_order, say

from .helpers import payload
from .test_decisions import TO, decider

pytestmark = pytest.mark.django_db


@pytest.fixture
def would(world):
    """What would happen to mia's agent, or to whom the fields name."""

    def _would(tool="send_email", arguments=TO, user=None, **fields):
        return simulate(world.organization, world.project, user or world.user, tool, arguments, **fields)

    return _would


@pytest.fixture
def rule(world):
    def make(**fields):
        capability, _ = Capability.objects.get_or_create(organization=world.organization, name="send_email")
        about = {} if "tool" in fields else {"capability": capability}
        return CapabilityRule.objects.create(
            organization=world.organization, **{"effect": "require_approval", **about, **fields}
        )

    return make


def test_what_may_run_says_why(would):
    found = would("memory_search", {"query": "prices"}).explained

    assert (found.effect, found.reason_code, found.allowed) == ("allow", "risk_default", True)
    assert (found.unlockable, found.deciders, found.problems) == (False, "", ())


def test_what_needs_an_approval_says_which_rule_and_who_may_decide(would, rule, world):
    asked = rule(name="mail is checked", effect="require_human", deciders_needed=2, timeout_seconds=60)
    decider(world, name="zoe")
    decider(world, kind="service", name="robot")
    found = would()

    said = found.explained
    assert (said.effect, said.reason_code, said.rule_id) == ("require_human", "rule_require_human", asked.pk)
    assert said.message == "Tool 'send_email' requires a person's approval: mail is checked"
    assert (said.unlockable, said.deciders_needed, said.timeout) == (True, 2, 60)
    assert said.deciders == (
        "2 people with the right to decide approvals in this project, but not the run's own user"
    )
    assert found.who == ("zoe",)


def test_every_rule_is_there_with_what_kept_it_silent(would, rule, world):
    rule(name="asks")
    rule(name="elsewhere", project=ProjectFactory(organization=world.organization))
    rule(name="of another tool", tool="http_get")
    rule(name="for many", condition="size(to) > 5", effect="deny")
    rule(name="tried", shadow=True, effect="deny")

    said = {line.name: (line.spoke, line.why) for line in would().explained.rules}
    assert said == {
        "asks": (True, "require_approval"),
        "elsewhere": (False, "is for another project"),
        "of another tool": (False, "is about the tool http_get"),
        "for many": (False, "its condition is false: size(to) > 5"),
        "tried": (False, "in shadow, would say deny"),
    }


def test_a_deny_says_that_no_approval_unlocks_it(would, rule):
    rule(name="never", effect="deny")
    found = would()

    assert found.explained.message == "Tool 'send_email' is denied by policy: never"
    assert (found.explained.unlockable, found.who) == (False, ())


def test_arguments_that_fail_the_schema_are_told_with_their_paths(would):
    found = would(arguments={"to": "a@example.com", "subject": "s"}).explained

    assert (found.effect, found.reason_code, found.allowed) == ("deny", "invalid_arguments", False)
    assert [problem["path"] for problem in found.problems] == ["/", "/to"]
    assert "'body' is a required property" in found.message


def test_a_tool_that_is_not_there_is_named(would):
    assert would("sned_email").explained.message == "There is no tool 'sned_email'."


def test_a_user_without_membership_is_denied_everything(would):
    stranger = MembershipFactory().user
    assert would("memory_search", {"query": "x"}, user=stranger).explained.reason_code == "no_membership"


def test_a_standing_approval_shows_what_it_lifts(would, rule, world):
    rule()
    grant = Grant.objects.create(
        organization=world.organization,
        project=world.project,
        tool="send_email",
        arguments={"to": TO["to"]},
        granted_by=MembershipFactory(organization=world.organization, role="decider").user,
        max_uses=1,
    )

    found = would().explained
    assert (found.effect, found.reason_code) == ("allow", "granted")
    assert [line.id for line in found.considered if line.layer == "grant" and line.spoke] == [grant.pk]
    assert would(arguments={**TO, "to": ["b@example.com"]}).explained.effect == "require_approval"
    assert not grant.uses.exists()


def test_a_groups_member_has_what_the_personal_agent_could_pass_on(would, world):
    world.membership.denied_tools = ["http_get"]
    world.membership.save()
    role = world.group.members.get(role__name="analyst").role
    arguments = {"url": "http://example.com"}

    found = would("http_get", arguments, group=world.group, role=role)
    assert found.explained.reason_code == "delegated_denied"
    assert found.delegated == {
        "allowed_tools": None,
        "denied_tools": ["http_get"],
        "vouched_tools": [],
    }
    given = {"allowed_tools": ["http_get"]}
    assert would(
        "http_get", arguments, group=world.group, role=role, delegated=given
    ).explained.reason_code == ("boundary_denied")


def test_a_role_or_an_agent_may_be_asked_about_in_the_users_stead(would, world):
    role = RoleFactory(organization=world.organization, denied_tools=["memory_search"])
    agent = AgentInstance.objects.create(organization=world.organization, role=role)

    for fields in ({"role": role}, {"agent": agent}):
        found = would("memory_search", {"query": "x"}, **fields).explained
        assert (found.effect, found.reason_code) == ("deny", "role_denied")


@pytest.mark.parametrize(
    "fields",
    [
        lambda: {"role": RoleFactory()},
        lambda: {"delegated": {"allowed": []}},
        lambda: {"delegated": {"allowed_tools": "all"}},
        lambda: {"arguments": {"to": float("nan")}},
    ],
)
def test_a_question_that_makes_no_sense_is_refused(would, fields):
    with pytest.raises(CannotSimulate):
        would(**fields())


@pytest.mark.parametrize("effect", ["allow", "require_approval", "require_human", "deny"])
def test_the_simulation_says_what_then_happens(would, rule, ask, effect):
    rule(effect=effect)
    Role.objects.filter(name="Personal agent").delete()
    run = ask(in_order(call(("memory_search", {"query": "x"})), say("the agent is there now")))
    Role.objects.filter(pk=run.role_id).update(allowed_tools=["send_email"])
    found = would()
    events = {"allow": "tool.called", "deny": "tool.blocked"}
    run = ask(in_order(call(("send_email", TO)), say("done")))

    then = payload(run, events.get(effect, "tool.requires_approval"))["decision"]
    assert (found.explained.effect, found.explained.reason_code) == (then["effect"], then["reason_code"])
    assert (found.explained.rule_id, found.policy) == (then["rule"], then["policy"])


def test_simulating_leaves_nothing_behind(would, rule):
    rule()
    would()
    assert (Run.objects.count(), Approval.objects.count(), mail.outbox) == (0, 0, [])


# who may decide


@pytest.mark.parametrize("effect", ["require_approval", "require_human"])
@pytest.mark.parametrize("needed", [1, 2])
@pytest.mark.parametrize("self_approval", [False, True])
def test_those_named_are_exactly_those_who_are_let_decide(ask, rule, world, effect, needed, self_approval):
    world.project.allow_self_approval = self_approval
    world.project.save()
    rule(effect=effect, deciders_needed=needed)
    approval = Approval.objects.get(run=ask(in_order(call(("send_email", TO)))))
    everybody = [
        decider(world, name="zoe"),
        decider(world, name="robot", kind="service"),
        decider(world, name="gone", active=False),
        decider(world, name="elsewhere", projects=[]),
        decider(world, name="here", projects=[world.project.pk]),
        MembershipFactory(organization=world.organization, user__username="plain").user,
        MembershipFactory(
            organization=world.organization, user__username="root", user__is_superuser=True
        ).user,
        MembershipFactory(user__username="stranger", user__is_superuser=True).user,
        world.user,
    ]
    permit(world.user, "decide_approval")

    def let(user):
        try:
            check_entitled(approval, at_the_pages(user, world.organization.pk))
        except DecisionRefused:
            return False
        return True

    named = who_may_decide(
        world.project, world.user.pk, Demand(effect, needed, (), world.project.allow_self_approval)
    )
    assert {user.username for user in named} == {user.username for user in everybody if let(user)}
    assert "zoe" in {user.username for user in named}
