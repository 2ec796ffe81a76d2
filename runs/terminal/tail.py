"""Follow a tree of runs in the database."""

from dataclasses import dataclass, field
from typing import Any

from common.db import from_json, rows
from runs.log import log
from runs.models.choices import ACTIVE, TERMINAL, WAITS_FOR_A_PERSON, EventType, RunStatus

RUNS = """
SELECT r.id, r.depth, r.kind, r.status, r.waiting_reason, r.last_seq, r.output, r.error, g.name
FROM runs_run r LEFT JOIN groups_group g ON g.id = r.group_id
WHERE r.root_id = %s ORDER BY r.depth, r.id
"""


@dataclass(frozen=True)
class Seen:
    """A run of the tree as its row stands."""

    id: str
    depth: int
    kind: str
    status: str
    waiting_reason: str | None
    last_seq: int
    output: str | None
    error: dict[str, Any] | None
    group: str | None


@dataclass(frozen=True)
class Heard:
    """An event, the run it is of, and the name of the agent it is about."""

    run: Seen
    event: log.Event
    who: str


@dataclass
class Tail:
    """Reads what is new in the whole tree. Not safe for several threads at once."""

    root_id: str
    runs: dict[str, Seen] = field(default_factory=dict)
    _read: dict[str, int] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def new(self) -> list[Heard]:
        """The events since the last time, in the order in which they happened."""
        self.runs = {found[0]: _seen(found) for found in rows(RUNS, [self.root_id])}
        events = [
            (seen, event)
            for seen in self.runs.values()
            if seen.last_seq > self._read.get(seen.id, 0)
            for event in log.read(seen.id, after=self._read.get(seen.id, 0))
        ]
        for seen, event in events:
            self._read[seen.id] = event.seq
            if event.type == EventType.RUN_CREATED:
                self._names |= {member["agent"]: member["role"] for member in event.payload["members"]}
        events.sort(key=lambda pair: (pair[1].created_at, pair[0].depth, pair[1].seq))
        return [Heard(seen, event, self._names.get(event.agent, "")) for seen, event in events]

    @property
    def root(self) -> Seen:
        return self.runs[self.root_id]

    @property
    def ended(self) -> bool:
        return self.root.status in TERMINAL

    @property
    def waits_for_a_person(self) -> str | None:
        """approval, input or review when nothing in the tree goes on without a person, else None."""
        kinds = [kind.value for kind in WAITS_FOR_A_PERSON]
        open_ = [seen for seen in self.runs.values() if seen.status in ACTIVE]
        if any(seen.status != RunStatus.WAITING or seen.waiting_reason == "timer" for seen in open_):
            return None
        return next((seen.waiting_reason for seen in reversed(open_) if seen.waiting_reason in kinds), None)


def _seen(found: Any) -> Seen:
    *plain, error, group = found
    values: list[Any] = [*plain, from_json(error), group]
    return Seen(*values)
