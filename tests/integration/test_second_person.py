"""What weakens an organization's rules, rights or oversight waits for a second person, at every door."""

import time
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from groups import changes
from groups.actors import CONFIRMED_AT
from groups.models import (
    AgentInstance,
    Change,
    CustomRole,
    GroupMember,
    IdentityProvider,
    Membership,
    Organization,
    Project,
    ProposedChange,
    Role,
    Token,
)
from groups.second import propose
from policy.models import Capability, CapabilityRule, Grant, OutsideEntity, ToolBinding, ToolDeclaration
from policy.weakening import why
from runs.actions import decide, mcp, remote_agents, second
from runs.actions.second import SecondRefused
from runs.models import Channel, McpServer, McpTool, RemoteAgent
from tests.acting import approve, at_the_pages, by_token
from tests.admin_world import person
from tests.factories import MembershipFactory, ProjectFactory, UserFactory, permit
from tests.integration.api_client import Api, problem
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db

MAIL = {"to": ["ada@example.org"], "subject": "x", "body": "y"}


def administrator(world, name, **fields):
    user = UserFactory(username=name, is_staff=True)
    Membership.objects.create(organization=world.organization, user=user, role="administrator", **fields)
    return user


@pytest.fixture
def ada(world):
    return administrator(world, "ada")


@pytest.fixture
def bo(world):
    return administrator(world, "bo")


@pytest.fixture
def rule(world, ada, bo):
    capability = Capability.objects.create(organization=world.organization, name="mail")
    capability.bindings.create(organization=world.organization, pattern="send_*")
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    return CapabilityRule.objects.create(
        organization=world.organization, capability=capability, effect="require_approval", deciders_needed=2
    )


def patched(user, world, rule, **fields):
    api = Api(user, world.organization)
    address = f"/api/policy/rules/{rule.pk}/"
    return api.client.patch(address, fields, content_type="application/json", headers=api.headers)


def asked(actor_of, world, rule, **fields):
    """The one change that is proposed when the user asks for it over the API."""
    answer = patched(actor_of, world, rule, **fields)
    assert answer.status_code == 202, answer.content
    return ProposedChange.objects.get(pk=answer.json()["proposed"])


def confirmed(user, proposal):
    return second.confirm(at_the_pages(user, proposal.organization_id), proposal.pk)


def refused(user_or_actor, proposal, code):
    actor = user_or_actor
    if not hasattr(actor, "via"):
        actor = at_the_pages(actor, proposal.organization_id)
    with pytest.raises((second.NotAllowed, SecondRefused)) as caught:
        second.confirm(actor, proposal.pk)
    assert caught.value.code == code
    return str(caught.value)


def test_what_asks_for_less_waits_and_what_asks_for_more_does_not(world, ada, bo, rule):
    proposal = asked(ada, world, rule, deciders_needed=1)
    rule.refresh_from_db()
    assert rule.deciders_needed == 2 and not Change.objects.filter(object_id=rule.pk, by="ada").exists()
    assert (proposal.before, proposal.after) == ({"deciders_needed": 2}, {"deciders_needed": 1})

    with changes.acting(bo, "admin"):
        confirmed(bo, proposal)
    rule.refresh_from_db()
    change = Change.objects.filter(object_id=rule.pk).latest("id")
    assert (rule.deciders_needed, change.by) == (1, "bo") and "proposed by ada" in change.label

    assert patched(ada, world, rule, deciders_needed=3).status_code == 200
    rule.refresh_from_db()
    assert rule.deciders_needed == 3


def test_a_new_rule_of_a_project_that_asks_for_less_waits(world, ada, rule):
    said = {"project": world.project.pk, "tool": "send_email", "effect": "require_approval"}
    api = Api(ada, world.organization)
    assert api.post("policy/rules/", {**said, "deciders_needed": 3}).status_code == 201
    assert api.post("policy/rules/", said).status_code == 202


def test_without_the_setting_nothing_waits(world, ada, rule):
    Organization.objects.filter(pk=world.organization.pk).update(second_person=False)
    assert patched(ada, world, rule, active=False).status_code == 200
    assert not ProposedChange.objects.exists()


def test_no_one_person_confirms_what_they_proposed_by_whatever_account(world, ada, bo, rule):
    proposal = asked(ada, world, rule, effect="allow")
    robot = administrator(world, "robot", kind="service")
    some = administrator(world, "some", projects=[world.project.pk])
    outsider = UserFactory(username="root", is_superuser=True, is_staff=True)
    clerk = permit(person(world, "clerk"), "groups.view_proposedchange")
    assert "somebody else" in refused(ada, proposal, "NOT_ENTITLED")
    refused(by_token(bo, world.organization.pk), proposal, "HUMAN_ONLY")
    refused(at_the_pages(bo, world.organization.pk, confirmed=False), proposal, "CONFIRM_FIRST")
    refused(robot, proposal, "HUMAN_ONLY")
    for user in (some, clerk):
        refused(user, proposal, "NOT_ENTITLED")
    with pytest.raises(ProposedChange.DoesNotExist):
        second.confirm(at_the_pages(outsider, world.organization.pk), proposal.pk)
    rule.refresh_from_db()
    assert rule.effect == "require_approval"


def test_what_was_proposed_holds_as_long_as_who_proposed_it_may_and_nothing_moved(world, ada, bo, rule):
    proposal = asked(ada, world, rule, active=False)
    Membership.objects.filter(user=ada).update(role="decider")
    assert "may not" in refused(bo, proposal, "NOT_ENTITLED")
    Membership.objects.filter(user=ada).update(role="administrator")
    token = Token.objects.filter(pk=proposal.token)
    token.update(scopes=["policy:read"])
    refused(bo, proposal, "NOT_ENTITLED")
    token.update(scopes=["policy:write"], revoked_at=Now())
    refused(bo, proposal, "NOT_ENTITLED")

    stale = asked(ada, world, rule, deciders_needed=1)
    CapabilityRule.objects.filter(pk=rule.pk).update(deciders_needed=4)
    refused(bo, stale, "STALE")
    with pytest.raises(SecondRefused, match="already"):
        confirmed(bo, proposal)  # the same person's later one took its place


