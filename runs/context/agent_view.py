"""An agent's view for those outside the run: as it was at any event, and rearranged by who may."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction

from groups.actors import Actor
from memory.context import AgentContext, Change, InvalidOperation, PermissionDenied, Tree
from memory.context.copies import PageCopy
from memory.context.rendering import Rendered, in_order
from memory.context.tools import TOOLS
from policy.authority import Verb, may
from runs.context import texts, working_memory
from runs.gate.opening import open_gate
from runs.log import log
from runs.log.claimed import ClaimedRun
from runs.log.log import AlreadyEnded, RunGone, RunLog
from runs.log.state import Member, State, fold
from runs.models import Run, RunEvent, ToolCall
from runs.models.choices import EventType, RunKind
from runs.observe import showing
from runs.tools import registry
from runs.tools.call import check_arguments

# Seed 002's operations on a view, and the tools that do them.
OPERATIONS = {
    "getSegment": "context_segment",
    "listSegments": "context_segments",
    "getChildren": "context_children",
    "getParent": "context_parent",
    "getAncestors": "context_ancestors",
    "getPage": "context_view",
    "findPage": "context_find",
    "expandDetails": "context_expand",
    "hideDetails": "context_hide",
    "updatePage": "context_update",
    "movePage": "context_move",
    "removePage": "context_remove",
    "createDetailPage": "context_create_detail",
    "createContentsPage": "context_create_contents",
}
TOLD = {"index", "parent", "position", "removed"}  # of a change, to somebody else than the run's person
READING = {
    "getSegment",
    "listSegments",
    "getPage",
    "getChildren",
    "getParent",
    "getAncestors",
    "findPage",
}
ELSEWHERE = {"updatePage", "movePage", "createContentsPage"}  # what gives pages another name or place
DO = {tool.name: tool.run for tool in TOOLS}


class BadArguments(Exception):
    """The arguments do not fit the operation. `errors` are {path, problem}."""

    def __init__(self, message: str, errors: list[dict[str, str]]) -> None:
        super().__init__(message)
        self.errors = errors


class NoSuchAgent(Exception):
    """Nobody of that id speaks in this run."""


@dataclass(frozen=True)
class Moment:
    """A view as it was right after an event. `version` counts its changes; None: nothing had changed it.

    `members`: (agent, role) of everybody who speaks in the run.
    """

    run_id: str
    agent: str
    role: str
    seq: int
    tree: Tree
    members: tuple[tuple[str, str], ...]
    version: int | None = None

    def shown(self, own: bool) -> "Moment":
        """As a reader may see it; `own`: the person the run works for."""
        return replace(self, tree=showing.view(self.tree, own))

    @property
    def rendered(self) -> Rendered:
        """As the agent reads it."""
        return self.tree.render()

    def structure(self) -> list[dict[str, Any]]:
        """The segments with the pages that are seen, nested; a folded page without what it holds."""
        segments = self.tree.list_segments()
        visible = self.tree.visible()
        below: dict[str | None, list[PageCopy]] = {}
        for page in visible:
            below.setdefault(page.parent, []).append(page)
        return [
            {
                "segment_id": segment.segment_id,
                "name": segment.name,
                "type": str(segment.type),
                "permission": str(segment.permission),
                "page": _nested(walk[0][0], below),
            }
            for segment, walk in in_order(segments, visible)
        ]


def _nested(page: PageCopy, below: Mapping[str | None, list[PageCopy]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "index": page.index,
        "kind": str(page.kind),
        "name": page.name,
        "description": page.description,
        "detail": page.detail,
        "folded": not page.is_expanded,
        "page_count": page.child_count,
        "pages": [],
    }
    if page.is_expanded:
        inside = sorted(below.get(page.index, []), key=lambda child: child.position)
        found["pages"] = [_nested(child, below) for child in inside]
    return found


# At any event


def view_at(run_id: str, seq: int | None = None, agent: str | None = None) -> Moment:
    """The view after the event `seq` of the run (the last one where None), of the agent that was speaking
    then, or of `agent`.

    A stored view is replayed from the log and nothing else. One that nothing had changed is what the run
    started with, with the role and policy of today. Raises RunGone and NoSuchAgent.
    """
    events = [event for event in log.read(run_id) if seq is None or event.seq <= seq]
    if not events:
        raise RunGone(run_id)
    state = fold(events)
    member = member_named(state, agent)
    view, version = _last_known(events, member)
    if view is None:
        tree = working_memory.initial(ClaimedRun.in_state(run_id, state), member)
    else:
        tree = Tree.replay(changes_of(run_id, view, version))
    members = tuple((one.agent, one.role) for one in state.members)
    at = None if view is None else version
    return Moment(run_id, member.agent, member.role, state.seq, tree, members, at)


def member_named(state: State, agent: str | None) -> Member:
    """The member of this id; whose turn it is, or was last, where None. Raises NoSuchAgent."""
    if agent is None and state.members:
        return state.speaker
    for member in state.members:
        if member.agent == agent:
            return member
    raise NoSuchAgent(agent)


def _last_known(events: Sequence[log.Event], member: Member) -> tuple[str | None, int]:
    """The view and the last version of it that the events speak of: changed, or shown to its agent."""
    view, version = None, 0
    for event in events:
        if event.agent != member.agent:
            continue
        if event.type == EventType.CONTEXT_CHANGED:
            view, version = event.payload["view"], max(version, event.payload["changes"][-1]["seq"])
        elif event.type == EventType.MESSAGE_CREATED and "context" in event.payload:
            shown = event.payload["context"]
            view, version = shown["view"], max(version, shown["version"])
    return view, version


def changes_of(run_id: str, view: str, version: int) -> list[Change]:
    """Every change of the view up to that version, in order; in a session they stand in several runs."""
    found = RunEvent.objects.filter(
        run_id__in=_runs_of_view(run_id), type=EventType.CONTEXT_CHANGED, payload__view=view
    ).values_list("run_id", "payload__changes")
    packed = [(run, change) for run, changes in found for change in changes if change["seq"] <= version]
    packed.sort(key=lambda pair: pair[1]["seq"])
    kept = _kept_texts(packed)
    return [texts.unpacked([change], partial(_text, kept, run))[0] for run, change in packed]


def _text(kept: Mapping[tuple[str, str], str], run: str, name: str) -> str:
    return kept[run, name]


def _runs_of_view(run_id: str) -> list[str]:
    run = Run.objects.get(pk=run_id)
    if run.kind != RunKind.PERSONAL or not run.session_key:
        return [run_id]
    of_session = Run.objects.filter(
        organization_id=run.organization_id,
        user_id=run.user_id,
        project_id=run.project_id,
        session_key=run.session_key,
    )
    return list(of_session.values_list("id", flat=True))


def _kept_texts(packed: Sequence[tuple[str, Change]]) -> dict[tuple[str, str], str]:
    """The texts that the changes refer to, by run and name; two queries however many they are."""
    wanted = {(run, name) for run, change in packed for name in texts.references(change)}
    if not wanted:
        return {}
    runs = {run for run, _ in wanted}
    found: dict[tuple[str, str], str] = {}
    for run, goal, context in Run.objects.filter(pk__in=runs).values_list("id", "goal", "context"):
        found[run, "goal"], found[run, "context"] = goal, context
    call_ids = {name.partition("/")[0] for _, name in wanted} - {"goal", "context"}
    if not call_ids:
        return found
    for call in ToolCall.objects.filter(run_id__in=runs, call_id__in=call_ids):
        found[call.run_id, call.call_id] = texts.of_result(call.result)
        for name, value in texts.of_arguments(call.call_id, call.effective_arguments).items():
            found[call.run_id, name] = value
    return found


# Rearranged


def operate(
    run_id: str,
    operation: str,
    arguments: dict[str, Any],
    actor: Actor,
    agent: str | None = None,
) -> dict[str, Any]:
    """One of seed 002's operations on an agent's view, through the agent's own door; what it gave back.

    The log says who did it, and what they wrote is text from outside. Others than the person the run works
    for see what `Moment.shown` gives them. What a program asks for passes policy as the agent's call would.
    Raises NotAllowed, ContextError, BadArguments, NoSuchAgent, and AlreadyEnded where it would change the
    view of an ended run.
    """
    with transaction.atomic():
        run = RunLog.lock(run_id)
        may(actor, Verb.LOOK if operation in READING else Verb.STEER, run)
        own = run.user_id == actor.user_id
        claimed = ClaimedRun.load(run_id, run.attempt)
        member = member_named(claimed.state, agent)
        view = working_memory.View(claimed, member)
        if operation not in OPERATIONS:
            return _nobodys(view.read(), operation, arguments)
        _check(claimed, member, OPERATIONS[operation], arguments, ask_policy=not actor.is_person)
        do = DO[OPERATIONS[operation]]
        if operation in READING:
            return do(view.read() if own else _read_by_others(run_id, member), arguments).result
        if run.ended:
            raise AlreadyEnded(run.status)
        if not own and operation in ELSEWHERE:
            _leave_private(run_id, member, arguments)
        context, changes = view.write()
        outcome = do(context, arguments)
        claimed.log = run
        working_memory.append(claimed, member, changes)
        working_memory.append(claimed, member, outcome.changes, by=str(actor))
        run.flush()
        return (
            outcome.result if own else {name: outcome.result[name] for name in TOLD & outcome.result.keys()}
        )


def _leave_private(run_id: str, member: Member, arguments: Mapping[str, Any]) -> None:
    """What only the person is shown is recognized by its name and position, so nobody else changes them.

    Raises PermissionDenied.
    """
    tree = view_at(run_id, agent=member.agent).tree
    for index in filter(None, (arguments.get("index"), *arguments.get("children", ()))):
        if showing.holds_private(tree, index):
            raise PermissionDenied(f"page {index} is about the person: only they and their agent move it")


def _read_by_others(run_id: str, member: Member) -> AgentContext:
    return AgentContext.reading(view_at(run_id, agent=member.agent).shown(own=False).tree)


def _nobodys(context: AgentContext, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An operation this door does not offer: what check_permission says of it (rulings 27 and 35)."""
    context.check_permission(str(arguments.get("index", "sys-0")), operation)
    raise InvalidOperation(f"there is no operation '{operation}' here")


def _check(
    claimed: ClaimedRun, member: Member, name: str, arguments: dict[str, Any], ask_policy: bool
) -> None:
    tool = registry.get(name)
    assert tool is not None  # noqa: S101 - registered with the others
    problem = check_arguments(tool, arguments)
    if problem:
        raise BadArguments(problem.message, problem.details["errors"])
    if ask_policy:
        gate = open_gate(claimed)
        decision = gate.decide(gate.agent(member.agent, member.role_id), tool, arguments)
        if not decision.allowed:
            raise PermissionDenied(decision.message)
