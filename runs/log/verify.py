"""Check a run's log: the chain of digests, and that the row says what the events add up to.

It shows that something was changed here and there. Whoever rewrites a whole log, digests and row
included, goes unseen: keep `last_digest` somewhere else to notice that too.
"""

from dataclasses import dataclass
from typing import Any

from common.db import from_json, row, rows
from runs.log import log, months
from runs.log.state import State, apply
from runs.models.choices import EventType, RunStatus

ROW = "SELECT last_seq, last_digest, status, output, error, pruned_at FROM runs_run WHERE id = %s"
EVENTS = """
SELECT seq, type, agent, payload, created_at, digest FROM runs_runevent
WHERE run_id = %s AND seq BETWEEN %s AND %s ORDER BY seq
"""
BEYOND = "SELECT min(seq) FROM runs_runevent WHERE run_id = %s AND seq > %s"
PIECE = 1_000  # events read at once

ENDED = {
    EventType.RUN_COMPLETED.value: RunStatus.COMPLETED,
    EventType.RUN_FAILED.value: RunStatus.FAILED,
    EventType.RUN_CANCELLED.value: RunStatus.CANCELLED,
}
ENDS = frozenset(ended.value for ended in ENDED.values())
GOES_ON = frozenset({RunStatus.PENDING.value, RunStatus.RUNNING.value})  # a lost lease leaves no event


class RunUnknown(LookupError):
    """No run has this id."""


@dataclass(frozen=True)
class Verdict:
    """What was found. `broken` is empty when all is well; `seq` is the first event that is wrong.

    Of a `pruned` run the chain, the order and the kinds of its events were checked, by the digests kept. Of
    one whose events are `gone` with their month it is only known that it had ended and been pruned.
    """

    run_id: str
    events: int
    status: str
    broken: str = ""
    seq: int | None = None
    pruned: bool = False
    gone: bool = False


@dataclass
class Sum:
    """What the events add up to, as far as the row repeats it."""

    state: State
    statuses: frozenset[str] = GOES_ON
    output: str | None = None
    error: Any = None

    def add(self, event: log.Event) -> None:
        apply(self.state, event)
        if event.type == EventType.RUN_WAITING:
            self.statuses = frozenset({RunStatus.WAITING.value})
        elif event.type in (EventType.WAIT_COMPLETED, EventType.RUN_STARTED, EventType.RUN_RESUMED):
            self.statuses = GOES_ON
        elif event.type in ENDED:
            self.statuses = frozenset({ENDED[EventType(event.type)].value})
            self.output, self.error = event.payload.get("output"), event.payload.get("error")


def verify(run_id: str) -> Verdict:
    """Recompute the chain and fold the log again. Raises RunUnknown. Other workers may go on meanwhile."""
    found = row(ROW, [run_id])
    if found is None:
        raise RunUnknown(run_id)
    last_seq, last_digest, status, output, error, pruned_at = found
    added, digest = Sum(State()), ""
    for seq in range(1, last_seq + 1, PIECE):
        there = rows(EVENTS, [run_id, seq, min(seq + PIECE - 1, last_seq)])
        for expected, (at, type, agent, payload, created_at, kept) in enumerate(there, seq):
            if at != expected:
                return Verdict(run_id, last_seq, status, f"event {expected} is missing", expected)
            event = log.Event(at, type, agent, from_json(payload), created_at)
            if event.pruned and pruned_at is None:
                words = f"event {at} ({type}) is pruned, its run is not"
                return Verdict(run_id, last_seq, status, words, at)
            digest = log.chain(digest, event)
            if digest != kept:
                return Verdict(
                    run_id, last_seq, status, f"event {at} ({type}) is not what its digest says", at
                )
            try:
                added.add(event)
            except (LookupError, TypeError, ValueError) as problem:
                words = f"event {at} ({type}) does not follow from those before: {problem!r}"
                return Verdict(run_id, last_seq, status, words, at)
        if not there and seq == 1 and pruned_at is not None and status in ENDS and months.is_gone(run_id):
            return Verdict(run_id, 0, status, _beyond(run_id, last_seq, status), pruned=True, gone=True)
        if len(there) < min(PIECE, last_seq - seq + 1):
            lost = seq + len(there)
            return Verdict(run_id, last_seq, status, f"event {lost} is missing", lost)
    if pruned_at is not None:  # what the row repeated is gone from both
        output, error = added.output, added.error
    wrong = _row_differs(added, digest, last_digest, status, output, from_json(error))
    broken = wrong or _beyond(run_id, last_seq, status)
    return Verdict(run_id, last_seq, status, broken, pruned=pruned_at is not None)


def _row_differs(
    added: Sum, digest: str, last_digest: str, status: str, output: str | None, error: Any
) -> str:
    if digest != last_digest:
        return "the run's last_digest is not that of its last event"
    if status not in added.statuses:
        return f"the run's status is {status}, its events say {' or '.join(sorted(added.statuses))}"
    if output != added.output:
        return "the run's output is not that of its events"
    if error != added.error:
        return "the run's error is not that of its events"
    return ""


def _beyond(run_id: str, last_seq: int, status: str) -> str:
    """An ended run has no further events; one that goes on may have got some meanwhile."""
    if status not in ENDS:
        return ""
    (further,) = row(BEYOND, [run_id, last_seq])
    return f"event {further} stands behind the end of the run" if further else ""
