"""Start a run: the row, its first events and the queue's message in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_noop

from common import ids
from common.db import row
from groups import changes, routing, today
from groups.actors import Actor
from groups.models import AgentInstance, Project, Role
from policy.authority import About, Verb, can, may
from policy.cache import LIVE_BOUNDARY_OF, live_boundary_of
from runs.actions.signal import marks_of_turn
from runs.gate.provenance import marks_of_goal, turns_of
from runs.log import waits
from runs.log.log import RunLog
from runs.models import Run, RunEvent
from runs.models.choices import Driver, EventType, MessageType, RunKind, RunStatus
from runs.observe import tracing

MAX_GOAL = 50_000  # characters
MAX_CONTEXT = 200_000
MB = 1_048_576
PRUNED = gettext_noop("What was said in this run was removed for its age: start a new run.")

# What it takes to start, in one look: the person's agent, whether they may, whether the queue has room, and
# how many bytes the organization has where these are too many.
# Of the queue, no more is counted than decides; the status stands here as text, so that its index is used.
LOOK = f"""
SELECT a.id, a.role_id, r.name, clock_timestamp(), {LIVE_BOUNDARY_OF.format("home.id", "%s", "%s")},
    (SELECT count(*) >= COALESCE(home.queue_limit, %s) FROM (
        SELECT FROM runs_run q WHERE q.organization_id = home.id AND q.status = 'pending'
        LIMIT COALESCE(home.queue_limit, %s)) queued),
    (SELECT used.size FROM groups_storageuse used
     WHERE used.organization_id = home.id AND used.size > home.storage_limit * {MB})
FROM groups_organization home
LEFT JOIN groups_agentinstance a ON a.organization_id = home.id AND a.user_id = %s
LEFT JOIN groups_role r ON r.id = a.role_id
WHERE home.id = %s
"""  # noqa: S608 - our own text
QUEUE_RETRY_SECONDS = 10


class CannotStart(Exception):
    """The run may not be started; `code` is stable, the message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class NewRun:
    """Everything a run is made of. `members` as run.created snapshots them."""

    organization_id: str
    project_id: str
    user_id: int
    kind: str
    goal: str
    members: tuple[dict[str, Any], ...]
    budgets: dict[str, int]
    deadline: Any
    context: str = ""
    session_key: str = ""
    driver: str = Driver.INTERNAL.value
    parent_run_id: str | None = None
    root_id: str | None = None
    depth: int = 0
    group_id: str | None = None
    agent_instance_id: str | None = None
    role_id: str | None = None
    delegated_permissions: dict[str, Any] | None = None
    roles_above: list[str] | None = None
    groups_above: list[str] | None = None
    max_rounds: int = 1
    author: str = ""
    outside: bool = False  # whether the goal is somebody else's words than the person's
    marks: dict[str, bool] = field(default_factory=dict)  # what of it is an agent's (runs/actions/signal.py)
    snapshot: dict[str, Any] = field(default_factory=dict)


def start(
    *,
    actor: Actor,
    project: Project,
    goal: str,
    context: str = "",
    session_key: str = "",
    driver: str = Driver.INTERNAL.value,
    group_id: str | None = None,
    outside: bool = False,
    repeats: str = "",
    budgets: Mapping[str, int] | None = None,
    told: Mapping[str, Any] | None = None,
) -> str:
    """Start a run of the actor's personal agent; returns its id.

    A goal that is not the person's own words is text from outside; `outside`: it repeats such words;
    `repeats`: the run whose goal it is once more, and whose it stays.
    `group_id`: the person wants this group; the agent is told to escalate to it. `budgets`: narrower ones,
    with `seconds` for the time it may take. `told`: what run.created says besides.

    Raises NotAllowed, and CannotStart: GOAL_EMPTY, GOAL_TOO_LONG, CONTEXT_TOO_LONG, NOT_A_MEMBER, and for the
    group UNKNOWN_GROUP, GROUP_INACTIVE, GROUP_EMPTY; QUEUE_FULL when too many of the organization's runs wait
    for a worker: try again in QUEUE_RETRY_SECONDS; STORAGE_FULL when it takes more of the database than its
    limit. What runs already is never kept from going on.
    """
    goal = check_text(goal, context)
    with transaction.atomic():
        agent, now = personal_agent(actor.user, project, queued=True)
        about = About(project.organization_id, project.pk, actor.user_id)
        may(actor, Verb.START, about)
        marks = _marks(actor, project, session_key, goal, repeats)
        actor = today.since(actor)  # to look for words that others wrote may have taken a while
        may(actor, Verb.START, about)
        snapshot: dict[str, Any] = {"escalate_to": wanted_group(group_id, project)} if group_id else {}
        limits = narrowed(budgets or {})
        seconds = limits.pop("seconds")
        log = create(
            NewRun(
                organization_id=project.organization_id,
                project_id=project.id,
                user_id=actor.user.pk,
                kind=RunKind.PERSONAL.value,
                goal=goal,
                context=context,
                session_key=session_key,
                driver=driver,
                members=(agent,),
                agent_instance_id=agent["agent"],
                role_id=agent["role_id"],
                budgets=limits,
                deadline=now + timedelta(seconds=seconds),
                author=str(actor),
                outside=outside or not can(actor, Verb.SPEAK_AS_PERSON, about),
                marks=marks,
                snapshot={**snapshot, **(told or {})},
            ),
            now,
        )
        waits.flush_and_enqueue(log)
    return log.id