def test_who_has_come_to_see_some_projects_only_has_nothing_confirmed_beyond_them(world, ada, bo, rule):
    everywhere = asked(ada, world, rule, deciders_needed=1)
    api = Api(ada, world.organization)
    elsewhere = ProjectFactory(organization=world.organization)
    here, there = (
        ProposedChange.objects.get(
            pk=api.post(
                "policy/rules/", {"project": project.pk, "tool": "http_get", "effect": "allow"}
            ).json()["proposed"]
        )
        for project in (world.project, elsewhere)
    )
    Membership.objects.filter(user=ada).update(projects=[world.project.pk])
    for proposal in (everywhere, there):
        assert "may not do it any more" in refused(bo, proposal, "NOT_ENTITLED")
    confirmed(bo, here)
    rule.refresh_from_db()
    assert rule.deciders_needed == 2
    assert CapabilityRule.objects.get(effect="allow").project == world.project


def test_nor_who_approves_what_there_which_takes_members_of_all(world, ada, bo, rule):
    """Two who may do it decide it: not one whom somebody asks who may not."""
    some = administrator(world, "some", projects=[world.project.pk])
    address, wanted = f"/api/projects/{world.project.pk}/", {"allow_self_approval": True}
    answers = []
    for user in (some, ada):
        api = Api(user, world.organization)
        answers.append(
            api.client.patch(address, wanted, content_type="application/json", headers=api.headers)
        )
    assert problem(answers[0]) == (403, "NOT_ENTITLED")
    proposal = ProposedChange.objects.get(pk=answers[1].json()["proposed"])
    token = Token.objects.filter(pk=proposal.token)
    token.update(scopes=["groups:write"])
    assert "may not do it any more" in refused(bo, proposal, "NOT_ENTITLED")
    token.update(scopes=["groups:write", "policy:write"])
    said = {"project": world.project.pk, "tool": "send_email", "effect": "allow"}
    answers.append(Api(ada, world.organization).post("policy/rules/", said))
    Membership.objects.filter(user=ada).update(projects=[world.project.pk])
    for answer in answers[1:]:
        proposal = ProposedChange.objects.get(pk=answer.json()["proposed"])
        assert "may not do it any more" in refused(bo, proposal, "NOT_ENTITLED")
    assert not Project.objects.get(pk=world.project.pk).allow_self_approval


def test_what_is_confirmed_is_the_row_that_was_looked_at(world, ada, bo, rule):
    """A rule that is off may be changed at once: also while somebody looks at what switching it on means."""
    harmless = CapabilityRule.objects.create(
        organization=world.organization, tool="memory_search", effect="allow", active=False
    )
    proposal = asked(ada, world, harmless, active=True)
    assert patched(ada, world, harmless, tool="send_email").status_code == 200
    assert "has changed" in refused(bo, proposal, "STALE")
    harmless.refresh_from_db()
    assert not harmless.active


def test_a_rule_that_takes_the_place_of_a_projects_stricter_one_waits(world, ada, bo, rule):
    with changes.settled():
        rule.delete()
    api = Api(ada, world.organization)
    here = {"project": world.project.pk, "tool": "send_email"}
    assert api.post("policy/rules/", {**here, "effect": "require_human"}).status_code == 201
    elsewhere = {"tool": "send_email", "effect": "require_approval"}
    assert api.post("policy/rules/", elsewhere).status_code == 201  # the project's own decides there
    role = Role.objects.create(organization=world.organization, name="Clerk")
    assert api.post("policy/rules/", {**elsewhere, "role": role.pk}).status_code == 202
    other = {"tool": "memory_search", "effect": "allow"}
    with changes.settled():
        allowed = CapabilityRule.objects.create(organization=world.organization, **other)
    moved = {**elsewhere, "role": role.pk}
    assert patched(ada, world, allowed, **moved).status_code == 202


def test_a_tool_that_would_come_to_be_allowed_waits(world, ada, bo, rule):
    """Also where the rule is off, or is itself proposed: whoever confirms that has seen what it speaks of."""
    reads, _ = (
        Capability.objects.create(organization=world.organization, name=name) for name in ("reads", "quiet")
    )
    api = Api(ada, world.organization)
    bound = {"pattern": "mailer.*"}
    off = CapabilityRule.objects.create(
        organization=world.organization, capability=reads, effect="allow", active=False
    )
    assert api.post("policy/bindings/", {**bound, "capability": "reads"}).status_code == 202
    CapabilityRule.objects.filter(pk=off.pk).delete()
    assert api.post("policy/rules/", {"capability": "quiet", "effect": "allow"}).status_code == 202
    assert api.post("policy/bindings/", {**bound, "capability": "quiet"}).status_code == 202
    assert api.post("policy/bindings/", {**bound, "capability": "reads"}).status_code == 201


def test_what_rules_read_of_a_subject_or_a_resource_waits(world, ada, bo, rule):
    """Of outside actions: a rule lets admins pass, and who is one stands in what is declared."""
    mia = OutsideEntity(organization=world.organization, type="user", identifier="mia")
    mia.properties = {"role": "reader"}
    other = OutsideEntity(organization=world.organization, type="customer", identifier="1")
    with changes.acting(ada, "admin"):
        mia.save()  # no rule speaks of any outside action
    with changes.settled():
        allowed = CapabilityRule.objects.create(
            organization=world.organization, tool="record:write", effect="allow",
            condition='has(subject.properties.role) && subject.properties.role == "admin"', active=False,
        )  # fmt: skip
    mia.properties = {"role": "admin"}
    with changes.acting(ada, "admin"):
        for weakens in (mia.save, mia.delete, other.save):
            with pytest.raises(changes.TakesSecond), transaction.atomic():
                weakens()
        with pytest.raises(changes.TakesSecond) as held, transaction.atomic():
            mia.save()
    confirmed(bo, propose(held.value))
    mia.refresh_from_db()
    assert mia.properties == {"role": "admin"}

    with changes.settled():
        allowed.delete()
    Capability.objects.create(organization=world.organization, name="reads")
    api = Api(ada, world.organization)
    assert api.post("policy/bindings/", {"pattern": "record:*", "capability": "reads"}).status_code == 201
    assert api.post("policy/rules/", {"capability": "reads", "effect": "allow"}).status_code == 202
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond), transaction.atomic():
        mia.delete()
    ProposedChange.objects.update(state="rejected")
    with changes.acting(ada, "admin"):
        mia.delete()


