"""Rules that give people more than those beside them ask: who decides, and about what."""

import contextlib

import pytest
from django.core import mail
from django.db import transaction

from groups import changes
from groups.models import (
    AgentInstance,
    Group,
    GroupMember,
    Membership,
    Organization,
    Project,
    ProposedChange,
    Role,
)
from policy.models import Capability, CapabilityRule
from policy.provenance.infer import Declaration
from runs.actions import mcp, second
from runs.actions.decide import DecisionRefused
from runs.models import Approval
from runs.tools.base import ToolContext
from tests.acting import approve, at_the_pages, by_token
from tests.factories import MembershipFactory, UserFactory
from tests.integration.api_client import Api
from tests.integration.test_attacks_by_members import limited  # noqa: F401
from tests.integration.test_decisions import decider, resumed
from tests.integration.test_second_person import crm_of
from tests.scripted import by_role, call, in_order, say

pytestmark = pytest.mark.django_db
MAIL = call(("send_email", {"to": ["a@example.com"], "subject": "s", "body": "b"}))


@pytest.fixture
def own(world, limited):  # noqa: F811
    """A member of one project has people approve their own mail there."""
    api = Api(limited("policy.add_capabilityrule", "policy.view_capabilityrule"), world.organization)
    body = {"tool": "send_email", "effect": "require_approval", "deciders": ["run.user"]}
    assert api.post("policy/rules/", body | {"project": world.project.pk}).status_code == 201


@pytest.mark.parametrize("effect", ["require_approval", "require_human"])
def test_where_the_organization_asks_as_well_nobody_approves_their_own_mail_by_a_projects_rule(
    ask, world, own, effect
):
    CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect=effect)
    run = ask(in_order(MAIL, say("done")))
    approval = Approval.objects.get(run=run)
    with pytest.raises(DecisionRefused) as refused:
        approve(approval.pk, world.user)
    assert (refused.value.code, mail.outbox) == ("NOT_ENTITLED", [])
    approve(approval.pk, decider(world))
    assert resumed(run).status == "completed" and len(mail.outbox) == 1


@pytest.mark.parametrize("effect", ["require_approval", "require_human"])
def test_where_a_rule_of_the_same_scope_asks_and_names_nobody_people_decide_with_the_permission_only(
    ask, world, effect
):
    """Whoever adds a recipient whom one's own approval is enough for needs no less than for the others."""
    rules = {"organization": world.organization, "tool": "send_email"}
    CapabilityRule.objects.create(**rules, effect=effect)
    CapabilityRule.objects.create(
        **rules,
        effect="require_approval",
        deciders=["run.user"],
        condition='"a@example.com" in args.to',
    )
    run = ask(in_order(MAIL, say("done")))
    approval = Approval.objects.get(run=run)
    for somebody in (world.user, decider(world)):
        with pytest.raises(DecisionRefused):
            approve(approval.pk, somebody)
    assert mail.outbox == []

    Project.objects.filter(pk=world.project.pk).update(allow_self_approval=True)
    Membership.objects.filter(user=world.user).update(role="decider")
    approve(approval.pk, world.user)
    assert resumed(run).status == "completed" and len(mail.outbox) == 1


@pytest.mark.parametrize("kept", ["careful", "balanced"])
def test_nor_where_the_projects_profile_asks(ask, world, own, kept):
    Project.objects.filter(pk=world.project.pk).update(approval_profile=kept)
    run = ask(in_order(MAIL, say("done")))
    with pytest.raises(DecisionRefused) as refused:
        approve(Approval.objects.get(run=run).pk, world.user)
    assert refused.value.code == "NOT_ENTITLED"
    assert not mail.outbox


def test_where_nobody_else_asks_they_do(ask, world, own):
    run = ask(in_order(MAIL, say("done")))
    approve(Approval.objects.get(run=run).pk, world.user)
    assert resumed(run).status == "completed" and len(mail.outbox) == 1


