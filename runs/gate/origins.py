"""Where the values of a call that waits for a decision came from, each with the passages it stands in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from common import redact
from memory.models import Memory
from policy.provenance.terms import Facts, Source, Traced
from runs.gate.admission import gate_of
from runs.gate.provenance import Gathered, of_run
from runs.models import Approval, RunEvent
from runs.models.choices import EventType
from runs.observe import showing

MEMORY = "mem_"  # begins the ids of memories
AROUND = 120  # characters shown on each side of a passage
LONGEST = 600  # of a passage


@dataclass(frozen=True)
class Passage:
    """A place a value stands in: a message or a result of the run, by the event that brought it."""

    run: str
    event: int
    field: str
    before: str
    marked: str
    after: str
    source: str
    how: str
    why: str


@dataclass(frozen=True)
class Origin:
    """One value of the call and where it came from: user, organization, outside or unknown."""

    argument: str
    value: str
    source: str
    steers: bool
    doubtful: bool
    why: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Origins:
    """Of a whole call: its values, whether the person's words ask for it, and what they ask for."""

    values: tuple[Origin, ...]
    asked_for: bool
    rights: tuple[str, ...]
    read_outside: bool


def origins(approval: Approval) -> Origins:
    """By what the run had heard and read when it asked. Two queries, and one for each result kept apart."""
    gathered = of_run(approval.run, gate_of(approval.run).declared, asked_at(approval))
    facts = gathered.facts(approval.tool_call.tool, approval.arguments)
    values = tuple(_origin(value, facts, gathered) for value in facts.values)
    rights = tuple(gathered.material.intent.as_list())
    return Origins(values, facts.asked_for, rights, facts.read_outside)


def shown(found: Origins, own: bool) -> Origins:
    """The same for a reader; `own`: the person the run works for. Others are shown no words of that person's
    memory beside a value, and nobody a secret. Two queries, for others.
    """
    passages = [passage for value in found.values for passage in value.passages]
    private = set() if own else _persons_own(passages)
    return replace(found, values=tuple(_shown(value, private) for value in found.values))


def _shown(value: Origin, private: set[Passage]) -> Origin:
    return replace(value, passages=tuple(_readable(one, private) for one in value.passages))


def _readable(passage: Passage, private: set[Passage]) -> Passage:
    if passage in private:
        return replace(passage, before="", marked=showing.PRIVATE, after="")
    before, marked, after = map(redact.shown, (passage.before, passage.marked, passage.after))
    return replace(passage, before=before, marked=marked, after=after)


def _persons_own(passages: Sequence[Passage]) -> set[Passage]:
    """Those that quote the person's memory: what a tool brought from it, or what stood in the prompt.

    A memory that is gone is shown to nobody.
    """
    events = RunEvent.objects.filter(
        run_id__in={one.run for one in passages}, seq__in={one.event for one in passages}
    ).values_list("run_id", "seq", "payload__tool")
    brought = {(run, seq) for run, seq, tool in events if showing.is_private(str(tool or ""))}
    remembered = {one.field for one in passages if one.field.startswith(MEMORY)}
    shared = set(Memory.objects.filter(pk__in=remembered, user=None).values_list("pk", flat=True))
    return {one for one in passages if (one.run, one.event) in brought or one.field in remembered - shared}


def asked_at(approval: Approval) -> int | None:
    """The event at which the call stopped."""
    stops = RunEvent.objects.filter(
        run=approval.run_id,
        type=EventType.TOOL_REQUIRES_APPROVAL,
        payload__call_id=approval.tool_call.call_id,
    )
    seq: int | None = stops.order_by("-seq").values_list("seq", flat=True).first()
    return seq


def _origin(value: Traced, facts: Facts, gathered: Gathered) -> Origin:
    doubtful = value in facts.doubtful
    passages = tuple(_passages(value, gathered))
    return Origin(value.path, value.value, value.trust, value.steers, doubtful, value.why, passages)


def _passages(value: Traced, gathered: Gathered) -> Iterator[Passage]:
    for source in value.sources:
        text = gathered.material.passage(source)
        run, _, seq = source.piece.rpartition(":")
        start, end = source.start, min(source.end, source.start + LONGEST)
        before, marked, _ = redact.pieces(text, start, end)
        after = redact.pieces(text, source.end, source.end)[2]
        remembered = run.startswith(MEMORY)  # the event is the reply in whose prompt it stood
        yield Passage(
            run=gathered.run_id if remembered or not run else run,
            event=int(seq),
            field=run if remembered else source.field,
            before=_cut(before, last=True),
            marked=marked,
            after=_cut(after, last=False),
            source=source.trust,
            how=_how(source),
            why=source.why,
        )


def _how(source: Source) -> str:
    return "" if source.how == "whole" else source.how


def _cut(text: str, last: bool) -> str:
    if len(text) <= AROUND:
        return text
    return f"…{text[-AROUND:]}" if last else f"{text[:AROUND]}…"
