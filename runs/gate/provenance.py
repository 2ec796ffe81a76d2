"""Where the values of a run's calls came from, by the run's own log: its messages and results, in order.

The weighing is policy/provenance; here is what a run has heard and read. Gathered once a claim, and only
when a rule or a profile asks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.db.models import Max, QuerySet, Subquery

from common.canonical import canonical
from memory.models import Memory, MemoryRevision, MemoryType
from memory.write import BY_PROGRAM
from policy.provenance.infer import Declaration
from policy.provenance.terms import Facts, Trust
from policy.provenance.trace import ONCE_ONLY, Material
from runs.log import log
from runs.log.state import PAGE, USER, Call, Said, State, fold
from runs.models import Run, RunEvent, ToolCall, in_conversation
from runs.models.choices import EventType, RunKind, WaitKind, WaitOutcome

MOST_EARLIER = 20  # runs of a session, and calls of each
Declare = Callable[[str], Declaration]


def of_run(run: Run, declare: Declare, upto: int | None = None) -> "Gathered":
    """What a run has heard and read, up to an event or until now."""
    events = [event for event in log.read(run.pk) if upto is None or event.seq <= upto]
    return Gathered(run.pk, run.root_id, fold(events), declare)


class Gathered:
    """What a run has heard and read up to now. Pieces are named by the event that brought them."""

    def __init__(self, run_id: str, root_id: str, state: State, declare: Declare) -> None:
        self.run_id, self.root_id, self.state, self.declare = run_id, root_id, state, declare
        self.material = Material()
        self.recalled: set[tuple[str, str, Trust]] = set()
        self.known: set[str] = set()  # calls of other runs of the tree whose secrets are known
        self.seq = 0
        self.has_turns = False  # before it, in its session
        self.told = 0  # the event by which its agent has read how such a turn ended meanwhile
        self.personal = run_id == root_id and state.kind == RunKind.PERSONAL
        if not self.personal:
            for seq, words in persons_words(root_id):
                self.material.hear(f"{root_id}:{seq}", words)

    def facts(self, tool: str, arguments: Mapping[str, Any]) -> Facts:
        """Where the values of a call came from."""
        self.catch_up()
        declared = self.declare(tool)
        found = self.material.facts(declared, arguments)
        return replace(found, repeats=self._repeats(declared, tool, found))

    def catch_up(self) -> None:
        """Take in what the log brought since the last time."""
        for seq, entry in sorted(self._new(), key=lambda pair: pair[0]):
            if isinstance(entry, str):
                self.material.overhear(str(seq), entry)
            elif isinstance(entry, Said):
                own = self.personal and not entry.outside
                if own and not (entry.chosen and self._steered()):
                    self.material.hear(str(seq), entry.content, entry.chosen)
                else:
                    self.material.overhear(str(seq), entry.content)
            elif entry.error is None:
                declared, arguments = self.declare(entry.tool), effective(entry)
                if entry.approved > self._latest_outside():
                    self.material.approve(declared, arguments, entry.approved)
                result = self._result(entry)
                offered = _chosen(result)
                if _told(entry) or (offered and self._steered()):
                    declared = replace(declared, output_trust="outside", fields={}, keeps=False)
                self.material.read(str(seq), declared, arguments, result, entry.tool, offered)
            else:
                self.material.overhear(str(seq), str(entry.error.get("message", "")))
        if self.seq == 0:
            self._begin()
        if self._replied():
            self._recall()
        if self.run_id != self.root_id or self.state.children:
            self._know_trees([self.root_id])
        if self.personal and any(seq > self.seq for seq, _ in self.state.put_in):
            later = turns_beside(self.run_id).filter(pk__gt=self.run_id).order_by("-id")
            self._know_trees([*later.values_list("pk", flat=True)[:MOST_EARLIER]])
        if self.has_turns and self._replied():
            self.told = ended_meanwhile(self.run_id)
        self.material.forget_approved(self._latest_outside())
        self.seq = self.state.seq

    def _know_trees(self, roots: list[str]) -> None:
        """The secrets that other runs of these trees have read: goals, results and earlier turns hand them on
        without the name of the field they stood in.
        """
        # in two steps, each by an index: joined, all calls of all runs may be read
        others = [*Run.objects.filter(root_id__in=roots).exclude(pk=self.run_id).values_list("pk", flat=True)]
        calls = ToolCall.objects.filter(run_id__in=others, result__isnull=False)
        found = calls.exclude(pk__in=self.known)
        for pk, tool, result in found.values_list("pk", "tool", "result"):
            self.known.add(pk)
            self.material.know(self.declare(tool), result)

    def _recall(self) -> None:
        """Take in the memories of the prompts since the last time. The same words again are nothing new."""
        for seq, memory_id, text, trust in memories_shown(self.run_id, self.seq):
            found = (memory_id, text, trust)
            if found not in self.recalled:
                self.recalled.add(found)
                self.material.recall(f"{memory_id}:{seq}", text, trust)

    def _replied(self) -> bool:
        """Whether the model was asked since the last time: with its prompt it read memories."""
        messages = takewhile(lambda said: said.seq > self.seq, reversed(self.state.messages))
        return any(said.author != USER for said in messages)

    def _steered(self) -> bool:
        """Whether the agent may have read something from outside, be it a word, before it suggested an answer
        with its question. If so, it does not become the person's own words by their choosing it. An address
        in it never does: it may stand in a description that the agent is shown.
        """
        before = self.state.context or self.state.inherited or not self.personal
        return bool(
            self.material.heard_others
            or before
            or any(trust == "outside" for *_, trust in memories_shown(self.run_id, 0))
            or any(next(earlier_turns(run_id), None) for run_id in made_from(self.run_id))
        )

    def _begin(self) -> None:
        """What stands in the first prompt beside the goal: its context, the parent's pages, earlier turns."""
        if self.state.context:
            self.material.overhear("1", self.state.context)
        for page in self.state.inherited:
            self.material.overhear("1", "\n".join(str(page.get(part, "")) for part in PAGE))
        if self.personal:
            turns = [turn for of in made_from(self.run_id) for turn in earlier_turns(of)]
            self.has_turns = bool(turns)
            if turns:
                self._know_trees([run_id for run_id, *_ in turns])
            for run_id, goal, trust, said in turns:
                self.material.recall(f"{run_id}:2", goal, trust)
                for seq, text in said:
                    self.material.recall(f"{run_id}:{seq}", text, "outside")

    def _new(self) -> Iterator[tuple[int, Said | Call | str]]:
        yield from ((seq, words) for seq, words in self.state.put_in if seq > self.seq)
        for said in self.state.messages:
            if said.seq > self.seq and said.author == USER:
                yield said.seq, said
        for call in self.state.calls.values():
            if call.ended > self.seq and (call.error is None or _says_something(call)):
                yield call.ended, call

    def _result(self, call: Call) -> Any:
        if not call.stored:
            return call.result
        stored = ToolCall.objects.filter(run_id=self.run_id, call_id=call.call_id)
        return stored.values_list("result", flat=True).first()

    def _repeats(self, declared: Declaration, tool: str, found: Facts) -> bool:
        """Whether a call that does the same, and takes as much along, was approved in this run, and nothing
        from outside came since.
        """
        if declared.deeds & ONCE_ONLY or not found.effect or not found.whole:
            return False
        latest = self._latest_outside()
        approved = (
            self.material.facts(declared, effective(call))
            for call in self.state.calls.values()
            if call.tool == tool and call.approved > latest and call.ended and call.error is None
        )
        return any(one.pattern == found.pattern and {*found.carries} <= {*one.carries} for one in approved)

    def _latest_outside(self) -> int:
        """The event that last brought a text from outside; 0 where none did."""
        numbered = (
            int(piece.name.rpartition(":")[2])
            for piece in self.material.pieces
            if piece.outside and (piece.name.isdigit() or piece.name.startswith("mem_"))
        )
        return max((self.told, *numbered))