def test_where_the_organizations_rule_names_them_they_do(ask, world, own):
    CapabilityRule.objects.create(
        organization=world.organization,
        tool="send_email",
        effect="require_human",
        deciders=["run.user", "role:administrator"],
    )
    run = ask(in_order(MAIL, say("done")))
    approve(Approval.objects.get(run=run).pk, world.user)
    assert resumed(run).status == "completed" and len(mail.outbox) == 1


# A second person


def second_person(world):
    """The API of one of two administrators."""
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    boss = MembershipFactory(organization=world.organization, role="administrator").user
    return Api(boss, world.organization)


def patch(api, address, body):
    return api.client.patch(address, body, content_type="application/json", headers=api.headers)


@pytest.fixture
def group_mails(ask):
    """Have the group asked, and one of its experts send a mail."""

    def _asked(by="researcher"):
        asks = [call(("escalate_to_group", {"goal": "g"})), say("done")]
        speak = {name: [say("x")] * 3 for name in ("researcher", "analyst", "Mailer")}
        speak["lead"] = [say("DECISION: z")] * 3
        speak[by] = [MAIL, say("x")]
        return ask(by_role(Personal_agent=asks, **speak))

    return _asked


@pytest.mark.parametrize("before", ["none", "off", "allowed"])
def test_where_a_profile_asks_a_rule_by_which_people_approve_their_own_mail_waits(world, before):
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    Project.objects.filter(pk=world.project.pk).update(approval_profile="careful")
    boss = MembershipFactory(organization=world.organization, role="administrator").user
    api = Api(boss, world.organization)
    body = {"tool": "send_email", "effect": "require_approval", "deciders": ["run.user"]}
    if before == "none":
        assert api.post("policy/rules/", body).status_code == 202
        return
    effect = "allow" if before == "allowed" else "require_human"
    rule = CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect=effect, active=before != "off"
    )
    said = api.client.patch(
        f"/api/policy/rules/{rule.pk}/",
        {**body, "active": True},
        content_type="application/json",
        headers=api.headers,
    )
    assert said.status_code == 202


def test_a_seat_in_a_role_that_a_rule_lets_write_unasked_is_filled_by_two(ask, world):
    """As it waits that a seat gets such a role, so it does that one is removed and made again in it."""
    mailer = Role.objects.create(organization=world.organization, name="Mailer")
    mine = {"organization": world.organization, "tool": "send_email"}
    CapabilityRule.objects.create(**mine, effect="require_human")
    CapabilityRule.objects.create(**mine, effect="allow", role=mailer)
    boss = MembershipFactory(organization=world.organization, role="administrator").user
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    seat = GroupMember.objects.get(group=world.group, role__name="researcher")
    agent, ordinal = seat.agent_instance, seat.ordinal
    again = {"organization": world.organization, "group": world.group, "agent_instance": agent}

    with changes.acting(boss, "admin"):
        seat.delete()
        with pytest.raises(changes.TakesSecond), transaction.atomic():
            GroupMember.objects.create(**again, role=mailer, ordinal=ordinal)
        with pytest.raises(changes.TakesSecond), transaction.atomic():
            GroupMember.objects.create(**again, role=seat.role, ordinal=ordinal)
        with changes.settled():
            GroupMember.objects.create(**again, role=seat.role, ordinal=ordinal)

    asks = [call(("escalate_to_group", {"goal": "g"})), say("done")]
    speak = {"researcher": [MAIL, say("x")], "analyst": [say("y")] * 3, "lead": [say("DECISION: z")] * 3}
    ask(by_role(Personal_agent=asks, **speak))
    assert Approval.objects.get().effect == "require_human" and not mail.outbox


def test_who_is_removed_and_added_without_their_limits_is_a_member_again(world):
    """What a member may not use, or see, is not lifted by making the membership anew."""
    boss = MembershipFactory(organization=world.organization, role="administrator").user
    limits = {"projects": [world.project.pk], "denied_tools": ["send_email"]}
    kept = MembershipFactory(organization=world.organization, role="member", **limits)
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    made = {"organization": world.organization, "role": "member"}

    with changes.acting(boss, "admin"):
        kept.delete()
        with pytest.raises(changes.TakesSecond), transaction.atomic():
            Membership.objects.create(**made, user=kept.user)
        Membership.objects.create(**made, user=UserFactory())


