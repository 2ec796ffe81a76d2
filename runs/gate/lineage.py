"""Which of a run's ancestors denied a tool, for the words of a denial (ruling 46)."""

from typing import Any

from policy.terms import DelegatedPermissions
from runs.models import Run

DEEPEST = 50  # levels looked at


def denier(run_id: str, tool: str) -> str:
    """Whose share of rights left the tool out: the run nearest the root that passed on no right to it.

    Empty where nothing that was delegated denies it. Two queries for each level.
    """
    found = ""
    for _ in range(DEEPEST):
        run = Run.objects.filter(pk=run_id).values_list("delegated_permissions", "parent_run_id").first()
        if run is None or run[0] is None or run[1] is None or not refuses(run[0], tool):
            return found
        run_id = run[1]
        found = _named(run_id)
    return found


def refuses(delegated: dict[str, Any], tool: str) -> bool:
    given = DelegatedPermissions.from_json(delegated)
    listed = given.allowed_tools is not None and tool not in given.allowed_tools
    return listed or tool in given.denied_tools


def _named(run_id: str) -> str:
    run = Run.objects.select_related("group", "role").get(pk=run_id)
    who = f"the group {run.group}" if run.group else f"the role {run.role}" if run.role else "its agent"
    return f"{who}, run {run_id}"
