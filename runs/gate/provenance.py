"""Where the values of a run's calls came from, by the run's own log: its messages and results, in order.

The weighing is policy/provenance; here is what a run has heard and read. Gathered once a claim, and only
when a rule or a profile asks.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf

from common import current, turns
from common.canonical import canonical
from common.db import Busy
from memory.models import Memory, MemoryRevision, MemoryType
from memory.write import BY_PROGRAM
from policy.provenance.infer import Declaration
from policy.provenance.terms import Facts, Trust
from policy.provenance.trace import Material
from runs.gate import secrets
from runs.log import log
from runs.log.state import PAGE, USER, Call, Said, State, fold, words_put_in
from runs.models import Run, RunEvent, ToolCall, in_conversation
from runs.models.choices import EventType, RunKind, WaitKind, WaitOutcome

MOST_EARLIER = 20  # runs of a session
MOST_RESULTS = 400  # of calls of theirs, the latest
SEARCH = "memory_search"  # the tool
MUCH = 1_000_000  # characters, half a second or more: of more a web process takes in few runs' at once
SESSION = ("organization_id", "user_id", "project_id")
# Where a run names no conversation, it is its own id by which later runs go on with it.
CONVERSATION = Coalesce(NullIf("session_key", Value("")), "pk")
OTHERS = ("outside", "chosen")  # marks of words that are not the person's
MARKS = ("chosen", "copied")  # of words of the person's that are not theirs alone (runs/actions/signal.py)
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
        self.known: set[str] = set()  # calls and words of other runs whose secrets are known
        self.seq = 0
        self.characters = 0  # that were taken in
        self.turn: dict[str, int] | None = None  # of a web process's, where there is much to take in
        self.personal = run_id == root_id and state.kind == RunKind.PERSONAL
        if state.external:  # nobody knows what its agent has read elsewhere
            self.material.overhear("1", "")
        if not self.personal:
            for seq, words, copied in persons_words(root_id):
                self.material.hear(f"{root_id}:{seq}", words, copied)

    def facts(self, tool: str, arguments: Mapping[str, Any]) -> Facts:
        """Where the values of a call came from. Raises Busy in a web process that weighs much for others."""
        try:
            self.catch_up()
            return self.material.facts(self.declare(tool), arguments)
        finally:
            turns.give_back(self.turn or {})
            self.turn = None

    def _much(self, found: Any) -> None:
        """Take a turn once so much is taken in that others would wait for the thread. Raises Busy."""
        request = current.request()
        if request is None or self.turn is not None:
            return
        self.characters += len(found if isinstance(found, str) else canonical(found))
        if self.characters < MUCH:
            return
        limits = turns.of_person(turns.person_of(request))
        if not turns.take(limits):
            raise Busy("what this call is weighed by is much, and so is what others ask for just now")
        self.turn = limits

    def catch_up(self) -> None:
        """Take in what the log brought since the last time."""
        memories: set[str] = set()  # that the agent has looked for or been shown
        for seq, entry in sorted(self._new(), key=lambda pair: pair[0]):
            if isinstance(entry, str):
                self.material.overhear(str(seq), entry)
            elif isinstance(entry, Said):
                own = self.personal and not entry.outside
                if own and not (entry.chosen and self._steered()):
                    self.material.hear(str(seq), entry.content, entry.chosen or entry.copied)
                else:
                    self.material.overhear(str(seq), entry.content)
            elif entry.error is None:
                declared, arguments = self.declare(entry.tool), effective(entry)
                result, told = self._result(entry), _told(entry) or _repeated(entry, declared)
                self._much(result)
                chosen, copied = (isinstance(result, dict) and result.get(name) is True for name in MARKS)
                if told or (chosen and self._steered()):
                    declared = replace(declared, output_trust="outside", fields={}, keeps=False)
                by = "" if told else entry.tool  # no record of the tool's, by which a condition may ask
                self.material.read(str(seq), declared, arguments, result, by, chosen or copied)
                memories |= _memories_in(by, result)
            else:
                self.material.overhear(str(seq), canonical(entry.error))
        roots: set[str] = set()
        if first := self.seq == 0:
            roots |= self._begin()
        elif self.run_id != self.root_id or self.state.children:
            roots.add(self.root_id)
        if self._replied():
            memories |= self._recall()
            if self.personal:
                roots |= self._look_beside()
        roots |= conversation({*left_by(memories), *([self.root_id] if first else [])})
        if roots:
            self._know_trees(roots)
        self.seq = self.state.seq

    def _know_trees(self, roots: Collection[str]) -> None:
        """The secrets that other runs of these trees have heard and read: goals, results, files, earlier
        turns and memories hand them on without what they were called where they stood.
        """
        # in two steps, each by an index: joined, all calls of all runs may be read
        others = [*Run.objects.filter(root_id__in=roots).exclude(pk=self.run_id).values_list("pk", flat=True)]
        for pk, found in secrets.of_calls(others, self.known, self.declare, self._much):
            self.known.add(pk)
            self.material.keep_secrets(found)
        words = ((f"{run_id}:{seq}", text) for run_id, seq, text in told_by_others(others))
        for name, text in (*words, *remembered(others)):
            if name not in self.known:
                self._much(text)
                self.known.add(name)
                self.material.know(Declaration(), text)

    def _recall(self) -> set[str]:
        """Take in the memories of the prompts since the last time. The same words again are nothing new.
        Returns their ids.
        """
        shown: set[str] = set()
        for seq, memory_id, text, trust in memories_shown(self.run_id, self.seq):
            self._take_in(memory_id, f"{memory_id}:{seq}", text, trust)
            shown.add(memory_id)
        return shown

    def _look_beside(self) -> set[str]:
        """Take in what runs of the session that are at work at the same time have brought: they write into
        the view that this one's prompts show, and their outputs stand in these. Returns their ids.
        """
        beside = runs_beside(self.run_id, self._replies())
        for name, text, trust in words_of(beside):
            self._take_in(name, name, text, trust)
        return {run.pk for run in beside}

    def _take_in(self, key: str, name: str, text: str, trust: Trust) -> None:
        """Words of before, unless they have been taken in as `key`."""
        if (key, text, trust) not in self.recalled:
            self._much(text)
            self.recalled.add((key, text, trust))
            self.material.recall(name, text, trust)

    def _replies(self) -> list[Said]:
        return [said for said in self.state.messages if said.author != USER]

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
            or any(earlier(run_id).exists() for run_id in made_from(self.run_id))
        )

    def _begin(self) -> set[str]:
        """Take in what stands in the first prompt beside the goal: its context, the parent's pages, earlier
        turns. Returns the ids of these.
        """
        if self.state.context:
            self.material.overhear("1", self.state.context)
        for page in self.state.inherited:
            self.material.overhear("1", "\n".join(str(page.get(part, "")) for part in PAGE))
        made = made_from(self.run_id) if self.personal else []
        if not all_known(made[1:]):
            self.material.overhear("1", "")
        copied = [said for said in self._replies() if said.seq <= self.state.copied]
        turns = [turn for of in made for turn in earlier(of)[:MOST_EARLIER]]
        turns += [turn for of in made[1:] for turn in runs_beside(of, copied)]
        for name, text, trust in words_of(turns):
            self._take_in(name, name, text, trust)
        return {turn.pk for turn in turns}

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


def persons_words(root_id: str) -> list[tuple[int, str, bool]]:
    """What the person said to the run at the root of a tree: (seq, words, whether they repeat an address that
    somebody else named first). Nobody else's words are theirs.

    A group's run that was made again is a root of its own; what it was asked for are an agent's words.
    """
    if Run.objects.filter(pk=root_id, kind=RunKind.GROUP).exists():
        return []
    said = RunEvent.objects.filter(run_id=root_id, type=EventType.MESSAGE_CREATED, payload__role="user")
    found = said.order_by("seq").values_list("seq", "payload")
    own = [one for one in found if not one[1].get("outside") and not one[1].get("chosen")]
    return [(seq, payload["content"], bool(payload.get("copied"))) for seq, payload in own]


def conversation(root_ids: Iterable[str]) -> set[str]:
    """The roots of these trees, of those whose runs they repeat, and the latest turns of their sessions."""
    found: set[str] = set()
    new = set(root_ids)
    while new:
        found |= new
        again = RunEvent.objects.filter(run_id__in=new, seq=1, payload__has_key="forked_from")
        origins = [created["forked_from"]["run"] for created in again.values_list("payload", flat=True)]
        near = set(Run.objects.filter(pk__in=origins).values_list("root_id", flat=True))
        for session in Run.objects.filter(pk__in=new).values(*SESSION, key=CONVERSATION).distinct():
            key = session.pop("key")
            latest = turns_of(key, session).order_by("-id")[:MOST_EARLIER]
            near |= set(latest.values_list("pk", flat=True))
        new = near - found
    return found


def made_from(run_id: str) -> list[str]:
    """The run and those it repeats: it starts with what their agents had read."""
    found = [run_id]
    while True:
        created = RunEvent.objects.filter(run_id=found[-1], seq=1).values_list("payload", flat=True).first()
        origin = ((created or {}).get("forked_from") or {}).get("run")
        if origin is None:
            return found
        found.append(origin)


def all_known(run_ids: list[str]) -> bool:
    """Whether it is known of each of these runs what it was made from: not of one that was pruned."""
    created = RunEvent.objects.filter(run_id__in=run_ids, seq=1).exclude(payload__has_key=log.PRUNED)
    return not run_ids or created.count() == len(run_ids)


def marks_of_goal(run_id: str) -> dict[str, bool]:
    """What the log is to say of a run's goal when it is asked once more: what was not the person's alone does
    not become theirs by it, wherever the new run stands. A group's goal is an agent's.
    """
    goal = _goals([run_id]).get(run_id)
    if (
        goal is None
        or any(map(goal.get, OTHERS))
        or Run.objects.filter(pk=run_id, kind=RunKind.GROUP).exists()
    ):
        return {"outside": True}
    return {"copied": True} if goal.get("copied") else {}


def goals_outside(run_ids: Iterable[str], marks: Collection[str] = OTHERS) -> set[str]:
    """Those of the runs whose goal somebody other than the person wrote: another, or the agent, which had
    offered it as an answer. Repeating a run does not change that.
    """
    own = {pk for pk, goal in _goals(run_ids).items() if not any(map(goal.get, marks))}
    return {*run_ids} - own


def _goals(run_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The message that each of the runs began with."""
    said = RunEvent.objects.filter(run_id__in=run_ids, type=EventType.MESSAGE_CREATED, payload__role="user")
    return dict(said.order_by("run_id", "seq").distinct("run_id").values_list("run_id", "payload"))


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