LISTS = {
    "vouches for it": {"allowed_tools": None},
    "passes on what it may not use itself": {"allowed_tools": ["escalate_to_group"]},
}


@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
def test_a_role_that_comes_to_pass_a_tool_on_waits(world, group_mails, settings, lists):
    """Without a list of what it passes on, a role passes on what it may use; and any list vouches."""
    usual = Role.objects.create(organization=world.organization, name=settings.PERSONAL_ROLE, **lists)
    Role.objects.filter(name="researcher").update(allowed_tools=["send_email"])
    said = patch(second_person(world), f"/api/roles/{usual.pk}/", {"delegable_tools": ["send_email"]})
    group_mails()
    assert (said.status_code, mail.outbox) == (202, [])


def test_so_does_a_new_seat_in_a_role_whose_list_what_is_above_vouches_for(world, group_mails, settings):
    """Another role for a seat waits; so does one that is made in it anew."""
    home = world.organization
    Role.objects.create(organization=home, name=settings.PERSONAL_ROLE, delegable_tools=["send_email"])
    mailer = Role.objects.create(organization=home, name="Mailer", allowed_tools=["send_email"])
    api = second_person(world)
    seat = GroupMember.objects.get(group=world.group, role__name="researcher")
    assert api.client.delete(f"/api/groups/members/{seat.pk}/", headers=api.headers).status_code == 204
    said = api.post("groups/members/", {"group": world.group.pk, "role": mailer.pk, "ordinal": seat.ordinal})
    group_mails(by="Mailer" if said.status_code == 201 else "analyst")
    assert (said.status_code, mail.outbox) == (202, [])


def test_so_does_a_new_seat_in_a_role_that_a_rule_asks_less_of(world):
    mailer = Role.objects.create(organization=world.organization, name="Mailer")
    mine = {"organization": world.organization, "tool": "send_email"}
    CapabilityRule.objects.create(**mine, effect="require_human")
    CapabilityRule.objects.create(**mine, effect="require_approval", role=mailer)
    api = second_person(world)
    assert api.post("groups/members/", {"group": world.group.pk, "role": mailer.pk}).status_code == 202


LESS = {
    "asks anybody": {"effect": "require_approval"},
    "asks one person": {"effect": "require_human"},
    "asks the run's user": {"effect": "require_approval", "deciders": ["run.user"]},
}


@pytest.mark.parametrize("less", LESS.values(), ids=LESS)
def test_a_tool_that_comes_to_be_spoken_of_by_a_rule_that_asks_for_less_waits(ask, world, add_tool, less):
    """The rule of a project about a capability decides in the place of the organization's about the tool."""
    paid = []

    @add_tool(mutating=True, risk_level="high")
    def pay(run: ToolContext, *, to: str):
        paid.append(to)

    asks = {"tool": "pay", "effect": "require_human", "deciders_needed": 2}
    CapabilityRule.objects.create(organization=world.organization, **asks)
    office = Capability.objects.create(organization=world.organization, name="office")
    api = second_person(world)
    with changes.settled():
        CapabilityRule.objects.create(
            organization=world.organization, project=world.project, capability=office, **less
        )
    said = api.post("policy/bindings/", {"pattern": "p*y", "capability": "office"})
    run = ask(in_order(call(("pay", {"to": "ann"})), say("done")))
    with contextlib.suppress(DecisionRefused):
        approve(Approval.objects.get().pk, world.user if "deciders" in less else api.user)
    resumed(run)
    assert (said.status_code, paid) == (202, [])