def again(run: Run, actor: Actor, session_key: str) -> str:
    """Start the same goal once more, with today's roles, models and limits; returns the new run's id.

    Whose words the goal is stays, and so does the group that was wished for. Raises as `start` does, and
    GOAL_EMPTY where the goal was removed for its age.
    """
    if run.pruned_at is not None:
        raise CannotStart("GOAL_EMPTY", PRUNED)
    created = RunEvent.objects.filter(run=run, seq=1).values_list("payload", flat=True).first() or {}
    wanted = created.get("escalate_to") or {}
    return start(
        actor=actor,
        project=run.project,
        goal=run.goal,
        context=run.context,
        session_key=session_key,
        group_id=wanted.get("group_id"),
        repeats=run.pk,
    )


def _marks(actor: Actor, project: Project, session_key: str, goal: str, repeats: str) -> dict[str, bool]:
    """What of the goal is somebody else's: as it was before, and by the conversation that it goes on with."""
    before = marks_of_goal(repeats) if repeats else {}
    if not session_key:
        return before
    whose = {"organization_id": project.organization_id, "user_id": actor.user_id, "project_id": project.pk}
    return {**before, **marks_of_turn(turns_of(session_key, whose), goal)}


def check_text(goal: str, context: str) -> str:
    """The goal, trimmed. Raises CannotStart when a text is empty or too long."""
    goal = goal.strip()
    if not goal:
        raise CannotStart("GOAL_EMPTY", "The goal is empty: say what is to be done.")
    if len(goal) > MAX_GOAL:
        raise CannotStart("GOAL_TOO_LONG", f"The goal has {len(goal)} characters; at most {MAX_GOAL} fit.")
    if len(context) > MAX_CONTEXT:
        raise CannotStart(
            "CONTEXT_TOO_LONG", f"The context has {len(context)} characters; at most {MAX_CONTEXT} fit."
        )
    return goal


def wanted_group(group_id: str, project: Project) -> dict[str, str]:
    """The group a person asks for, as run.created records it. Raises CannotStart."""
    try:
        group = routing.named_group(group_id, project.pk)
    except routing.NoGroup as error:
        raise CannotStart(error.code, error.message) from None
    return {"group_id": group.id, "name": group.name}


def personal_agent(user: Any, project: Project, queued: bool = False) -> tuple[dict[str, Any], datetime]:
    """The user's PA in the project's organization, made on first use, as run.created records it; and the
    time. Raises CannotStart, with `queued` also where too many runs wait or the organization takes too much
    of the database: requests at the same moment may pass together, these limits are not exact.
    """
    limit = settings.QUEUE_LIMIT
    wanted = [user.pk, project.pk, limit, limit, user.pk, project.organization_id]
    agent, role_id, role, now, live, full, too_much = row(LOOK, wanted)
    if queued:
        _check_room(full, too_much)
    found = live_boundary_of(live, project.pk)
    if found is None or found.boundary is None:
        raise CannotStart("NOT_A_MEMBER", f"{user} has no active membership that includes this project.")
    if agent is None:
        make_agent(user, project)
        agent, role_id, role, *_ = row(LOOK, wanted)
    return {"agent": agent, "role_id": role_id, "role": role, "ordinal": 0, "is_lead": False}, now