def test_a_role_that_vouches_is_given_to_nobodys_own_agent_alone(world, ada, bo, rule):
    trusted = Role.objects.create(
        organization=world.organization, name="Mailer", allowed_tools=["send_email"]
    )
    told = Role.objects.create(organization=world.organization, name="Clerk")
    robot, other = (UserFactory(username=name) for name in ("robot", "other"))
    made = {"organization": world.organization, "role": trusted}
    with changes.acting(ada, "admin"):
        with pytest.raises(changes.TakesSecond):
            AgentInstance.objects.create(**made, user=robot)
        expert = AgentInstance.objects.create(**made)  # of a group, which has its rights from above
        expert.user = robot
        with pytest.raises(changes.TakesSecond):
            expert.save()
        AgentInstance.objects.create(organization=world.organization, role=told, user=other)
        with changes.settled():
            CapabilityRule.objects.create(
                organization=world.organization, role=told, tool="send_email", effect="allow"
            )
        with pytest.raises(changes.TakesSecond):
            AgentInstance.objects.create(organization=world.organization, role=told, user=robot)


def test_the_name_by_which_people_get_their_own_agents_is_given_by_two(world, ada, bo, rule, settings):
    """Whoever has none gets one in the role of that name, and that role is made without lists if need be."""
    home = world.organization
    mailer = Role.objects.create(organization=home, name="Mailer", allowed_tools=["send_email"])
    usual, _ = Role.objects.get_or_create(organization=home, name=settings.PERSONAL_ROLE)
    with changes.acting(ada, "admin"):
        usual.name = "Former"
        usual.save()  # it restricts nothing
        mailer.name = settings.PERSONAL_ROLE
        with pytest.raises(changes.TakesSecond):
            mailer.save()
        usual.name, usual.denied_tools = settings.PERSONAL_ROLE, ["send_email"]
        usual.save()
        usual.name = "Former"
        with pytest.raises(changes.TakesSecond):
            usual.save()
        AgentInstance.objects.filter(role=usual).delete()
        with pytest.raises(changes.TakesSecond), transaction.atomic():
            usual.delete()


def test_nobody_is_freed_of_what_the_role_of_their_own_agent_denies(world, ada, bo, rule, settings):
    home, people = world.organization, [UserFactory(username=name) for name in ("first", "second", "third")]
    strict = Role.objects.create(organization=home, name="Strict", denied_tools=["send_email"])
    usual, _ = Role.objects.get_or_create(organization=home, name=settings.PERSONAL_ROLE)
    made = {"organization": home, "user": people[0]}
    with changes.acting(ada, "admin"):
        agent = AgentInstance.objects.create(role=strict, **made)
        agent.user = people[1]
        with pytest.raises(changes.TakesSecond):
            agent.save()
        with pytest.raises(changes.TakesSecond), transaction.atomic():
            agent.delete()
        another = AgentInstance.objects.create(role=usual, organization=home, user=people[1])
        another.delete()  # they get the same again
        usual.denied_tools = ["send_email"]
        usual.save()
        free = Role.objects.create(organization=home, name="Free")
        with pytest.raises(changes.TakesSecond):
            AgentInstance.objects.create(role=free, organization=home, user=people[2])
        agent.delete()  # they come to be denied it all the same


@pytest.mark.parametrize("gives", ["gives", "is proposed to"])
def test_a_name_that_a_provider_gives_people_at_their_sign_in_is_given_by_two(world, ada, bo, rule, gives):
    """A provider's rules name roles and projects by their names, and what it does waits for nobody."""
    home = world.organization
    reader = CustomRole.objects.create(organization=home, name="Reader", permissions=["runs.view_run"])
    other = ProjectFactory(organization=home, slug="other")
    provider = IdentityProvider.objects.create(
        organization=home, name="Company", issuer="https://id.example.org", client_id="deputy"
    )
    rules = [{"group": "staff", "role": "Reader", "projects": ["open"]}]
    if gives == "gives":
        IdentityProvider.objects.filter(pk=provider.pk).update(rules=rules)
    else:
        proposes(ada, provider, rules=rules)
    with changes.acting(ada, "admin"):
        reader.name = "Former"
        reader.save()
        boss = {"organization": home, "permissions": ["runs.decide_approval"]}
        with pytest.raises(changes.TakesSecond):
            CustomRole.objects.create(name="Reader", **boss)
        named = CustomRole.objects.create(name="Boss", **boss)
        named.name = "Reader"
        with pytest.raises(changes.TakesSecond):
            named.save()
        other.slug = "open"
        with pytest.raises(changes.TakesSecond):
            other.save()


def test_another_name_for_the_organization_waits(world, ada, bo, rule):
    """Browsers name the one they mean by its slug, which another organization may have then."""
    home = Organization.objects.get(pk=world.organization.pk)
    home.slug = "former"
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        home.save()


def test_whom_rules_name_as_deciders_waits(world, ada, bo, rule):
    """By a role that somebody gets, by a role's new name, and by a project that gets its first owner."""
    home = world.organization
    board, clerks = (
        CustomRole.objects.create(organization=home, name=name, permissions=["runs.decide_approval"])
        for name in ("Board", "Clerks")
    )
    CapabilityRule.objects.filter(pk=rule.pk).update(deciders=["role:Board", "project.owner"])
    theirs = Membership.objects.create(organization=home, user=UserFactory(username="dee"), role="decider")
    project = Project.objects.get(pk=world.project.pk)
    with changes.acting(ada, "admin"):
        board.name = "Former board"
        board.save()
        clerks.name = "Board"
        theirs.custom_role, project.owner = clerks, theirs
        for row in (clerks, theirs, project):
            with pytest.raises(changes.TakesSecond):
                row.save()
            with changes.settled():
                row.save()  # what comes after it is judged by it


def test_the_name_by_which_programs_ask_for_a_project_waits(world, ada, bo, rule):
    project = Project.objects.get(pk=world.project.pk)
    Project.objects.create(
        organization=world.organization, name="Careful", slug="careful", approval_profile="careful"
    )
    project.slug = "renamed"
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        project.save()