def earlier(run_id: str) -> QuerySet[Run]:
    """The session's earlier runs, the latest first."""
    run, session = session_of(run_id)
    return session.filter(pk__lt=run_id).order_by("-id") if run.session_key else session.none()


def runs_beside(run_id: str, replies: Sequence[Said]) -> list[Run]:
    """The session's runs that were at work while this one was, up to the last of these replies."""
    run, session = session_of(run_id)
    asked = [said.seq for said in replies] if run.session_key else ()
    told = RunEvent.objects.filter(run_id=run_id, seq__in=asked).order_by("-seq")
    until = told.values_list("created_at", flat=True).first()
    if until is None:
        return []
    while_at_work = Q(ended_at=None) | Q(ended_at__gt=run.created_at)
    others = session.filter(while_at_work, created_at__lt=until).order_by("-id")
    before, since = others.filter(pk__lt=run_id), others.filter(pk__gt=run_id)
    return [*before[:MOST_EARLIER], *since[:MOST_EARLIER]]


def session_of(run_id: str) -> tuple[Run, QuerySet[Run]]:
    """The run, and the runs of its session whose agent goes on with it."""
    run = Run.objects.only(*SESSION, "session_key", "created_at").get(pk=run_id)
    turns = turns_of(run.session_key, {name: getattr(run, name) for name in SESSION})
    return run, turns.filter(kind=RunKind.PERSONAL)