def test_a_new_seat_waits_where_a_role_restricts_or_a_rule_speaks_of_one(world):
    """It may come after one in that role, which anybody removes at once, and be freer."""
    api, home = second_person(world), world.organization
    body = {"group": world.group.pk, "role": Role.objects.create(organization=home, name="Free").pk}
    assert api.post("groups/members/", body).status_code == 201
    strict = Role.objects.get(organization=home, name="researcher")
    Role.objects.filter(pk=strict.pk).update(denied_tools=["send_email"])
    assert api.post("groups/members/", body).status_code == 202
    assert api.post("groups/members/", {**body, "role": strict.pk}).status_code == 201
    CapabilityRule.objects.create(organization=home, tool="send_email", effect="deny", role=strict)
    assert api.post("groups/members/", {**body, "role": strict.pk}).status_code == 202


def test_a_rule_waits_that_would_ask_less_than_one_about_tools_that_are_bound_later(world):
    """Who binds or accepts them shows nobody that of two rules one takes the other's place."""
    api, here = second_person(world), {"project": world.project.pk}
    for name in ("office", "payments"):
        Capability.objects.create(organization=world.organization, name=name)
    for body, status in (
        ({"tool": "send_email", "effect": "require_human"}, 201),
        ({**here, "capability": "office", "effect": "require_approval"}, 202),
        ({**here, "capability": "office", "effect": "require_human"}, 201),
        ({**here, "capability": "payments", "effect": "require_human", "deciders_needed": 2}, 201),
        ({"tool": "http_get", "effect": "require_approval"}, 201),  # less specific
        ({**here, "tool": "http_get", "effect": "require_approval"}, 202),  # than the payments' two people
        ({**here, "tool": "http_get", "effect": "deny"}, 201),
    ):
        assert api.post("policy/rules/", body).status_code == status, body


BESIDE = {
    "a person for two": ({"deciders_needed": 2}, {"effect": "require_human"}),
    "anybody for somebody": ({"deciders": ["role:boss"]}, {"deciders_needed": 2}),
    "others": ({"deciders": ["role:boss"]}, {"deciders": ["role:administrator"]}),
    "others, sooner": (
        {"deciders": ["role:boss"]},
        {"deciders": ["role:administrator"], "timeout_seconds": 60},
    ),
}


@pytest.mark.parametrize(("asked", "less"), BESIDE.values(), ids=BESIDE)
def test_a_rule_beside_one_of_the_same_scope_takes_nobodys_place(ask, world, asked, less):
    """What the two ask for holds together, whichever is the newer or has the harder terms."""
    about = {"tool": "send_email", "effect": "require_approval"}
    CapabilityRule.objects.create(organization=world.organization, **about, **asked)
    api = second_person(world)
    assert api.post("policy/rules/", {**about, **less}).status_code == 201
    run = ask(in_order(MAIL, say("done")))
    for by in (api.user, decider(world))[: less.get("deciders_needed", 1)]:
        with contextlib.suppress(DecisionRefused):
            approve(Approval.objects.get(run=run).pk, by)
    resumed(run)
    assert not mail.outbox


@pytest.mark.parametrize("how", ["beside", "in a project", "about a capability"])
def test_a_robot_is_none_of_several_where_the_rule_that_asks_them_names_nobody(ask, world, how):
    """It makes no difference which of the rules came first, or who made it."""
    home, about = world.organization, {"tool": "send_email", "effect": "require_approval"}
    robot, boss = decider(world, "service", "robot"), decider(world)
    names = [f"member:{robot.memberships.get().pk}", f"member:{boss.memberships.get().pk}"]
    named, two = {**about, "deciders": names}, {**about, "deciders_needed": 2}
    if how == "in a project":
        named |= {"project": world.project, "limited": True}
    elif how == "about a capability":
        own, other = (Capability.objects.create(organization=home, name=n) for n in ("send_email", "mails"))
        other.bindings.create(organization=home, pattern="send_email")
        named, two = named | {"tool": "", "capability": other}, two | {"tool": "", "capability": own}
    CapabilityRule.objects.create(organization=home, **named)
    CapabilityRule.objects.create(organization=home, **two)
    run = ask(in_order(MAIL, say("done")))
    for by in (by_token(robot, home.pk), boss):
        with contextlib.suppress(DecisionRefused):
            approve(Approval.objects.get(run=run).pk, by)
    resumed(run)
    assert mail.outbox == []


