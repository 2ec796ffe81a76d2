"""What is published: projects and groups, and the card that says what each of them is."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import reverse

from common.api.errors import Problem
from groups.actors import Actor
from groups.models import Group, Membership, Project
from groups.scopes import SCOPES as EVERY

VERSION = "1.0"
CARD_VERSION = "1.0.0"  # of the cards: what clients find there
SCOPES = ("runs:read", "runs:write", "speak_as_person")
TEXT, DATA = "text/plain", "application/json"


@dataclass(frozen=True)
class Agent:
    """A published project, or a published group of a project."""

    project: Project
    group: Group | None = None

    @property
    def url(self) -> str:
        kind, id = ("groups", self.group.pk) if self.group else ("projects", self.project.pk)
        return f"{settings.PUBLIC_URL.rstrip('/')}/a2a/{kind}/{id}"

    @property
    def name(self) -> str:
        return self.group.name if self.group else self.project.name

    def seen_by(self, membership: Membership) -> bool:
        home = self.project.organization_id
        return membership.organization_id == home and membership.sees_project(self.project.pk)


@dataclass(frozen=True)
class Client:
    """Who asks at an agent's address. Made at the entrance (views.py)."""

    request: Any
    agent: Agent
    actor: Actor
    membership: Membership


def published(kind: str, id: str) -> Agent:
    """The agent at this address. Raises Problem 404 where nothing is published there."""
    if kind == "projects":
        project = Project.objects.filter(pk=id, published=True).select_related("organization").first()
        if project is not None:
            return Agent(project)
    else:
        groups = Group.objects.filter(pk=id, published=True, active=True)
        group = groups.select_related("project__organization").first()
        if group is not None:
            return Agent(group.project, group)
    raise nothing()


def nothing() -> Problem:
    return Problem(404, "NOT_FOUND", "No agent is published here.")


def card(agent: Agent) -> dict[str, Any]:
    """The agent card: who it is, where and how it is asked, and what it takes to be let in."""
    home = settings.PUBLIC_URL.rstrip("/")
    interfaces = [
        {"url": agent.url, "protocolBinding": binding, "protocolVersion": VERSION}
        for binding in ("JSONRPC", "HTTP+JSON")
    ]
    return {
        "name": agent.name,
        "description": _description(agent),
        "version": CARD_VERSION,
        "provider": {"organization": agent.project.organization.name, "url": home},
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": False},
        "securitySchemes": _schemes(home),
        "securityRequirements": [
            {"schemes": {"token": {"list": []}}},
            {"schemes": {"oauth": {"list": list(SCOPES[:2])}}},
        ],
        "defaultInputModes": [TEXT, DATA],
        "defaultOutputModes": [TEXT],
        "skills": [_skill(agent)],
    }


def _description(agent: Agent) -> str:
    if agent.group:
        return agent.group.description or f"The group {agent.group.name}."
    return f"Works on goals in the project {agent.project.name}."


def _skill(agent: Agent) -> dict[str, Any]:
    tags = list(agent.group.capabilities) if agent.group else []
    return {
        "id": "work",
        "name": f"Work on a goal: {agent.name}",
        "description": _description(agent),
        "tags": tags or ["goals"],
    }


def _schemes(home: str) -> dict[str, Any]:
    """A token of Deputy's, or one that a person gives the client by OAuth 2.1."""
    code = {
        "authorizationUrl": home + reverse("oauth2_provider:authorize"),
        "tokenUrl": home + reverse("oauth2_provider:token"),
        "scopes": {name: str(EVERY[name]) for name in SCOPES},
        "pkceRequired": True,
    }
    return {
        "token": {"httpAuthSecurityScheme": {"scheme": "bearer", "description": "A token of Deputy's."}},
        "oauth": {
            "oauth2SecurityScheme": {
                "flows": {"authorizationCode": code},
                "oauth2MetadataUrl": f"{home}/.well-known/oauth-authorization-server",
            }
        },
    }
