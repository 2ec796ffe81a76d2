"""A conversation as its person reads it: their words, the agent's, what it does, what it waits for."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from common.canonical import digest
from groups import routing
from runs.admin.remedy import Remedy, remedy
from runs.models import Approval, Rating, Run, RunEvent, Wait
from runs.models.choices import ACTIVE, ApprovalStatus, EventType, RunStatus, WaitKind
from runs.observe import showing
from runs.web import access, sources
from runs.web.access import MemberRequest
from runs.web.following import Followed, all_followed, reminded
from runs.web.sources import Source
from runs.web.story import Line, doing, line_of, without_looks

MOST_EVENTS = 2_000  # of one turn that are read

TOLD = (
    EventType.RUN_CREATED,
    EventType.MESSAGE_CREATED,
    EventType.MODEL_RETRIED,
    EventType.TOOL_CALLED,
    EventType.TOOL_COMPLETED,
    EventType.TOOL_FAILED,
    EventType.TOOL_BLOCKED,
    EventType.TOOL_WAITS,
    EventType.TOOL_REQUIRES_APPROVAL,
    EventType.TOOL_APPROVED,
    EventType.APPROVAL_FOLLOWED_UP,
    EventType.TOOL_REJECTED,
    EventType.TOOL_EXPIRED,
    EventType.TOOL_OUTCOME_UNKNOWN,
    EventType.CHILD_CREATED,
    EventType.WAIT_COMPLETED,
    EventType.RUN_COMPLETED,
    EventType.RUN_FAILED,
    EventType.RUN_CANCELLED,
)


@dataclass(frozen=True)
class Words:
    """What somebody said in a turn, in order."""

    person: bool
    text: str
    at: datetime
    by: str = ""  # who sent them, where it was not the person


@dataclass(frozen=True)
class Question:
    """Something the agent, or a group's member, wants to know."""

    run: str
    key: str
    text: str
    who: str
    choices: tuple[str, ...] = ()
    link: str = ""  # the page that gives what a call needs, where no answer does
    server: str = ""  # who asks, where it is somebody else's server


@dataclass
class Turn:
    """One goal of a conversation and what came of it."""

    run: Run
    by: str = ""  # who sent the goal, where it was not the person
    words: list[Words] = field(default_factory=list)
    story: list[Line] = field(default_factory=list)
    now: str = ""
    questions: list[Question] = field(default_factory=list)
    approvals: list[Approval] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    groups: list[dict[str, str]] = field(default_factory=list)  # {name, why}
    last: str = ""  # `{run}:{seq}` of the latest event that was read
    rating: Rating | None = None
    point: int = 0  # the event from which the run may be gone on with, if any

    @property
    def active(self) -> bool:
        return self.run.status in ACTIVE

    @property
    def remedy(self) -> Remedy | None:
        """What to change where a model or a limit is why it failed."""
        found = remedy(self.run)
        return found if found and (found.of_model or found.setting) else None

    @property
    def followed(self) -> list[Followed]:
        """Its pending approvals, with whom they are."""
        return all_followed([one for one in self.approvals if one.status == ApprovalStatus.PENDING])

    @property
    def versions(self) -> dict[str, str]:
        """What each part of the turn shows, as a digest: a page swaps a part only when it has changed."""
        asked = [question.key for question in self.questions]
        pending = [[a.pk, a.status, a.arguments_digest, reminded(a)] for a in self.approvals]
        ended = [self.run.status, self.run.output, self.rating and self.rating.good]
        return {
            "words": digest([[w.person, w.text, w.by] for w in self.words])[:16],
            "doing": digest([self.now, [[line.text, line.said] for line in self.story]])[:16],
            "asks": digest([asked, pending])[:16],
            "answer": digest([ended, [source.id for source in self.sources]])[:16],
        }


Below = dict[str, list[Run]]


def read(request: MemberRequest, runs: Sequence[Run]) -> list[Turn]:
    """The turns of these root runs; a handful of queries for all of them."""
    runs = [showing.run(run) for run in runs]
    below = _below(request, runs)
    every = {run.pk: run for tree in below.values() for run in tree}
    events = _events(every)
    waits, asked = _open_waits(every), _approvals(request, every)
    turns = [_turn(run, below[run.pk], events, waits, asked) for run in runs]
    answers = {run.pk: run.output for run in runs if run.output}
    said = {root: [event for one in below[root] for event in events[one.pk]] for root in answers}
    found = sources.behind(request, answers, said)
    for turn in turns:
        turn.sources = found.get(turn.run.pk, [])
    return turns