@pytest.mark.parametrize("how", ["beside", "in a project", "about a capability", "changed"])
def test_by_no_rule_of_ones_own_is_a_robot_one_of_several(ask, world, how):
    """Whoever holds its token would decide twice. A rule that would take the other's place waits."""
    home, about = world.organization, {"tool": "send_email", "effect": "require_approval"}
    two = CapabilityRule.objects.create(organization=home, deciders_needed=2, **about)
    api, robot = second_person(world), decider(world, "service", "robot")
    names = [f"member:{robot.memberships.get().pk}", "role:administrator"]
    body = {**about, "deciders": names, "deciders_needed": 2}
    if how == "in a project":
        body |= {"project": world.project.pk}
    elif how == "about a capability":
        own, other = (Capability.objects.create(organization=home, name=n) for n in ("send_email", "mails"))
        other.bindings.create(organization=home, pattern="send_email")
        CapabilityRule.objects.filter(pk=two.pk).update(tool="", capability=own)
        body = {"capability": "mails", "effect": "require_approval", "deciders": names}
    if how == "changed":
        rule = CapabilityRule.objects.create(organization=home, **about)
        said = patch(api, f"/api/policy/rules/{rule.pk}/", {"deciders": names})
    else:
        said = api.post("policy/rules/", body)
    run = ask(in_order(MAIL, say("done")))
    for by in (by_token(robot, home.pk), api.user):
        with contextlib.suppress(DecisionRefused):
            approve(Approval.objects.get(run=run).pk, by)
    resumed(run)
    assert (said.status_code == 202, mail.outbox) == (how in ("in a project", "changed"), [])


def test_a_role_that_restricts_is_removed_by_two(world, group_mails):
    """A seat that is made afterwards would come after none in a stricter role."""
    home, strict = world.organization, Role.objects.get(organization=world.organization, name="researcher")
    Role.objects.filter(pk=strict.pk).update(denied_tools=["send_email"])
    CapabilityRule.objects.create(organization=home, tool="send_email", effect="allow")
    body = {"group": world.group.pk, "role": Role.objects.create(organization=home, name="Mailer").pk}
    api, seat = second_person(world), GroupMember.objects.get(role=strict)
    with changes.acting(api.user, "admin"):
        seat.delete()
        seat.agent_instance.delete()
    gone = api.client.delete(f"/api/roles/{strict.pk}/", headers=api.headers)
    made = api.post("groups/members/", body)
    group_mails(by="Mailer")
    assert (gone.status_code, made.status_code, mail.outbox) == (202, 202, [])
    free = Role.objects.create(organization=home, name="Free")
    assert api.client.delete(f"/api/roles/{free.pk}/", headers=api.headers).status_code == 204


def test_who_confirms_a_rule_about_a_role_has_seen_whose_agents_have_it(ask, world):
    """Nobody's own agent gets a role while it is proposed that mail of it passes unasked."""
    robots = Role.objects.create(organization=world.organization, name="Robots")
    CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="require_human")
    api = second_person(world)
    body = {"tool": "send_email", "effect": "allow", "role": robots.pk}
    assert api.post("policy/rules/", body).status_code == 202
    with contextlib.suppress(changes.TakesSecond), transaction.atomic(), changes.acting(api.user, "admin"):
        AgentInstance.objects.create(organization=world.organization, role=robots, user=world.user)
    confirmer = MembershipFactory(organization=world.organization, role="administrator").user
    second.confirm(at_the_pages(confirmer, world.organization.pk), ProposedChange.objects.get().pk)
    ask(in_order(MAIL, say("done")))
    assert not mail.outbox