def _check_room(queue_is_full: bool, too_much: int | None) -> None:
    if queue_is_full:
        later = f"try again in {QUEUE_RETRY_SECONDS} seconds."
        raise CannotStart("QUEUE_FULL", f"Too many runs of this organization wait for a worker; {later}")
    if too_much is not None:
        raise CannotStart(
            "STORAGE_FULL",
            f"The organization takes {too_much // MB} MB of the database, more than its limit: an "
            "administrator has old runs removed (retention), or whoever operates Deputy raises the limit.",
        )


def make_agent(user: Any, project: Project) -> None:
    """The user's own agent, unless somebody else has just made it."""
    role, _ = Role.objects.get_or_create(
        organization_id=project.organization_id,
        name=settings.PERSONAL_ROLE,
        defaults={"description": "A person's own agent"},
    )
    with changes.settled():  # nobody asks for it: whoever starts a run has an agent of this role
        AgentInstance.objects.get_or_create(
            organization_id=project.organization_id,
            user=user,
            defaults={"role": role, "name": f"{user}'s agent"},
        )


def default_budgets() -> dict[str, int]:
    return {
        "steps": settings.RUN_STEPS,
        "tokens": settings.RUN_TOKENS,
        "depth": settings.RUN_DEPTH,
        "children": settings.RUN_CHILDREN,
    }


def narrowed(budgets: Mapping[str, int]) -> dict[str, int]:
    """The most a run may use, `seconds` included; nobody sets more than the installation allows."""
    most = {**default_budgets(), "seconds": settings.RUN_SECONDS}
    return {name: min(limit, budgets.get(name, limit)) for name, limit in most.items()}


def create(new: NewRun, now: datetime) -> RunLog:
    """The run with its first two events, to be flushed in this transaction. Enqueues nothing.

    `now` by the database's clock.
    """
    log = begin(new, now)
    log.append(
        EventType.MESSAGE_CREATED,
        {
            "role": "user",
            "author": new.author,
            "message_type": MessageType.TASK.value,
            "content": new.goal,
            **({"outside": True} if new.outside else {}),
            **new.marks,
        },
    )
    if new.driver == Driver.EXTERNAL:  # nobody claims it: it runs at once and without a lease
        log.append(EventType.RUN_STARTED, {})
        log.set(status=RunStatus.RUNNING.value, started_at=log.now)
    return log


def begin(new: NewRun, now: datetime) -> RunLog:
    """The run with run.created alone, to be gone on with and flushed in this transaction."""
    run_id = ids.run_id()
    columns = {name: getattr(new, name) for name in _PLAIN} | {
        "id": run_id,
        "root_id": new.root_id or run_id,
        "status": RunStatus.PENDING.value,
        "deadline": new.deadline or now + timedelta(seconds=settings.RUN_SECONDS),
        "usage": {},
        "attempt": 0,
        "crashes": 0,
        "queued_at": now,
        "created_at": now,
    }
    if not new.parent_run_id and (traceparent := tracing.began(run_id)):
        columns["traceparent"] = traceparent
    log = RunLog.make(now, columns)
    log.append(EventType.RUN_CREATED, _created(new))
    return log


_PLAIN = tuple(
    "organization_id project_id user_id parent_run_id depth kind driver group_id agent_instance_id "  # noqa: SIM905
    "role_id session_key goal context delegated_permissions roles_above groups_above budgets".split()
)


def _created(new: NewRun) -> dict[str, Any]:
    """What run.created says: what the run does not have is left out."""
    told = {
        "kind": new.kind,
        "goal": new.goal,
        "context": new.context,
        "members": list(new.members),
        "max_rounds": new.max_rounds,
        "budgets": new.budgets,
        "driver": new.driver,
        "model": settings.DEPUTY_MODEL,
        "session_key": new.session_key,
        "parent_run": new.parent_run_id,
        "group_id": new.group_id,
        "delegated_permissions": new.delegated_permissions,
        "roles_above": new.roles_above,
        "groups_above": new.groups_above,
        **new.snapshot,
    }
    return {name: value for name, value in told.items() if value not in (None, "")}