def _below(request: MemberRequest, runs: Sequence[Run]) -> Below:
    """Each root with its whole tree, from the top."""
    found: Below = {run.pk: [] for run in runs}
    whole = access.own_runs(request).filter(root_id__in=found).select_related("group").defer("context")
    for run in whole.order_by("depth", "id"):
        found[run.root_id].append(run)
    return found


def _events(every: Iterable[str]) -> dict[str, list[RunEvent]]:
    """What these runs' logs tell, by run, in order."""
    found: dict[str, list[RunEvent]] = defaultdict(list)
    told = RunEvent.objects.filter(run_id__in=list(every), type__in=TOLD)
    for event in told.order_by("run_id", "seq")[: MOST_EVENTS * 5]:
        event.payload = showing.payload(event.type, event.payload, own=True)
        found[event.run_id].append(event)
    return found


def _open_waits(every: Iterable[str]) -> dict[str, list[Wait]]:
    found: dict[str, list[Wait]] = defaultdict(list)
    for wait in Wait.objects.filter(run_id__in=list(every), resolved_at=None).order_by("id"):
        found[wait.run_id].append(wait)
    return found


def _approvals(request: MemberRequest, every: Iterable[str]) -> dict[str, list[Approval]]:
    found: dict[str, list[Approval]] = defaultdict(list)
    theirs = access.approvals(request).select_related("watch").filter(run_id__in=list(every))
    for approval in theirs.order_by("id"):
        found[approval.run_id].append(approval)
    return found


def _turn(
    run: Run,
    tree: list[Run],
    events: dict[str, list[RunEvent]],
    waits: dict[str, list[Wait]],
    approvals: dict[str, list[Approval]],
) -> Turn:
    turn = Turn(run, rating=getattr(run, "rating", None))
    names = _names(tree, events)
    for one in tree:
        named = bool(not one.depth and events[one.pk] and events[one.pk][0].payload.get("escalate_to"))
        for event in without_looks(events[one.pk]):
            line = line_of(one, event, names)
            turn.story += [line] if line else []
            if event.type == EventType.CHILD_CREATED:
                turn.groups.append(
                    {"name": str(event.payload.get("group", "")), "why": _why(one, event, named)}
                )
        turn.questions += _questions(one, events[one.pk], waits[one.pk], names)
        turn.approvals += approvals[one.pk]
    turn.story.sort(key=lambda line: line.at)
    turn.words = _words(run, tree, events)
    turn.by = next((_sender(run, event) for event in events[run.pk] if _is_said(event)), "")
    turn.point = _point(events[run.pk])
    turn.now = _now(run, tree, events, turn) if turn.active else ""
    last = max((event for one in tree for event in events[one.pk]), key=_when, default=None)
    turn.last = f"{last.run_id}:{last.seq}" if last else ""
    return turn


def _when(event: RunEvent) -> Any:
    return event.created_at, event.run_id, event.seq


def _names(tree: list[Run], events: dict[str, list[RunEvent]]) -> dict[str, str]:
    """What the agents are called, as the runs' first events say."""
    names: dict[str, str] = {}
    for one in tree:
        first = next((event for event in events[one.pk] if event.type == EventType.RUN_CREATED), None)
        for member in first.payload.get("members", []) if first else []:
            names.setdefault(str(member["agent"]), str(member["role"]))
    return names


def _is_said(event: RunEvent) -> bool:
    return event.type == EventType.MESSAGE_CREATED


def _sender(run: Run, event: RunEvent) -> str:
    """Who sent words that are not the person's own, for the person; empty for what they said themselves."""
    if not event.payload.get("outside"):
        return ""
    author = str(event.payload.get("author", ""))
    if author == run.user.get_username():
        return _("Sent by a program with your access:")
    return _("Sent by {name}:").format(name=author)


def _words(run: Run, tree: list[Run], events: dict[str, list[RunEvent]]) -> list[Words]:
    """What the person, or somebody else, said further, to whomever, and what their agent said on the way.

    The goal and the answer stand apart; what the agent and a group were both told stands there once.
    """
    found: list[Words] = []
    for one in tree:
        said = [event for event in events[one.pk] if _is_said(event)]
        for event in said[1:]:
            person, text = event.payload.get("role") == "user", str(event.payload.get("content", ""))
            if person and one.depth and any(words.person and words.text == text for words in found):
                continue
            if person or (not one.depth and text.strip() and event.payload.get("tool_calls")):
                found.append(Words(person, text, event.created_at, _sender(run, event) if person else ""))
    return sorted(found, key=lambda words: words.at)