def persons_words(root_id: str) -> list[tuple[int, str]]:
    """What the person said to the run at the root of a tree: (seq, words). Nobody else's words are theirs.

    A group's run that was made again is a root of its own; what it was asked for are an agent's words.
    """
    if Run.objects.filter(pk=root_id, kind=RunKind.GROUP).exists():
        return []
    said = RunEvent.objects.filter(run_id=root_id, type=EventType.MESSAGE_CREATED, payload__role="user")
    found = said.order_by("seq").values_list("seq", "payload")
    own = [one for one in found if not one[1].get("outside") and not one[1].get("chosen")]
    return [(seq, payload["content"]) for seq, payload in own]


def made_from(run_id: str) -> list[str]:
    """The run and those it repeats: it starts with what their agents had read."""
    found = [run_id]
    while True:
        created = RunEvent.objects.filter(run_id=found[-1], seq=1).values_list("payload", flat=True).first()
        origin = ((created or {}).get("forked_from") or {}).get("run")
        if origin is None:
            return found
        found.append(origin)


def goal_is_outside(run_id: str) -> bool:
    """Whether somebody other than the person wrote a run's goal: another, or the agent, which had offered it
    as an answer. Repeating the run does not change that.
    """
    said = RunEvent.objects.filter(run_id=run_id, type=EventType.MESSAGE_CREATED, payload__role="user")
    goal = said.order_by("seq").values_list("payload", flat=True).first() or {}
    return bool(goal.get("outside", not goal) or goal.get("chosen"))


