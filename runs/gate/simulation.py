"""What would happen if an agent made this call now: nothing runs, nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from common.canonical import NotJson, normalise
from groups.models import AgentInstance, Group, Organization, Project, Role
from policy import simulate as policy_simulate
from policy.authority import Demand
from policy.delegation import authority, delegate
from policy.models import CapabilityRule
from policy.simulate import Explained
from policy.terms import AgentContext, Considered
from runs.gate.deciders import who_may_decide
from runs.tools.call import Gate, check_arguments


class CannotSimulate(ValueError):
    """The question makes no sense as asked; the message says why."""


@dataclass(frozen=True)
class Simulated:
    """The answer, with the policy it rests on and the names of those who may decide today."""

    explained: Explained
    policy: str
    who: tuple[str, ...] = ()
    delegated: dict[str, Any] | None = None


def simulate(
    organization: Organization,
    project: Project,
    user: Any,
    tool: str,
    arguments: Any,
    *,
    role: Role | None = None,
    agent: AgentInstance | None = None,
    group: Group | None = None,
    delegated: dict[str, Any] | None = None,
) -> Simulated:
    """Ask policy as the gate would. Without role and agent the user's personal agent is meant.

    In a group, `delegated` is what the personal agent could pass on unless it is given. Raises
    CannotSimulate for things of different organizations, or a malformed `delegated`.
    """
    _check_belonging(organization, project, role, agent, group)
    gate, agent_context = _asker(organization, project, user, role, agent, group, delegated)
    given = gate.delegated.to_json() if gate.delegated else None
    found = gate.tools.get(tool)
    if found is None:
        unknown = Explained(tool, "deny", "unknown_tool", f"There is no tool '{tool}'.")
        return Simulated(unknown, gate.policy.digest, (), given)
    if found.suspended:
        suspended = Explained(tool, "deny", "tool_suspended", found.suspended)
        return Simulated(suspended, gate.policy.digest, (), given)
    try:
        arguments = normalise(arguments)
    except NotJson as error:
        raise CannotSimulate(f"The arguments are not JSON: {error}") from None
    refused = check_arguments(found, arguments)
    problems = refused.details["errors"] if refused else []
    context, info = gate.question(agent_context, found)
    if not problems:
        context = gate.with_grants(context, found, arguments)
    explained = policy_simulate.simulate(context, info, arguments, problems, project.allow_self_approval)
    who: list[Any] = []
    if explained.unlockable:
        demand = Demand(
            explained.effect, explained.deciders_needed, explained.named, project.allow_self_approval
        )
        who = who_may_decide(project, user.pk, demand)
    return Simulated(explained, gate.policy.digest, tuple(one.get_username() for one in who), given)


def foreseen(
    organization: Organization,
    project: Project,
    user: Any,
    tool: str,
    *,
    role: Role | None = None,
    agent: AgentInstance | None = None,
    group: Group | None = None,
) -> bool:
    """Whether the gate lets the tool pass as far as that is known before its arguments are.

    Raises CannotSimulate.
    """
    _check_belonging(organization, project, role, agent, group)
    gate, agent_context = _asker(organization, project, user, role, agent, group, None)
    found = gate.tools.get(tool)
    if found is None or found.suspended:
        return False
    return gate.beforehand(agent_context, found, gate.granted()).decision.allowed


def considered(found: Simulated, organization_id: str, projects: Sequence[str] | None) -> list[Considered]:
    """What was considered, without the rules of projects somebody does not see. None: they see all."""
    if projects is None:
        return list(found.explained.considered)
    elsewhere = CapabilityRule.objects.filter(organization_id=organization_id, project__isnull=False)
    hidden = set(elsewhere.exclude(project_id__in=projects).values_list("pk", flat=True))
    return [line for line in found.explained.considered if line.layer != "rule" or line.id not in hidden]


def _check_belonging(organization: Organization, *others: Any) -> None:
    for other in others:
        if other is not None and other.organization_id != organization.pk:
            raise CannotSimulate(f"{other} belongs to another organization.")
    project, *_, group = others
    if group is not None and group.project_id != project.pk:
        raise CannotSimulate(f"{group} belongs to another project.")


def _asker(
    organization: Organization,
    project: Project,
    user: Any,
    role: Role | None,
    agent: AgentInstance | None,
    group: Group | None,
    delegated: dict[str, Any] | None,
) -> tuple[Gate, AgentContext]:
    scope = (organization.pk, project.pk, group.pk if group else None)
    try:
        gate = Gate.open(*scope, user.pk, delegated)
    except ValueError as error:
        raise CannotSimulate(str(error)) from None
    own = _personal(gate, user, agent)
    if group is not None and delegated is None:
        passed_on = gate.authority(own) if own.role_id else authority(own, gate.live.boundary)
        gate = replace(gate, delegated=delegate(passed_on, gate.live.boundary))
        own = replace(own, delegated_permissions=gate.delegated)
    return gate, gate.agent(agent.pk if agent else "", role.pk) if role is not None else own


def _personal(gate: Gate, user: Any, agent: AgentInstance | None) -> AgentContext:
    """The agent named, or the user's own; one that is not made yet will have the usual role, or no lists."""
    mine = {"organization_id": gate.organization_id}
    found = agent or AgentInstance.objects.filter(**mine, user=user).first()
    if found is not None:
        return gate.agent(found.pk, found.role_id)
    role = Role.objects.filter(**mine, name=settings.PERSONAL_ROLE).first()
    if role is not None:
        return gate.agent("", role.pk)
    return AgentContext("", None, delegated_permissions=gate.delegated)