@pytest.mark.parametrize("before", ["is there", "is proposed"])
def test_a_group_that_takes_the_place_of_one_that_a_rule_speaks_of_is_filled_by_two(world, before):
    """What the rule asks of one group it asks of no other, which the same agents may sit in."""
    strict = {"tool": "send_email", "effect": "require_human", "group": world.group.pk}
    api, home = second_person(world), world.organization
    if before == "is there":
        assert api.post("policy/rules/", strict).status_code == 201
    else:
        assert api.post("policy/rules/", {**strict, "effect": "allow"}).status_code == 202
    other = Group.objects.create(organization=home, project=world.project, name="Other", active=False)
    role = Role.objects.get(organization=home, name="researcher")
    address = f"/api/groups/{world.group.pk}/"
    assert patch(api, address, {"active": False}).status_code == 200
    seat = {"group": other.pk, "role": role.pk}
    assert api.post("groups/members/", seat).status_code == 202
    assert patch(api, f"/api/groups/{other.pk}/", {"active": True, "name": "x"}).status_code == 202
    assert patch(api, f"/api/groups/{other.pk}/", {"name": "y"}).status_code == 200


@pytest.mark.parametrize("why", ["a profile", "a rule", "a rule about owners"])
def test_a_project_in_which_less_is_asked_than_in_another_is_added_by_two(ask, world, why):
    """One who was asked for a second decider in theirs went to a project of their own."""
    api, home = second_person(world), world.organization
    body = {"slug": "new", "name": "New"}
    asks = {"tool": "send_email", "effect": "require_human"}
    assert api.post("projects/", {"slug": "first", "name": "First"}).status_code == 201
    if why == "a profile":
        Project.objects.filter(pk=world.project.pk).update(approval_profile="careful")
    elif why == "a rule":
        CapabilityRule.objects.create(organization=home, project=world.project, **asks)
    else:
        CapabilityRule.objects.create(organization=home, deciders=["project.owner"], **asks)
        assert api.post("projects/", body).status_code == 201
        mine = Membership.objects.get(user=api.user)
        with changes.acting(api.user, "admin"), pytest.raises(changes.TakesSecond):
            Project.objects.create(organization=home, slug="own", name="Own", owner=mine)
        return
    assert api.post("projects/", body).status_code == 202


@pytest.mark.parametrize("first", ["the tool's rule", "the capability's rule", "of a role"])
def test_so_does_a_tool_for_which_a_rule_asks_less_than_that_of_its_capability(world, first):
    """Nobody could see that one rule takes the other's place before there was a tool both are about."""
    crm = Capability.objects.create(organization=world.organization, name="crm")
    crm.bindings.create(organization=world.organization, pattern="crm.*")
    strict, loose = {"effect": "require_human"}, {"effect": "require_approval"}
    by_name, by_capability = {"tool": "crm.delete", "not_known_yet": True}, {"capability": "crm"}
    rules = [by_capability | strict, by_name | loose]
    if first == "the tool's rule":
        rules.reverse()
    if first == "of a role":
        role = Role.objects.create(organization=world.organization, name="Clerk")
        rules = [by_name | strict, by_capability | loose | {"role": role.pk}]
    api = second_person(world)
    looser = 201 if first == "the tool's rule" else 202
    assert [api.post("policy/rules/", body).status_code for body in rules] == [201, looser]
    _, tool = crm_of(world)
    with changes.acting(api.user, "admin"), pytest.raises(changes.TakesSecond):
        mcp.accept([tool], api.user)


def test_a_profile_in_place_of_none_waits_however_careful(ask, world, add_tool):
    """It asks about what has an effect, and not by the risk."""
    shown = []

    @add_tool(name="get_salaries", risk_level="high", declared=Declaration(effect=False))
    def get_salaries(run: ToolContext):
        shown.append(1)

    boss = second_person(world).user
    world.project.approval_profile = "careful"
    with changes.acting(boss, "admin"), pytest.raises(changes.TakesSecond), transaction.atomic():
        world.project.save()
    ask(in_order(call(("get_salaries", {})), say("done")), "What do we earn?")
    assert not shown
