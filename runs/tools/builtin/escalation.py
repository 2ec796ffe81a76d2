"""Escalate to a group, and see which groups there are (seeds 001 and 003)."""

from typing import Annotated, Any

from groups import catalog, routing
from groups.models import Membership, Project
from policy.provenance.infer import Declaration
from policy.terms import DelegatedPermissions
from runs.tools.base import Spawn, ToolContext, ToolError
from runs.tools.registry import tool

NAMES = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
DELEGATED = {
    "properties": {"allowed_tools": NAMES, "denied_tools": NAMES},
    "additionalProperties": False,
}


@tool(
    description=(
        "Escalate a complex task to a specialized group of agents. Use this when the task requires "
        "expertise or capabilities beyond your own."
    ),
    risk_level="medium",
    mutating=True,
    supports_parallel=False,
    transactional=True,
    # A group's answer is what its agents wrote, however short: no record that a service keeps.
    declared=Declaration(verb="escalate", nouns=frozenset({"group"}), effect=False, origin="declared"),
)
def escalate_to_group(
    run: ToolContext,
    *,
    group_id: Annotated[
        str | None,
        "Optional. The ID of the group to escalate to. If not provided, a suitable group will be "
        "selected automatically based on the goal.",
    ] = None,
    goal: Annotated[str, "Clear description of what the group should accomplish"],
    context: Annotated[
        str | None, "Relevant context from the current conversation that the group needs to know"
    ] = None,
    delegated: Annotated[
        dict[str, Any] | None,
        "Optional. Narrows what the group may do: the tools it is left with, or must not use.",
        DELEGATED,
    ] = None,
) -> Spawn:
    """Spawn a group run. Without group_id the best-scoring group of the run's project is taken."""
    if not goal.strip():
        raise ToolError("The goal is empty: say what the group should accomplish.", "GOAL_EMPTY")
    asked = DelegatedPermissions.from_json(delegated) if delegated is not None else None
    try:
        if group_id:
            group = routing.named_group(group_id, run.project_id)
            return Spawn(group, goal, context or "", delegated=asked)
        group, ranked = routing.select_group(goal, run.project_id, run.catalog_version)
    except routing.NoGroup as error:
        raise ToolError(error.message, error.code) from None
    shown = [candidate.as_dict() for candidate in ranked[:10]]
    return Spawn(group, goal, context or "", shown, asked)


@tool(
    description="List all available groups that can be escalated to, along with their capabilities.",
    risk_level="low",
    mutating=False,
    supports_parallel=True,
    transactional=True,
    # What groups are called and can do is written by members of a project, and by their programs.
    declared=Declaration(
        steering=frozenset({"project_id"}),
        effect=False,
        deeds=frozenset({"read"}),
        nouns=frozenset({"group"}),
        origin="declared",
    ),
)
def list_available_groups(
    run: ToolContext,
    *,
    project_id: Annotated[
        str | None, "Optional. Filter groups by project. If not provided, uses the current run's project."
    ] = None,
) -> dict[str, Any]:
    """The groups with members, in the format of seed 003, 2."""
    wanted = project_id or run.project_id
    if wanted != run.project_id and not _may_see(run, wanted):
        raise ToolError(f"No project {wanted} exists here.", "UNKNOWN_PROJECT")
    known = run.catalog_version if wanted == run.project_id else None
    groups = catalog.edition(wanted, known)[1]
    return {"groups": [group.as_dict() for group in groups if group.seats]}


def _may_see(run: ToolContext, project_id: str) -> bool:
    project = Project.objects.filter(pk=project_id, organization_id=run.organization_id).first()
    return project is not None and Membership.objects.seeing(run.user_id, project) is not None