def test_so_does_who_a_proposed_rule_would_name(world, ada, bo, rule):
    """Whoever confirms the rule has looked at who has the role."""
    names = {"deciders": ["role:Board", "project.owner"], "not_known_yet": True}
    proposal = asked(ada, world, rule, deciders_needed=1, **names)
    board = CustomRole.objects.create(
        organization=world.organization, name="Board", permissions=["runs.decide_approval"]
    )
    theirs = Membership(organization=world.organization, user=UserFactory(), role="decider")
    with changes.settled():
        theirs.save()
    theirs.custom_role = board
    project = Project.objects.get(pk=world.project.pk)
    project.owner = theirs
    with changes.acting(ada, "admin"):
        for row in (theirs, project):
            with pytest.raises(changes.TakesSecond), transaction.atomic():
                row.save()
    confirmed(bo, proposal)


def proposes(user, row, **fields):
    for name, value in fields.items():
        setattr(row, name, value)
    with changes.acting(user, "admin"), pytest.raises(changes.TakesSecond) as proposed, transaction.atomic():
        row.save()
    proposed.value.proposed.save()
    row.refresh_from_db()


def test_nor_does_anybody_get_a_role_while_it_is_proposed_that_it_carries_more(world, ada, rule):
    """Whoever confirms it has looked at who has the role."""
    home = world.organization
    clerks = CustomRole.objects.create(organization=home, name="Clerk", permissions=["runs.start_run"])
    proposes(ada, clerks, permissions=["runs.start_run", "runs.decide_approval"])
    theirs = MembershipFactory(organization=home)
    theirs.custom_role = clerks
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond), transaction.atomic():
        theirs.save()


def test_nor_while_it_is_proposed_that_it_gets_the_name_of_deciders(world, ada, rule):
    home = world.organization
    CapabilityRule.objects.filter(pk=rule.pk).update(deciders=["role:Board"])
    clerks = CustomRole.objects.create(organization=home, name="Clerk", permissions=["runs.start_run"])
    proposes(ada, clerks, name="Board")
    theirs = MembershipFactory(organization=home)
    theirs.custom_role = clerks
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond), transaction.atomic():
        theirs.save()


def test_nor_does_an_agent_get_one_while_it_is_proposed_that_it_may_use_more(world, ada, rule):
    home, strict = world.organization, {"organization": world.organization, "denied_tools": ["send_email"]}
    Role.objects.filter(organization=home).update(denied_tools=["send_email"])
    Role.objects.create(**strict, name="Personal agent")
    robots = Role.objects.create(**strict, name="Robots")
    free = AgentInstance(organization=home, role=robots, user=ada)
    seated = AgentInstance.objects.create(organization=home, role=robots)
    seat = GroupMember(organization=home, group=world.group, role=robots, agent_instance=seated, ordinal=9)
    with changes.acting(ada, "admin"):
        for row in (free, seat):
            row.save()
            row.delete()
    proposes(ada, robots, denied_tools=[])
    with changes.acting(ada, "admin"):
        for row in (free, seat):
            with pytest.raises(changes.TakesSecond), transaction.atomic():
                row.save(force_insert=True)


def test_at_the_pages_it_is_proposed_and_confirmed_by_buttons(world, ada, bo, rule):
    clients = {user: Client() for user in (ada, bo)}
    for user, client in clients.items():
        client.force_login(user)
    page = reverse("admin:policy_capabilityrule_delete", args=[rule.pk])
    answer = clients[ada].post(page, {"post": "yes"}, follow=True)
    assert "Proposed, and not done yet" in answer.content.decode()
    proposal = ProposedChange.objects.get()
    assert proposal.action == "removed" and CapabilityRule.objects.filter(pk=rule.pk).exists()

    shown = reverse("admin:groups_proposedchange_change", args=[proposal.pk])
    assert "Nothing of this has happened yet" in clients[bo].get(shown).content.decode()
    decide_it = reverse("admin:groups_proposedchange_decide", args=[proposal.pk])
    clients[ada].post(decide_it, {"decision": "confirm"})
    assert CapabilityRule.objects.filter(pk=rule.pk).exists()
    assert clients[bo].get(decide_it).status_code == 405
    clients[bo].post(decide_it, {"decision": "confirm"})
    assert not CapabilityRule.objects.filter(pk=rule.pk).exists()
    proposal.refresh_from_db()
    assert (proposal.state, proposal.decided_by) == ("confirmed", bo)
    assert "Nothing of this" not in clients[bo].get(shown).content.decode()


def test_over_the_api_a_token_looks_and_a_persons_session_confirms(world, ada, bo, rule):
    proposal = asked(ada, world, rule, active=False)
    api = Api(bo, world.organization)
    (found,) = api.get("audit/proposed/?state=open").json()["results"]
    assert (found["id"], found["by"], found["after"]) == (proposal.pk, "ada", {"active": False})
    assert problem(api.post(f"audit/proposed/{proposal.pk}/confirm/")) == (403, "HUMAN_ONLY")
    session = Client()
    session.force_login(bo)
    answer = session.post(f"/api/audit/proposed/{proposal.pk}/confirm/")
    assert (answer.status_code, answer.json()["state"]) == (200, "confirmed")
    rule.refresh_from_db()
    assert not rule.active
    other = CapabilityRule.objects.create(
        organization=world.organization, capability=rule.capability, effect="deny"
    )
    again = asked(ada, world, other, active=False)
    assert (
        Api(ada, world.organization).post(f"audit/proposed/{again.pk}/reject/").json()["state"] == "rejected"
    )


@pytest.mark.parametrize("loses", ["who confirms", "who proposed", "who proposed, at last", ""])
def test_a_confirmation_that_waits_for_its_row_goes_by_the_rights_of_then(
    world, ada, bo, rule, loses, monkeypatch
):
    proposal, place = asked(ada, world, rule, active=False), "_carry_out" if "last" in loses else "_current"
    usual = getattr(second, place)

    def late(*asked):
        found = usual(*asked)
        lost = {"who confirms": bo, "": None}.get(loses, ada)
        Membership.objects.filter(user=lost).update(role="viewer")
        return found

    monkeypatch.setattr(second, place, late)
    session = Client()
    session.force_login(bo)
    answer = session.post(f"/api/audit/proposed/{proposal.pk}/confirm/")
    assert answer.status_code == (403 if loses else 200), answer.content
    proposal.refresh_from_db()
    rule.refresh_from_db()
    assert (proposal.state == "open") == rule.active == bool(loses)