def _why(run: Run, event: RunEvent, named: bool) -> str:
    """Why this group: the person named it, or what routing found in the goal."""
    if named:
        return _("you named it")
    ranked = event.payload.get("routing") or []
    if not ranked:  # the agent named it, from the groups that routing had put before it
        goal = str(event.payload.get("goal", ""))
        ranked = [one.as_dict() for one in routing.rank(goal, run.project_id)]
    taken = next((one for one in ranked if one.get("group_id") == event.payload.get("group_id")), None)
    if taken and taken.get("matched"):
        return _("it matches {words}").format(words=", ".join(map(str, taken["matched"][:5])))
    return _("no other fits better") if taken else ""


def _questions(run: Run, events: list[RunEvent], waits: list[Wait], names: dict[str, str]) -> list[Question]:
    asked = {
        event.payload.get("correlation_key"): event for event in events if event.type == EventType.TOOL_WAITS
    }
    found = []
    for wait in waits:
        event = asked.get(wait.correlation_key)
        if wait.kind != WaitKind.INPUT or event is None:
            continue
        group = run.group.name if run.group else ""
        who = " · ".join(filter(None, [group, names.get(event.agent, "") if group else ""]))
        choices = tuple(str(choice) for choice in event.payload.get("choices") or [])
        text, link = (str(event.payload.get(name, "")) for name in ("question", "link"))
        server = str((event.payload.get("form") or {}).get("server", ""))
        found.append(Question(run.pk, wait.correlation_key, text, who, choices, link, server))
    return found


def _point(events: list[RunEvent]) -> int:
    """The latest event after which there was still something to do, and no call open."""
    open_calls: set[str] = set()
    best = 0
    for event in events:
        call = str(event.payload.get("call_id", ""))
        if event.type == EventType.MESSAGE_CREATED:
            requests = event.payload.get("tool_calls") or []
            if event.payload.get("role") == "user":
                best = best if open_calls else event.seq
            open_calls |= {r.get("call_id", f"{event.seq}.{i}") for i, r in enumerate(requests)}
        elif event.type in (
            EventType.TOOL_COMPLETED,
            EventType.TOOL_FAILED,
            EventType.TOOL_BLOCKED,
            EventType.TOOL_REJECTED,
            EventType.TOOL_EXPIRED,
        ):
            open_calls.discard(call)
            best = best if open_calls else event.seq
    return best


def _now(run: Run, tree: list[Run], events: dict[str, list[RunEvent]], turn: Turn) -> str:
    """What happens at the moment, in one line: of the deepest run that is active."""
    if turn.questions:
        return _("waits for your answer")
    pending = [approval for approval in turn.approvals if approval.status == ApprovalStatus.PENDING]
    if pending:
        return _("waits for a decision on {tool}").format(tool=pending[0].tool_call.tool)
    if run.status == RunStatus.PENDING and not run.started_at:
        return _("will start in a moment")
    groups = [one for one in tree if one.depth and one.status in ACTIVE]
    if groups:
        return _group_now(groups[-1], events[groups[-1].pk])
    return _agent_now(events[run.pk])


def _group_now(child: Run, events: list[RunEvent]) -> str:
    """`asking the group Competitor analysis · 2 of 3 have spoken`"""
    members = events[0].payload.get("members", []) if events else []
    said = [
        event
        for event in events
        if event.type == EventType.MESSAGE_CREATED
        and event.payload.get("role") != "user"
        and not event.payload.get("tool_calls")
    ]
    current = max((int(event.payload.get("round", 1)) for event in said), default=1)
    spoken = len({event.agent for event in said if int(event.payload.get("round", 1)) == current})
    heading = _("asking the group {name}").format(name=child.group.name if child.group else "")
    if _is_without_answer(events):
        return f"{heading} · {_('its model does not answer, and is asked again')}"
    progress = ngettext("{spoken} of {count} has spoken", "{spoken} of {count} have spoken", spoken)
    return f"{heading} · {progress.format(spoken=spoken, count=len(members))}"


def _is_without_answer(events: list[RunEvent]) -> bool:
    """Whether the last that a run's model did was not to answer."""
    told = [event.type for event in events if event.type != EventType.WAIT_COMPLETED]
    return told[-1:] == [EventType.MODEL_RETRIED]


def _agent_now(events: list[RunEvent]) -> str:
    if _is_without_answer(events):
        return _("gets no answer from its model, and asks again")
    for event in reversed(events):
        if event.type == EventType.TOOL_CALLED:
            return doing(str(event.payload.get("tool", "")))
        if event.type in (EventType.MESSAGE_CREATED, EventType.TOOL_COMPLETED):
            break
    return _("thinks")
