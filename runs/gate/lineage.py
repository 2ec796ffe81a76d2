"""Which of a run's ancestors denied a tool, for the words of a denial (ruling 46)."""

from groups.models import Role
from policy.terms import DelegatedPermissions
from runs.models import Run

DEEPEST = 50  # levels looked at
READ = ("parent_run_id", "delegated_permissions", "roles_above")


def denier(run_id: str, tool: str) -> str:
    """Whose share of rights left the tool out: the run nearest the root that passed on no right to it.

    Empty where nothing that was delegated denies it. Three queries for each level.
    """
    found = ""
    for _ in range(DEEPEST):
        run = Run.objects.only(*READ).filter(pk=run_id).first()
        if run is None or run.parent_run_id is None or not refuses(run, tool):
            return found
        run_id = run.parent_run_id
        found = _named(run_id)
    return found


def refuses(run: Run, tool: str) -> bool:
    if run.delegated_permissions is None:
        return False
    given = DelegatedPermissions.from_json(run.delegated_permissions)
    listed = given.allowed_tools is not None and tool not in given.allowed_tools
    above = set(run.roles_above or [])
    passing = Role.objects.filter(pk__in=above).exclude(denied_tools__contains=[tool])
    return listed or tool in given.denied_tools or passing.count() < len(above)  # also where a role is gone


def _named(run_id: str) -> str:
    run = Run.objects.select_related("group", "role").get(pk=run_id)
    who = f"the group {run.group}" if run.group else f"the role {run.role}" if run.role else "its agent"
    return f"{who}, run {run_id}"