def test_nobody_confirms_their_own_promotion(world, ada, bo, rule):
    carl = permit(person(world, "carl"), "groups.view_proposedchange", "groups.change_membership")
    theirs = Membership.objects.get(user=carl)
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        theirs.role, theirs.custom_role = "administrator", None
        theirs.save()
    proposal = held.value.proposed
    proposal.save(force_insert=True)
    assert "own membership" in refused(carl, proposal, "NOT_ENTITLED")
    permit(ada, "groups.change_membership")
    assert "may not do it any more" in refused(bo, proposal, "NOT_ENTITLED")  # ada gives no role like that
    Membership.objects.filter(user=ada).update(custom_role=None)
    assert confirmed(bo, proposal).state == "confirmed"
    assert Membership.objects.get(user=carl).role == "administrator"


def test_nor_that_they_come_to_own_a_project(world, ada, bo, rule):
    """Whom rules mean by its owner, two others have said."""
    CapabilityRule.objects.filter(pk=rule.pk).update(deciders=["project.owner"])
    rights = ("groups.view_proposedchange", "groups.change_project", "policy.change_capabilityrule")
    carl = permit(person(world, "carl"), *rights)
    project = Project.objects.get(pk=world.project.pk)
    project.owner = Membership.objects.get(user=carl)
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        project.save()
    proposal = held.value.proposed
    proposal.save(force_insert=True)
    assert "themself own a project" in refused(carl, proposal, "NOT_ENTITLED")
    assert confirmed(bo, proposal).state == "confirmed"
    project.refresh_from_db()
    assert project.owner == Membership.objects.get(user=carl)


def test_a_standing_approval_waits_wherever_it_is_made(world, ada, bo, rule, ask):
    rule.deciders_needed = 1
    with changes.settled():
        rule.save()
    run = ask(in_order(call(("send_email", MAIL)), say("done")))
    approval = run.approvals.get()
    remember = decide.Remember(any_arguments=True, uses=5)
    with changes.acting(ada, "page"), pytest.raises(decide.DecisionRefused, match="second person"):
        approve(approval.pk, ada, remember=remember)
    with changes.one_request(), pytest.raises(decide.DecisionRefused) as unconfirmed:
        changes.made_by(lambda: changes.By(ada, "page", confirmed=False))
        approve(approval.pk, ada, remember=remember)
    assert unconfirmed.value.code == "CONFIRM_FIRST"
    approval.refresh_from_db()
    assert approval.status == "pending" and not Grant.objects.exists()

    asked_for = {"project": world.project.pk, "tool": "send_email", "any_arguments": True, "max_uses": 5}
    answer = Api(ada, world.organization).post("policy/grants/", asked_for)
    assert answer.status_code == 202, answer.content
    confirmed(bo, ProposedChange.objects.get(pk=answer.json()["proposed"]))
    assert (Grant.objects.get().max_uses, Grant.objects.get().granted_by) == (5, ada)


def test_a_server_goes_back_to_a_shared_header_by_two(world, ada, bo, rule):
    server = McpServer(organization=world.organization, name="crm", url="https://crm.example/mcp")
    server.as_person, server.client_id = True, "deputy"
    server.keep_headers({"Authorization": "Bearer shared"})
    server.save()
    server.as_person = False
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        server.save()
    assert McpServer.objects.get().headers == {}
    held.value.proposed.save(force_insert=True)
    with changes.acting(bo, "admin"):
        confirmed(bo, held.value.proposed)
    assert McpServer.objects.get().headers == {"Authorization": "Bearer shared"}
    server.refresh_from_db()
    server.as_person = True
    with changes.acting(ada, "admin"):
        server.save()


def crm_of(world, url="https://crm.example/mcp"):
    """A server with a tool that waits to be accepted."""
    server = McpServer.objects.create(organization=world.organization, name="crm", url=url)
    words = {"title": "", "description": "Deletes.", "input_schema": {"type": "object"}, "annotations": {}}
    tool = McpTool.objects.create(
        organization=world.organization, server=server, name="delete", definition=words, digest="d"
    )
    return server, tool


def by_rule(world):
    CapabilityRule.objects.create(organization=world.organization, tool="crm.delete", effect="allow")


def by_pattern(world):
    about = Capability.objects.create(organization=world.organization, name="crm")
    about.bindings.create(organization=world.organization, pattern="crm.*")
    CapabilityRule.objects.create(organization=world.organization, capability=about, effect="allow")


def by_standing_approval(world):
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="crm.delete", any_arguments=True,
        granted_by=world.user, max_uses=5,
    )  # fmt: skip


def by_role(world):
    Role.objects.create(organization=world.organization, name="clerk", allowed_tools=["crm.delete"])


def by_declaration(world):
    """What its results name may then be written to unasked, in the profile *balanced*."""
    ToolDeclaration.objects.create(
        organization=world.organization, tool="crm.delete", output_trust="organization"
    )


PASSES = [by_rule, by_pattern, by_standing_approval, by_role, by_declaration]


@pytest.mark.parametrize("passes", PASSES)
def test_the_name_of_a_tool_that_nobody_is_asked_about_is_given_by_two(world, ada, bo, rule, passes):
    """Else whoever arranges servers alone would have what passes unasked sent to a server of their own."""
    passes(world)
    server, tool = crm_of(world)
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        mcp.accept([tool], ada)
    tool.refresh_from_db()
    assert (tool.state, tool.accepted_digest) == ("new", "")
    held.value.proposed.save(force_insert=True)
    with changes.acting(bo, "admin"):
        confirmed(bo, held.value.proposed)
    tool.refresh_from_db()
    assert (tool.state, tool.accepted["description"], tool.accepted_digest) == ("accepted", "Deletes.", "d")

    McpTool.objects.filter(pk=tool.pk).update(digest="e", state="changed")
    tool.refresh_from_db()
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        mcp.accept([tool], ada)
    for field, value in (("url", "https://crm.example/other"), ("name", "crn"), ("timeout_seconds", 9)):
        server.refresh_from_db()
        setattr(server, field, value)
        with changes.acting(ada, "admin"):
            if field == "url":
                with pytest.raises(changes.TakesSecond):
                    server.save()
            else:
                server.save()  # what has another name, rules do not speak of
    server.keep_headers({"X-Account": "other"})
    server.name = "crm"
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        server.save()


