"""The decisions of the AuthZEN Authorization API 1.0 (OpenID, final): evaluation and the three searches.

What Deputy keeps itself (a tool in a project or group) is decided exactly as the gate would decide the call:
nothing the caller says of subject, action or resource plays a part, except `action.properties.arguments`.
Everything else is an outside action, named `type:action` in rules. No tool's name has a colon, so a rule for
`record:read` never speaks of a call that Deputy makes. Its conditions read `subject`, `action`, `resource`
and `context`; it is denied unless a rule of the whole organization allows it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from groups.api.access import find_project, projects, visible
from groups.models import AgentInstance, Group, Membership, Project, Role
from policy import cache
from policy.evaluate import ALLOWED_BY_RULE, bind, boundary_refuses, capability_rules, role_lists
from policy.models import OutsideEntity, PolicyVersion
from policy.terms import AgentContext, Boundary, Context, Decision, ToolInfo
from runs.gate.simulation import CannotSimulate, foreseen, simulate
from runs.tools import toolbox

OTHERS = "policy.view_capabilityrule"  # the right to ask about others than oneself
PLACES = ("project", "group")
PEOPLE = ("user", "identity")  # `identity` is COAZ's word
CALL = "tools/call"  # COAZ: an MCP call of the tool that the resource names
AGENT = "agt_"  # how the ids of Deputy's agents begin


@dataclass(frozen=True)
class Entity:
    """A subject or a resource. Where one is searched for, `id` is empty."""

    type: str
    id: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type, "id": self.id, "properties": dict(self.properties)}


@dataclass(frozen=True)
class Action:
    name: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    subject: Entity
    action: Action
    resource: Entity
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    decision: bool
    context: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"decision": self.decision, "context": dict(self.context)}


class NotEntitled(Exception):
    """The asker may not ask about this subject."""


class Unknown(Exception):
    """Deputy does not know the subject, the resource or the action: (reason code, words)."""

    def answer(self) -> Answer:
        code, words = self.args
        return Answer(False, {"effect": "deny", "reason_code": code, "reason": words})


@dataclass
class DecisionPoint:
    """Answers one asker in their organization, for the length of one request."""

    user: Any
    membership: Membership

    @property
    def organization(self) -> Any:
        return self.membership.organization

    @cached_property
    def may_ask_about_others(self) -> bool:
        return bool(self.user.has_perm(OTHERS))

    @cached_property
    def policy(self) -> cache.CompiledPolicy:
        version = PolicyVersion.objects.of(self.organization.pk)
        return cache.compiled(self.organization.pk, version)

    @cached_property
    def entities(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The properties of what the organization declared, by type and id."""
        rows = OutsideEntity.objects.filter(organization=self.organization)
        return {
            (type_, id_): said for type_, id_, said in rows.values_list("type", "identifier", "properties")
        }

    def evaluate(self, asked: Question) -> Answer:
        """Raises NotEntitled."""
        try:
            return self._own(asked) if is_own(asked) else self._outside(asked)
        except Unknown as unknown:
            return unknown.answer()

    def allows(self, asked: Question) -> bool:
        """For searches: a tool without arguments is decided as far as that is known before they are."""
        try:
            if not is_own(asked) or "arguments" in asked.action.properties:
                return self.evaluate(asked).decision
            tool, project, group = self._place(asked)
            return foreseen(self.organization, project, tool=tool, group=group, **self._acting(asked))
        except (NotEntitled, Unknown, CannotSimulate):
            return False

    # what Deputy keeps itself

    def _own(self, asked: Question) -> Answer:
        tool, project, group = self._place(asked)
        arguments = asked.action.properties.get("arguments", {})
        acting = self._acting(asked)
        try:
            found = simulate(
                self.organization, project, tool=tool, arguments=arguments, group=group, **acting
            ).explained
        except CannotSimulate as refused:
            raise Unknown("invalid", str(refused)) from None
        said: dict[str, Any] = {
            "effect": found.effect,
            "reason_code": found.reason_code,
            "reason": found.message,
        }
        if found.problems:
            said["problems"] = list(found.problems)
        return Answer(found.allowed, {**said, "unlockable": found.unlockable, "deciders": found.deciders})

    def _place(self, asked: Question) -> tuple[str, Project, Group | None]:
        """The tool, and where it is called. Raises Unknown."""
        wanted = asked.resource
        if wanted.type == "tool":
            if asked.action.name != CALL:
                raise Unknown("unknown_action", f"The action on a tool is {CALL}.")
            return wanted.id, self._project_of(asked.context), None
        if wanted.type == "project":
            project = find_project(self.membership, wanted.id)
            if project is not None:
                return asked.action.name, project, None
        else:
            group = (
                visible(Group.objects.select_related("project"), self.membership).filter(pk=wanted.id).first()
            )
            if group is not None:
                return asked.action.name, group.project, group
        raise Unknown("unknown_resource", f"No such {wanted.type} is visible to you.")

    def _project_of(self, context: Mapping[str, Any]) -> Project:
        """`context.project`, or the one there is. Raises Unknown."""
        named = context.get("project")
        if isinstance(named, str):
            found = find_project(self.membership, named)
        else:
            seen = list(projects(self.membership)[:2])
            found = seen[0] if len(seen) == 1 else None
        if found is None:
            raise Unknown("unknown_resource", "Name a project you see as context.project, by id or slug.")
        return found

    def _acting(self, asked: Question) -> dict[str, Any]:
        """Who acts, as `simulate` takes it. Raises Unknown, NotEntitled."""
        subject = asked.subject
        if subject.type in PEOPLE:
            user = self._member(subject.id).user
            return {"user": user, **self._their_agent(subject, asked.context, user)}
        if subject.type == "agent":
            agent = self._agent(subject.id)
            return {"user": agent.user or self.user, "agent": agent}
        if subject.type == "role":
            return {"user": self.user, "role": self._role(subject.id)}
        raise Unknown("unknown_subject", "Deputy's tools are called for a user, an agent or a role.")

    def _their_agent(self, subject: Entity, context: Mapping[str, Any], user: Any) -> dict[str, Any]:
        """COAZ's `context.agent`, where it names an agent of ours; another client is the user's own agent."""
        named = context.get("agent")
        if subject.type != "identity" or not isinstance(named, str) or not named.startswith(AGENT):
            return {}
        agent = self._agent(named)
        if agent.user_id != user.pk:
            raise Unknown("unknown_subject", "The agent is not this person's.")
        return {"agent": agent}

    def _members(self) -> QuerySet[Membership]:
        here = Membership.objects.filter(organization=self.organization, active=True)
        return here.filter(user__is_active=True)

    def _member(self, username: str) -> Membership:
        self._check_entitled(username == self.user.get_username())
        found = self._members().select_related("user").filter(user__username=username).first()
        if found is None:
            raise Unknown("unknown_subject", "No such user is an active member here.")
        return found

    def _agent(self, pk: str) -> AgentInstance:
        found = (
            AgentInstance.objects.select_related("user").filter(organization=self.organization, pk=pk).first()
        )
        if found is None:
            raise Unknown("unknown_subject", "There is no such agent here.")
        self._check_entitled(found.user_id in (None, self.user.pk))
        return found

    def _role(self, pk: str) -> Role:
        found = Role.objects.filter(organization=self.organization, pk=pk).first()
        if found is None:
            raise Unknown("unknown_subject", "There is no such role here.")
        return found

    def _check_entitled(self, about_oneself: bool) -> None:
        if not about_oneself and not self.may_ask_about_others:
            raise NotEntitled

    # what other applications protect

    def _outside(self, asked: Question) -> Answer:
        agent, boundary = self._lists_of(asked.subject)
        tool = bind(ToolInfo(outside_name(asked)), self._bindings())
        context = Context(agent, boundary, self.policy.rules, self.organization.pk)
        decision = self._decide(context, tool, self._variables(asked))
        said = {"effect": decision.effect, "reason_code": decision.reason_code, "reason": decision.message}
        return Answer(decision.allowed, said)

    def _decide(self, context: Context, tool: ToolInfo, variables: dict[str, Any]) -> Decision:
        """Lists may deny; allowed is only what rules allow, for each of its capabilities."""
        for listed in (boundary_refuses(context, tool), role_lists(context, tool)):
            if listed is not None and listed.effect == "deny":
                return listed
        ruled = capability_rules(context, tool, variables)
        if ruled is not None and (ruled.effect != "allow" or ruled.reason_code == ALLOWED_BY_RULE):
            return ruled
        return Decision("deny", "no_rule", f"No rule allows '{tool.name}'.", ())

    def _bindings(self) -> list[Any]:
        """A pattern without a colon speaks of Deputy's tools alone."""
        return [binding for binding in self.policy.bindings if ":" in binding.tool]

    def _variables(self, asked: Question) -> dict[str, Any]:
        """What conditions read. What the organization declared stands over what the caller says."""
        return {
            "subject": self._known(asked.subject).to_json(),
            "action": {"name": asked.action.name, "properties": dict(asked.action.properties)},
            "resource": self._known(asked.resource).to_json(),
            "context": dict(asked.context),
        }

    def _known(self, entity: Entity) -> Entity:
        """With what was declared of it: of a user by either word, whichever the caller has chosen."""
        known = dict(entity.properties)
        for type_ in reversed(PEOPLE) if entity.type in PEOPLE else (entity.type,):
            known |= self.entities.get((type_, entity.id), {})
        return replace(entity, properties=known)

    def _lists_of(self, subject: Entity) -> tuple[AgentContext, Boundary]:
        """The lists that hold for the subject. Raises Unknown, NotEntitled."""
        if subject.type in PEOPLE:
            return AgentContext(""), _boundary(self._member(subject.id))
        if subject.type == "agent":
            agent = self._agent(subject.id)
            theirs = self._member(agent.user.get_username()) if agent.user else None
            return self._in_role(agent.role_id), _boundary(theirs) if theirs else Boundary()
        if subject.type == "role":
            return self._in_role(self._role(subject.id).pk), Boundary()
        self._check_entitled(False)
        if (subject.type, subject.id) not in self.entities:
            raise Unknown("unknown_subject", "The organization has not declared such a subject.")
        return AgentContext(""), Boundary()

    def _in_role(self, role_id: str | None) -> AgentContext:
        role = self.policy.role(role_id)
        return AgentContext("", role_id, role.allowed_tools, role.denied_tools)

    # what searches look through

    def subjects(self, type_: str) -> list[str]:
        """The ids of subjects of a type that the asker may ask about."""
        if not self.may_ask_about_others and type_ in PEOPLE:
            return [self.user.get_username()]
        if type_ in PEOPLE:
            return sorted(self._members().values_list("user__username", flat=True))
        if type_ == "agent":
            return sorted(
                AgentInstance.objects.filter(organization=self.organization).values_list("pk", flat=True)
            )
        if type_ == "role":
            return sorted(Role.objects.filter(organization=self.organization).values_list("pk", flat=True))
        return self._declared(type_)

    def resources(self, type_: str) -> list[str]:
        """The ids of resources of a type that the asker sees."""
        if type_ == "project":
            return sorted(projects(self.membership).values_list("pk", flat=True))
        if type_ == "group":
            return sorted(visible(Group.objects.all(), self.membership).values_list("pk", flat=True))
        if type_ == "tool":
            return self._tools()
        return self._declared(type_)

    def actions(self, type_: str) -> list[str]:
        """The names of actions on resources of a type: tools, or what rules and bindings name."""
        if type_ in PLACES:
            return self._tools()
        if type_ == "tool":
            return [CALL]
        start = f"{type_}:"
        return sorted({name.removeprefix(start) for name in self._named() if name.startswith(start)})

    def _tools(self) -> list[str]:
        return sorted(toolbox.current(self.organization.pk))

    def _named(self) -> Iterator[str]:
        yield from (rule.tool for rule in self.policy.rules if rule.tool)
        yield from (binding.tool for binding in self.policy.bindings if "*" not in binding.tool)

    def _declared(self, type_: str) -> list[str]:
        """Without the right to ask about others nobody learns what there is."""
        if not self.may_ask_about_others:
            return []
        return sorted(id_ for kind, id_ in self.entities if kind == type_)


def is_own(asked: Question) -> bool:
    """Whether Deputy keeps what the action is about, and so would make the call itself."""
    return asked.resource.type in (*PLACES, "tool")


def outside_name(asked: Question) -> str:
    """What rules call the action. Raises Unknown: with a colon in the type one name would mean two things."""
    if ":" in asked.resource.type:
        raise Unknown("unknown_resource", "The type of a resource has no colon.")
    return f"{asked.resource.type}:{asked.action.name}"


def _boundary(member: Membership) -> Boundary:
    allowed = member.allowed_tools
    return Boundary(None if allowed is None else tuple(allowed), tuple(member.denied_tools))