def turns_of(key: str, whose: Mapping[str, Any]) -> QuerySet[Run]:
    """The runs of the conversation with this key, a group's that was made again among them: its person reads
    it there. `whose`: the values of SESSION.
    """
    return Run.objects.filter(in_conversation(key), **whose)


def words_of(runs: Iterable[Run]) -> Iterator[tuple[str, str, Trust]]:
    """What runs were asked, and what they have read and said, as prompt and view carry it on: (name, text,
    trust). By its name, the run and the event that brought it, a reader is told whose words they are.
    """
    found = {run.pk: run for run in runs}
    outside = goals_outside(found, ("outside", *MARKS))
    for pk, run in found.items():
        yield f"{pk}:2", run.goal, "outside" if pk in outside else "user"
        yield f"{pk}:2", run.output or "", "outside"
    for pk, seq, text in (*results(found), *told_by_others(found)):
        yield f"{pk}:{seq}", text, "outside"


def results(run_ids: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """The latest results of the runs' calls, by the events that brought them: (run, seq, text)."""
    calls = ToolCall.objects.filter(run_id__in=run_ids, result__isnull=False)
    ended = RunEvent.objects.filter(run_id__in=run_ids, type=EventType.TOOL_COMPLETED)
    brought = {(run, call): seq for run, call, seq in ended.values_list("run_id", "payload__call_id", "seq")}
    for call in calls.order_by("-id")[:MOST_RESULTS]:
        yield call.run_id, brought.get((call.run_id, call.call_id), 2), canonical(call.result)


def told_by_others(run_ids: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """What others than its person have said to a run, in a file, an error and the reason of a rejection, too,
    or put before its agent: (run, seq, words).
    """
    contexts = Run.objects.filter(pk__in=run_ids).exclude(context="").values_list("pk", "context")
    yield from ((run_id, 1, context) for run_id, context in contexts)
    told = Q(type=EventType.MESSAGE_CREATED, payload__outside=True)
    told |= Q(type=EventType.CONTEXT_CHANGED, payload__has_key="by")
    told |= Q(type__in=(EventType.TOOL_FAILED, EventType.TOOL_REJECTED))
    events = RunEvent.objects.filter(told, run_id__in=run_ids).order_by("run_id", "seq")
    for run_id, seq, payload in events.values_list("run_id", "seq", "payload"):
        if "changes" in payload:
            yield run_id, seq, words_put_in(payload["changes"])
        else:
            yield run_id, seq, payload["content"] if "content" in payload else canonical(payload.get("error"))


def remembered(run_ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """What the memories in these runs' prompts say, and said before they were edited: (id, text)."""
    replies = RunEvent.objects.filter(run_id__in=run_ids, type=EventType.MESSAGE_CREATED)
    listed = replies.filter(payload__has_key="memories").values_list("payload__memories", flat=True)
    yield from said_by_memories({one["id"] for listing in listed for one in listing})


def left_by(memory_ids: Collection[str]) -> set[str]:
    """The roots of the trees that left these memories, or others that joined them."""
    runs: set[str | None] = set()
    listed = Memory.objects.filter(pk__in=memory_ids).values_list("source_run_id", "metadata__sources")
    for run_id, joined in listed:
        runs |= {run_id, *(one.get("source_run_id") for one in joined or ())}
    return {*Run.objects.filter(pk__in=runs - {None}).values_list("root_id", flat=True)}


def said_by_memories(ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """What these memories say, and said before they were edited: (id, text)."""
    yield from Memory.objects.filter(pk__in=ids).values_list("pk", "content")
    edited = MemoryRevision.objects.filter(memory_id__in=ids, before__has_key="content")
    yield from ((str(pk), text) for pk, text in edited.values_list("pk", "before__content"))


def _memories_in(tool: str, result: Any) -> set[str]:
    """The memories in a call's result."""
    return {one["id"] for one in result["results"]} if tool == SEARCH and isinstance(result, dict) else set()


def _says_something(call: Call) -> bool:
    """Whether a failed call brought others' words: it was made, or somebody rejected it with a reason."""
    return bool(call.idempotency_key) or call.outcome == WaitOutcome.REJECTED


def _told(call: Call) -> bool:
    """Whether its result is what somebody said of it after it was interrupted, and not the tool's own."""
    return call.wait_kind == WaitKind.REVIEW and call.payload.get("outcome") == "succeeded"


def _repeated(call: Call, declared: Declaration) -> bool:
    """Whether its result is what the person has answered, which a program has repeated with the run."""
    return call.outside and declared.output_trust == USER


def effective(call: Call) -> dict[str, Any]:
    """The arguments a call ran with, or would."""
    return call.arguments if call.effective_arguments is None else call.effective_arguments