def by_a_binding(world):
    CapabilityRule.objects.update(effect="allow")
    Capability.objects.get(name="mail").bindings.create(organization=world.organization, pattern="crm.*")


def by_a_binding_that_comes_to_fit(world):
    with changes.settled():
        by_pattern(world)
        ToolBinding.objects.filter(capability__name="crm").update(pattern="crn.*")
    binding = ToolBinding.objects.get(capability__name="crm")
    binding.pattern = "crm.*"
    binding.save()


@pytest.mark.parametrize(
    "passes",
    [
        *(by_rule, by_standing_approval, by_role, by_declaration),
        *(by_a_binding, by_a_binding_that_comes_to_fit),
    ],
)
def test_nor_while_it_is_proposed_that_nobody_is_asked(world, ada, bo, rule, passes):
    """Whoever confirms that has looked at what the name stands for."""
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        passes(world)
    held.value.proposed.save(force_insert=True)
    _, tool = crm_of(world)
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        mcp.accept([tool], ada)
    confirmed(bo, held.value.proposed)


def test_nor_does_a_capability_get_the_name_that_tools_declare_meanwhile(world, ada, bo, rule):
    """Whoever confirms a rule about it is told the name that it had when the rule was proposed."""
    letters = Capability.objects.create(organization=world.organization, name="letters")
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        CapabilityRule.objects.create(
            organization=world.organization, capability=letters, effect="allow", project=world.project
        )
    held.value.proposed.save(force_insert=True)
    api, address = Api(ada, world.organization), f"/api/policy/capabilities/{letters.pk}/"

    def renamed():
        body = {"name": "send_email"}
        return api.client.patch(address, body, content_type="application/json", headers=api.headers)

    assert renamed().status_code == 422


def test_nor_where_a_rule_that_is_off_would_ask_nobody(world, ada, bo, rule):
    by_rule(world)
    CapabilityRule.objects.filter(tool="crm.delete").update(active=False)
    _, tool = crm_of(world)
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        mcp.accept([tool], ada)


def moved(server, tool):
    server.url = "https://elsewhere.example/mcp"  # as long as none of its tools is accepted, one does this
    server.save()


def with_other_headers(server, tool):
    server.keep_headers({"X-Account": "other"})
    server.save()


def listed_anew(server, tool):
    McpTool.objects.filter(pk=tool.pk).update(digest="e")


@pytest.mark.parametrize("meanwhile", [moved, with_other_headers, listed_anew])
def test_nor_do_two_accept_a_tool_of_another_server_than_the_second_saw(world, ada, bo, rule, meanwhile):
    by_rule(world)
    server, tool = crm_of(world)
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        mcp.accept([tool], ada)
    held.value.proposed.save(force_insert=True)
    with changes.acting(ada, "admin"):
        meanwhile(server, tool)
    refused(bo, held.value.proposed, "STALE")
    tool.refresh_from_db()
    assert (tool.state, tool.accepted_digest) == ("new", "")


CARD = {"name": "p", "description": "", "url": "https://p.example/a2a", "skills": []}


def acceptance_of_a_partner(world, by):
    """A remote agent that may be asked unasked, and what accepting its card proposes."""
    sends = Capability.objects.create(organization=world.organization, name="a2a_send")
    CapabilityRule.objects.create(organization=world.organization, capability=sends, effect="allow")
    agent = RemoteAgent.objects.create(
        organization=world.organization, name="partner", url="https://p.example/card", card=CARD, digest="d"
    )
    with changes.acting(by, "admin"), pytest.raises(changes.TakesSecond) as held:
        remote_agents.accept([agent], by)
    held.value.proposed.save(force_insert=True)
    return agent, held.value.proposed


def test_nor_a_remote_agent_with_another_card(world, ada, bo, rule):
    agent, proposed = acceptance_of_a_partner(world, ada)
    RemoteAgent.objects.filter(pk=agent.pk).update(digest="e")
    refused(bo, proposed, "STALE")

    RemoteAgent.objects.filter(pk=agent.pk).update(accepted=CARD, accepted_digest="e", state="accepted")
    agent.refresh_from_db()
    agent.keep_headers({"X-Account": "other"})
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as other:
        agent.save()
    other.value.proposed.save(force_insert=True)
    assert confirmed(bo, other.value.proposed).state == "confirmed"


def test_other_tools_are_accepted_by_one(world, ada, rule):
    server, tool = crm_of(world)
    CapabilityRule.objects.create(organization=world.organization, tool="crm.delete", effect="deny")
    with changes.acting(ada, "admin"):
        mcp.accept([tool], ada)
        server.url = "https://crm.example/other"
        server.save()
    tool.refresh_from_db()
    assert tool.state == "accepted" and not ProposedChange.objects.exists()


def test_a_remote_agent_that_may_be_asked_unasked_is_accepted_by_two(world, ada, bo, rule):
    agent, proposed = acceptance_of_a_partner(world, ada)
    with changes.acting(bo, "admin"):
        confirmed(bo, proposed)
    agent.refresh_from_db()
    assert (agent.state, agent.accepted, agent.accepted_by) == ("accepted", CARD, ada)
    agent.keep_headers({"X-Account": "other"})
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        agent.save()


def test_the_setting_is_switched_off_by_two_and_on_only_where_there_are_two(world, ada, bo, rule):
    organization = Organization.objects.get(pk=world.organization.pk)
    organization.second_person = False
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond):
        organization.save()
    Organization.objects.filter(pk=organization.pk).update(second_person=False)
    Membership.objects.filter(user=bo).update(active=False)
    organization.second_person = True
    with pytest.raises(ValidationError, match="two administrators"):
        organization.full_clean()


