"""Make the demo's organization. Doing it again adds what is missing and changes nothing that is there."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models.functions import Now

from common.db import execute
from groups.actors import Actor
from groups.models import AgentInstance, Group, GroupMember, Membership, Organization, Project, Role, Token
from groups.scopes import SCOPES
from memory import knowledge
from policy.models import Capability, CapabilityRule
from policy.models.rules import Effect
from runs.actions import start
from runs.demo import chinese, content, english
from runs.execution import inline
from runs.models import Run

SETS = (english.SET, chinese.SET)
TOKEN = "demo"  # noqa: S105 - the name of the tokens that the demo issues
MAIL = "{}@demo.localhost"  # by its address an account is known to be the demo's own
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another
LOCK = "SELECT pg_advisory_xact_lock(hashtext('deputy.demo'))"


@dataclass
class Issued:
    """An account's new secrets; None where none were made now. `foreign`: an account the demo found."""

    password: str | None = None
    token: str | None = None
    foreign: bool = False


@dataclass
class World:
    """What the demo consists of. `project`: the one in English, where the first run waits."""

    organization: Organization
    project: Project
    users: dict[str, Issued] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    knowledge: int = 0
    waiting_run: str | None = None

    @property
    def issued(self) -> bool:
        """Whether there are secrets to be shown."""
        return any(one.token for one in self.users.values())


def load(reset_secrets: bool = False) -> World:
    """The demo's world, all of it or nothing; two at once take turns. Raises UnreadableFile."""
    with transaction.atomic():
        execute(LOCK)
        organization = _organization()
        projects = {one.language: _project(organization, one) for one in SETS}
        world = World(organization, projects[SETS[0].language])
        for name, person in content.PEOPLE.items():
            world.users[name] = _person(organization, name, person, reset_secrets)
        _role(organization, settings.PERSONAL_ROLE, content.PERSONAL)
        for one in SETS:
            roles = {name: _role(organization, name, expert) for name, expert in one.roles.items()}
            project = projects[one.language]
            world.groups |= {team.name: _team(project, team, roles) for team in one.teams}
            world.knowledge += _knowledge(project, one.knowledge)
        _policy(organization)
        world.waiting_run = _first_run(world.project)
    return world


def _organization() -> Organization:
    slug, name = content.ORGANIZATION
    return Organization.objects.get_or_create(slug=slug, defaults={"name": name})[0]


def _project(organization: Organization, one: content.Set) -> Project:
    slug, name = one.project
    made = {"name": name, "language": one.language}
    return Project.objects.get_or_create(organization=organization, slug=slug, defaults=made)[0]


# People


def _person(organization: Organization, name: str, person: content.Person, reset: bool) -> Issued:
    """The account with its membership. One that somebody else made stays as it is and becomes a member."""
    users = get_user_model().objects
    user = users.filter(username=name).first()
    made = user is None
    if user is None:
        user = users.create(
            username=name,
            email=MAIL.format(name),
            is_staff=person.staff,
            is_superuser=person.superuser,
        )
    place = {"kind": person.kind, "role": person.role} if made else {}
    Membership.objects.get_or_create(organization=organization, user=user, defaults=place)
    if user.email != MAIL.format(name):
        return Issued(foreign=True)
    return _issue(organization, user) if made or reset else Issued()


def _issue(organization: Organization, user: Any) -> Issued:
    """A new password and token; the demo's earlier token of this account is revoked."""
    password = "-".join("".join(secrets.choice(LETTERS) for _ in range(4)) for _ in range(4))
    user.set_password(password)
    user.save()
    Token.objects.filter(organization=organization, user=user, name=TOKEN, revoked_at=None).update(
        revoked_at=Now()
    )
    _, secret = Token.objects.issue(organization, user, TOKEN, scopes=list(SCOPES))
    return Issued(password, secret)


# Agents and groups


def _role(organization: Organization, name: str, expert: content.Expert) -> Role:
    values = {
        "description": expert.description,
        "system_prompt": expert.prompt,
        "allowed_tools": None if expert.tools is None else list(expert.tools),
    }
    return Role.objects.get_or_create(organization=organization, name=name, defaults=values)[0]


def _team(project: Project, team: content.Team, roles: dict[str, Role]) -> str:
    """The group's id; its seats are taken when it is made."""
    group, made = Group.objects.get_or_create(
        organization_id=project.organization_id,
        project=project,
        name=team.name,
        defaults={"description": team.description, "capabilities": list(team.capabilities)},
    )
    if made:
        for ordinal, name in enumerate(team.seats):
            _seat(group, roles[name], ordinal, is_lead=name == team.seats[-1])
    return str(group.pk)


def _seat(group: Group, role: Role, ordinal: int, is_lead: bool) -> None:
    agent = AgentInstance.objects.create(organization_id=group.organization_id, role=role, name=role.name)
    GroupMember.objects.create(
        organization_id=group.organization_id,
        group=group,
        role=role,
        agent_instance=agent,
        ordinal=ordinal,
        is_lead=is_lead,
    )


# Policy, knowledge, and a run to look at


def _policy(organization: Organization) -> None:
    """send_email → require_approval for the whole organization (ruling 37)."""
    made = {
        name: Capability.objects.get_or_create(
            organization=organization, name=name, defaults={"description": description}
        )[0]
        for name, description in content.CAPABILITIES.items()
    }
    if not CapabilityRule.objects.filter(organization=organization, name=content.MAIL_RULE).exists():
        CapabilityRule.objects.create(
            organization=organization,
            name=content.MAIL_RULE,
            capability=made["send_email"],
            effect=Effect.REQUIRE_APPROVAL,
        )


def _knowledge(project: Project, folder: str) -> int:
    """What there is to know about the demo's company; returns the number of sections."""
    paths = sorted((Path(__file__).parent / "knowledge" / folder).glob("*.md"))
    loaded = knowledge.load(paths, project.organization_id, project.pk)
    return loaded.added + loaded.unchanged


def _first_run(project: Project) -> str | None:
    """A run that stops for an approval, so that the admin has something to decide.

    Only where agents use the embedded model: another one would be asked without anybody's wish.
    """
    user = get_user_model().objects.get(username="member")
    begun = Run.objects.filter(project=project, user=user, session_key=content.SESSION)
    if settings.DEPUTY_MODEL != "local" or begun.exists():
        return None
    run_id = start.start(
        actor=Actor.terminal(user, project.organization),
        project=project,
        goal=content.FIRST_GOAL,
        session_key=content.SESSION,
    )
    inline.drive(run_id)
    return run_id