def memories_shown(run_id: str, after: int) -> Iterator[tuple[int, str, str, Trust]]:
    """The memories that stood in the run's prompts: (seq of the reply, id, content, trust).

    What a curator wrote is the organization's; what an agent or a group left is worth no more than what its
    run had read, which nobody has checked, and what a program wrote is text from outside.
    """
    replies = RunEvent.objects.filter(
        run_id=run_id, seq__gt=after, type=EventType.MESSAGE_CREATED, payload__has_key="memories"
    ).order_by("-seq")
    listing = replies.values_list("seq", "created_at", "payload__recalled_at", "payload__memories")
    shown = {
        one["id"]: (seq, datetime.fromisoformat(copied) if copied else at)
        for seq, at, copied, listed in listing
        for one in listed
    }
    found = {memory.pk: memory for memory in Memory.objects.filter(pk__in=shown)} if shown else {}
    edited = MemoryRevision.objects.filter(memory__in=found, before__has_key="content") if found else ()
    before = [(one.memory_id, one.before["content"], one.created_at) for one in edited]
    marked = [one for one in edited if (one.before.get("metadata") or {}).get(BY_PROGRAM)]
    for pk, (seq, at) in shown.items():
        memory = found.get(pk)
        if memory is None:  # deleted since: what it said nobody knows, but that it was read
            yield seq, pk, "", "outside"
            continue
        programs = any(one.memory_id == pk and one.created_at > at for one in marked)
        programs = programs or bool(memory.metadata.get(BY_PROGRAM))
        curated = memory.type == MemoryType.ARCHIVAL and memory.source_run_id is None and not programs
        trust: Trust = "organization" if curated else "outside"
        said = [words for of, words, edited_at in before if of == pk and edited_at > at]
        yield from ((seq, pk, words, trust) for words in (memory.content, *said))


def earlier_turns(run_id: str) -> Iterator[tuple[str, str, Trust, list[tuple[int, str]]]]:
    """The session's earlier runs, as prompt and view carry them on: (run, goal, its trust, what was said).

    What was said is (seq, text): by the event that brought it a reader is told whose words they are.
    """
    for earlier in turns_beside(run_id).filter(pk__lt=run_id).order_by("-id")[:MOST_EARLIER]:
        own = not goal_is_outside(earlier.pk)
        calls = ToolCall.objects.filter(run=earlier, result__isnull=False).order_by("-id")[:MOST_EARLIER]
        brought = events_of_results(earlier.pk)
        results = [(brought.get(call.call_id, 2), canonical(call.result)) for call in calls]
        yield earlier.pk, earlier.goal, "user" if own else "outside", [(2, earlier.output or ""), *results]


def ended_meanwhile(run_id: str) -> int:
    """By which reply its agent had read how earlier turns ended that were at work when the run began; 0 where
    there are none. The reply that was being asked for just then may know nothing of it, the next one does.
    """
    began = Run.objects.filter(pk=run_id).values("created_at")
    earlier = turns_beside(run_id).filter(pk__lt=run_id, ended_at__gt=Subquery(began))
    ended = earlier.aggregate(last=Max("ended_at"))["last"]
    if ended is None:
        return 0
    since = {"type": EventType.MESSAGE_CREATED, "payload__role": "assistant", "created_at__gt": ended}
    replies = RunEvent.objects.filter(run_id=run_id, **since).order_by("seq")
    return max(replies.values_list("seq", flat=True)[:2], default=0)


def turns_beside(run_id: str) -> QuerySet[Run]:
    """The other runs of the run's session."""
    run = Run.objects.only("organization_id", "user_id", "project_id", "session_key").get(pk=run_id)
    if not run.session_key:
        return Run.objects.none()
    mine = {"organization_id": run.organization_id, "user_id": run.user_id, "project_id": run.project_id}
    found = Run.objects.filter(in_conversation(run.session_key), kind=RunKind.PERSONAL, **mine)
    return found.exclude(pk=run_id)


def events_of_results(run_id: str) -> dict[str, int]:
    """The event that brought each call's result, by call id."""
    ended = RunEvent.objects.filter(run_id=run_id, type=EventType.TOOL_COMPLETED)
    return dict(ended.values_list("payload__call_id", "seq"))


def _says_something(call: Call) -> bool:
    """Whether a failed call brought others' words: it was made, or somebody rejected it with a reason."""
    return bool(call.idempotency_key) or call.outcome == WaitOutcome.REJECTED


def _chosen(result: Any) -> bool:
    """Whether it is an answer that an agent had offered."""
    return isinstance(result, dict) and result.get("chosen") is True


def _told(call: Call) -> bool:
    """Whether its result is what somebody said of it after it was interrupted, and not the tool's own."""
    return call.wait_kind == WaitKind.REVIEW and call.payload.get("outcome") == "succeeded"


def effective(call: Call) -> dict[str, Any]:
    """The arguments a call ran with, or would."""
    return call.arguments if call.effective_arguments is None else call.effective_arguments