RULE = {
    "active": True, "shadow": False, "effect": "require_approval", "deciders_needed": 1, "deciders": [],
    "condition": "", "project_id": None, "group_id": None, "role_id": None, "capability_id": "c", "tool": "",
}  # fmt: skip
MEMBER = {
    "role": "member", "custom_role_id": None, "active": True, "projects": ["a"], "allowed_tools": ["t"],
    "denied_tools": ["d"],
}  # fmt: skip
ROLE = {"allowed_tools": ["t"], "denied_tools": ["d"], "delegable_tools": []}
PROJECT = {"approval_profile": "off", "allow_self_approval": False, "owner_id": "m", "review_deposits": True}
GRANT = {
    "project_id": "p", "tool": "t", "arguments": {}, "free": None, "any_arguments": True, "revoked_at": None,
    "expires_at": None, "max_uses": 5,
}  # fmt: skip
CHANNEL = {
    "user_id": None, "kind": "email", "sealed_address": "a", "enabled": True, "topics": ["approvals"],
    "project_id": None,
}  # fmt: skip
HOME = {"slug": "acme", "second_person": True, "retention_days": 90, "record_days": 900}
SEAT, CUSTOM, BINDING = {"role_id": "r"}, {"permissions": ["a"]}, {"pattern": "send_*"}
PROVIDER = {"only": True, "default_role": ""}
SERVER = {
    "as_person": True, "exchange_at": "", "url": "https://crm.example/mcp", "scopes": "crm", "resource": "",
    "audience": "", "with_actor": True, "enabled": True, "id": "s", "organization_id": "o", "name": "crm",
}  # fmt: skip
EXCHANGING = {**SERVER, "exchange_at": "idp"}

WEAKER = {
    "policy.capabilityrule": (
        RULE,
        [{"active": False}, {"shadow": True}, {"effect": "allow"}, {"condition": "1 == 2"},
         {"project_id": "p"}, {"deciders": ["run.user"]}, None],
        [{"effect": "deny"}, {"deciders_needed": 2}, {"deciders": ["member:x"]}, {"name": "n"}],
    ),
    "policy.toolbinding": (BINDING, [{"pattern": "x"}, None], []),
    "policy.grant": (
        GRANT,
        [{"max_uses": 6}, {"max_uses": None}, {"tool": "u"}],
        [{"max_uses": 1}, {"revoked_at": 1}, None],
    ),
    "groups.membership": (
        MEMBER,
        [{"role": "decider"}, {"projects": None}, {"projects": ["a", "b"]}, {"allowed_tools": None},
         {"denied_tools": []}],
        [{"role": "viewer"}, {"projects": []}, {"denied_tools": ["d", "e"]}, {"active": False}, None],
    ),
    "groups.customrole": (CUSTOM, [{"permissions": ["a", "b"]}], [{"permissions": []}, None]),
    "groups.role": (
        ROLE,
        [{"allowed_tools": None}, {"allowed_tools": ["t", "u"]}, {"denied_tools": []},
         {"delegable_tools": ["t"]}, None],
        [{"allowed_tools": []}, {"denied_tools": ["d", "e"]}],
    ),
    "groups.groupmember": (SEAT, [{"role_id": "s"}], [None]),
    "groups.project": (
        {**PROJECT, "approval_profile": "balanced"},
        [{"approval_profile": "off"}, {"allow_self_approval": True}, {"owner_id": "n"},
         {"review_deposits": False}],
        [{"approval_profile": "careful"}],
    ),
    "groups.organization": (
        HOME,
        [{"second_person": False}, {"slug": "other"}, {"retention_days": 1}, {"record_days": 400}],
        [{"retention_days": 400}, {"record_days": 1000}, {"record_days": None}],
    ),
    "groups.identityprovider": (PROVIDER, [{"default_role": "administrator"}, None], []),
    "runs.channel": (
        CHANNEL,
        [{"enabled": False}, {"topics": []}, {"sealed_address": "b"}, None,
         {"kind": "slack", "sealed_address": "b"}],
        [{"topics": ["approvals", "alarms"]}, {"name": "n"}],
    ),
    "runs.mcpserver": (
        SERVER,
        [{"as_person": False}, {"exchange_at": "idp"}, None],
        [{"scopes": "crm:read"}, {"url": "https://other.example/mcp"}, {"enabled": False}],
    ),
}  # fmt: skip
ADDED = [
    ("policy.capabilityrule", {**RULE, "effect": "allow"}, True),
    ("policy.capabilityrule", {**RULE, "capability_id": None, "tool": "t"}, False),
    ("policy.grant", GRANT, True),
    ("policy.tooldeclaration", {}, True),
    ("groups.membership", {**MEMBER, "role": "decider"}, True),
    ("groups.membership", MEMBER, False),
    ("groups.role", ROLE, True),
    ("groups.project", {**PROJECT, "approval_profile": "careful"}, True),
    ("groups.project", PROJECT, False),
    ("runs.mcpserver", SERVER, False),
    ("runs.mcpserver", EXCHANGING, True),
    ("runs.channel", {**CHANNEL, "kind": "slack"}, True),
    ("runs.channel", CHANNEL, False),
    ("runs.channel", {**CHANNEL, "kind": "slack", "user_id": 1}, False),
]


CHANGED = [
    (EXCHANGING, {"url": "https://other.example/mcp"}, True),
    (EXCHANGING, {"audience": "hr"}, True),
    (EXCHANGING, {"resource": "https://hr.example"}, True),
    (EXCHANGING, {"scopes": "crm hr"}, True),
    (EXCHANGING, {"with_actor": False}, True),
    (EXCHANGING, {"exchange_at": "idp2"}, True),
    ({**EXCHANGING, "as_person": False}, {"as_person": True}, True),
    (EXCHANGING, {"exchange_at": ""}, False),
    (EXCHANGING, {"enabled": False}, False),
]


def test_what_sign_ins_are_exchanged_for_waits():
    for row, changed, weakens in CHANGED:
        assert bool(why("runs.mcpserver", row, {**row, **changed})) == weakens, changed


def test_what_weakens_and_what_does_not(db):
    for model, (row, weaker, stronger) in WEAKER.items():
        for changed, weakens in [*((one, True) for one in weaker), *((one, False) for one in stronger)]:
            after = None if changed is None else {**row, **changed}
            assert bool(why(model, row, after)) is weakens, (model, changed)
    for model, row, weakens in ADDED:
        assert bool(why(model, None, row)) is weakens, (model, row)
    later = timezone.now() + timedelta(days=1)
    ends = {**GRANT, "expires_at": timezone.now(), "max_uses": None}
    assert why("policy.grant", ends, {**ends, "expires_at": later})


def test_every_judged_model_is_one_whose_changes_are_recorded():
    from policy.weakening import JUDGES

    assert {name.lower() for name in changes.AUDITED} >= JUDGES.keys()


def test_who_sees_some_projects_changes_no_rule_of_them_all_in_the_admin(world, ada, rule):
    some = administrator(world, "some", projects=[world.project.pk])
    client = Client()
    client.force_login(some)
    pages = [reverse(f"admin:policy_capabilityrule_{what}", args=[rule.pk]) for what in ("delete", "change")]
    assert [client.post(page, {"post": "yes"}).status_code for page in pages] in ([403, 403], [404, 404])
    assert CapabilityRule.objects.filter(pk=rule.pk).exists()


def test_what_deputy_does_itself_waits_for_nobody(world, ada, rule):
    channel = Channel.objects.create(organization=world.organization, kind="email", name="x")
    channel.enabled = False
    channel.save()  # no request: a command, a worker
    Project.objects.filter(pk=world.project.pk).update(approval_profile="open")
    with changes.acting(ada):
        rule.delete()
    assert not ProposedChange.objects.exists()


def test_what_weakens_takes_a_session_that_was_confirmed_lately(world, ada, rule):
    """Whether or not a second person is asked: whoever finds a browser open loosens nothing by it."""
    Organization.objects.filter(pk=world.organization.pk).update(second_person=False)
    client = Client()
    client.force_login(ada)
    with_session(client, time.time() - 10_000)
    page = reverse("admin:policy_capabilityrule_delete", args=[rule.pk])
    answer = client.post(page, {"post": "yes"})
    assert answer.status_code == 403 and reverse("web:confirm") in answer.content.decode()
    api = f"/api/policy/rules/{rule.pk}/"
    weaker, stricter = {"deciders_needed": 1}, {"deciders_needed": 3}
    assert problem(client.patch(api, weaker, content_type="application/json")) == (403, "CONFIRM_FIRST")
    rule.refresh_from_db()
    assert rule.deciders_needed == 2 and not ProposedChange.objects.exists()
    assert client.patch(api, stricter, content_type="application/json").status_code == 200
    assert patched(ada, world, rule, deciders_needed=2).status_code == 200  # by a token

    with_session(client, time.time())
    assert client.post(page, {"post": "yes"}).status_code == 302
    assert not CapabilityRule.objects.filter(pk=rule.pk).exists()


def test_nor_does_it_make_a_program_that_could(world, ada, rule):
    """What a program is not asked to confirm, whoever has it made is asked."""
    client = Client()
    client.force_login(ada)
    with_session(client, time.time() - 10_000)
    robot = MembershipFactory(organization=world.organization, kind="service").user
    kept, _ = Token.objects.issue(world.organization, ada, "kept", ["runs:read", "policy:write"])
    reads, _ = Token.objects.issue(world.organization, ada, "reads", ["runs:read"])

    def form(user, scopes, **more):
        return {"organization": world.organization.pk, "user": user.pk, "name": "n", "scopes": scopes, **more}

    def refused(address, said, **more):
        answer = client.post(address, said, **more)
        return answer.status_code == 403 and (
            b"CONFIRM_FIRST" in answer.content or b"/confirm/" in answer.content
        )

    json = {"content_type": "application/json"}
    add, of = reverse("admin:groups_token_add"), "admin:groups_token_change"
    writes = ["runs:read", "policy:write"]
    assert refused("/api/tokens/", {"name": "n", "scopes": writes}, **json)
    assert refused(reverse("web:issue"), {"name": "n", "scopes": writes, "days": "9"})
    assert refused(add, form(ada, writes)) and refused(add, form(robot, ["approvals:decide"]))
    assert refused(reverse(of, args=[reads.pk]), form(ada, writes))
    assert {*Token.objects.values_list("pk", flat=True)} == {kept.pk, reads.pk}
    reads.refresh_from_db()
    assert reads.scopes == ["runs:read"]

    assert client.post("/api/tokens/", {"name": "n", "scopes": ["runs:read"]}, **json).status_code == 201
    assert client.post(reverse(of, args=[kept.pk]), form(ada, ["runs:read"])).status_code == 302
    with_session(client, time.time())
    assert client.post(add, form(ada, writes)).status_code == 302
    assert client.post("/api/tokens/", {"name": "n", "scopes": writes}, **json).status_code == 201
    assert not ProposedChange.objects.exists()


def test_nor_does_a_superusers_change_whom_a_password_lets_in(world, ada):
    root = UserFactory(username="root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(root)
    with_session(client, time.time() - 10_000)
    said = {"password1": "another-long-1", "password2": "another-long-1", "usable_password": "true"}
    account = {"username": "ada", "email": "eve@example.org", "is_active": "on", "is_superuser": "on"}
    account |= {"date_joined_0": "2026-05-01", "date_joined_1": "12:00:00"}

    def done():
        """The status of each, one after the other."""
        passwords = [reverse("admin:auth_user_password_change", args=[user.pk]) for user in (ada, root)]
        change, rows = reverse("admin:auth_user_change", args=[ada.pk]), reverse("admin:auth_user_changelist")
        chosen = {"action": "remove_factors", "_selected_action": ada.pk}
        asked = [(change, account), (rows, chosen), *((page, said) for page in passwords)]
        return [client.post(page, form).status_code for page, form in asked]

    assert done() == [403] * 4
    for user in (ada, root):
        user.refresh_from_db()
        assert not user.check_password("another-long-1")
    assert (ada.is_superuser, ada.email) != (True, "eve@example.org")
    with_session(client, time.time())
    assert done() == [302] * 4


def with_session(client, confirmed_at):
    session = client.session
    session[CONFIRMED_AT] = int(confirmed_at)
    session.save()
