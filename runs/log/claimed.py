"""A run that a worker has claimed: its facts, its state, and the transaction it writes in."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from common.current import working_for
from common.db import from_json, row
from runs.log import log as run_log
from runs.log.log import Event, RunLog
from runs.log.state import State, apply, fold
from runs.models.choices import EventType

STATEMENT_TIMEOUT_MS = 30_000  # of each statement of a step, a tool's among them
KEPT_SECONDS = 30
KEPT_RUNS = 100

FULL_NAME = "NULLIF(concat_ws(' ', NULLIF(u.first_name, ''), NULLIF(u.last_name, '')), '')"
VIEW = """(SELECT v.id FROM memory_contextview v
        WHERE r.session_key <> '' AND v.organization_id = r.organization_id AND v.owner = r.agent_instance_id
          AND v.project_id = r.project_id AND v.session_key = r.session_key)"""
# By the field of ClaimedRun, what is read for it.
READ = {
    **{
        name: f"r.{name}" for name in ("organization_id", "project_id", "user_id", "parent_run_id", "root_id")
    },
    **{name: f"r.{name}" for name in ("depth", "kind", "group_id", "session_key", "created_at")},
    "delegated": "r.delegated_permissions",
    "roles_above": "r.roles_above",
    "groups_above": "r.groups_above",
    "past_deadline": "clock_timestamp() >= r.deadline",
    "person": f"COALESCE({FULL_NAME}, u.username)",
    "organization_name": "o.name",
    "project_name": "p.name",
    "group_name": "COALESCE(g.name, '')",
    "preferences": "a.preferences",
    "view_id": VIEW,
}
FACTS = f"""
SELECT {", ".join(READ.values())}
FROM runs_run r
JOIN {get_user_model()._meta.db_table} u ON u.id = r.user_id
JOIN groups_organization o ON o.id = r.organization_id
JOIN groups_project p ON p.id = r.project_id
LEFT JOIN groups_group g ON g.id = r.group_id
LEFT JOIN groups_agentinstance a ON a.id = r.agent_instance_id
WHERE r.id = %s
"""  # noqa: S608 - the name of Django's user table


@dataclass
class ClaimedRun:
    """One claim of one run, from taking it to letting go of it.

    `log` is there inside `step` only. `state` follows the log, also of what is not flushed yet.
    """

    run_id: str
    attempt: int
    organization_id: str
    project_id: str
    user_id: int
    parent_run_id: str | None
    root_id: str
    depth: int
    kind: str
    group_id: str | None
    session_key: str
    delegated: dict[str, Any] | None
    roles_above: list[str] | None
    groups_above: list[str] | None
    created_at: Any
    past_deadline: bool
    person: str
    organization_name: str
    project_name: str
    group_name: str
    preferences: dict[str, Any] | None
    view_id: str | None  # of the agent's working memory in this session, if it has been stored
    state: State = field(default_factory=State)
    log: RunLog | None = None
    parent: RunLog | None = None
    born: list[RunLog] = field(default_factory=list)  # children made in this step
    before: list[RunLog] = field(default_factory=list)  # what the run that handed on to this one wrote
    trusting: bool = False  # tools of this step have no savepoints; whoever takes it repeats it on ToolBroke
    gate: Any = None  # of the transaction at hand, see dispatch.open_gate
    cache: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, run_id: str, attempt: int) -> "ClaimedRun":
        """Read a claimed run's facts and fold its log."""
        claimed = cls.in_state(run_id, State(), attempt)
        fold(run_log.read(run_id), claimed.state)
        return claimed

    @classmethod
    def of(cls, log: RunLog) -> "ClaimedRun":
        """The run whose row this transaction has locked and claimed, as this process last knew it or
        else read from its row; `writing` brings its state up to date.
        """
        return kept.take(log) or cls.in_state(log.id, State(), log.attempt)

    def of_child(self, log: RunLog) -> "ClaimedRun":
        """The claim of a run made in this step and not flushed yet: nothing of it has to be read."""
        assert log.unborn is not None  # noqa: S101
        child = replace(
            self,
            run_id=log.id,
            attempt=log.attempt,
            parent_run_id=log.parent_run_id,
            depth=log.depth,
            kind=log.kind,
            group_id=log.unborn["group_id"],
            session_key="",
            delegated=log.unborn["delegated_permissions"],
            roles_above=log.unborn["roles_above"],
            groups_above=log.unborn["groups_above"],
            created_at=log.unborn["created_at"],
            past_deadline=False,
            group_name=log.appended[0].payload.get("group", ""),
            preferences=None,
            view_id=None,
            state=State(),
            log=None,
            parent=None,
            born=[],
            before=[],
            gate=None,
            cache={},
        )
        fold(log.appended, child.state)
        return child

    @classmethod
    def in_state(cls, run_id: str, state: State, attempt: int = 0) -> "ClaimedRun":
        """The run in this state; without an attempt it can be looked at and not written to."""
        facts = dict(zip(READ, row(FACTS, [run_id]), strict=True))
        for name in ("delegated", "roles_above", "groups_above", "preferences"):
            facts[name] = from_json(facts[name])
        return cls(run_id, attempt, **facts, state=state)

    @contextmanager
    def step(self, lock_parent_too: bool = False) -> Iterator[RunLog]:
        """One transaction of this claim: the row locked, the fence checked, the state up to date.

        Raises Fenced when another worker holds the run now or it has ended. What was appended is
        written when the block ends well; when it raises, the state is folded again.
        """
        with transaction.atomic():
            above = [self.parent_run_id] if lock_parent_too and self.parent_run_id else []
            *parents, log = RunLog.lock_all([*above, self.run_id], STATEMENT_TIMEOUT_MS)
            self.check_fence(log)
            with self.writing(log, *parents):
                yield log

    @contextmanager
    def writing(self, log: RunLog, parent: RunLog | None = None) -> Iterator[None]:
        """The block may write to these locked logs; they are flushed when it ends well."""
        try:
            self.log, self.parent, self.gate = log, parent, None
            with self.at_work():
                self._catch_up()
                yield
                self.flush()
        except BaseException:
            self.state = State()
            raise
        finally:
            self.log = self.parent = None
            self.born, self.before = [], []

    def at_work(self) -> AbstractContextManager[None]:
        """Inside, what is logged and traced is this run's."""
        return working_for(self.run_id, self.root_id, self.organization_id)

    def check_fence(self, log: RunLog) -> None:
        """Raises Fenced unless this claim may write the run."""
        log.check_fence(self.attempt)

    @property
    def logs(self) -> list[RunLog]:
        """All that this step writes to."""
        return [log for log in (*self.before, *self.born, self.parent, self.log) if log]

    def flush(self) -> None:
        """Write now what was appended to the run, to its parent and to its new children (inside `step`)."""
        run_log.flush(*self.logs)

    def flush_before(self) -> None:
        """Write now what the run that handed on to this one wrote: somebody may be about to read it."""
        run_log.flush(*self.before)

    def append(self, type: EventType, payload: dict[str, Any], agent: str = "") -> Event:
        """Append to the log and to the state at once."""
        assert self.log is not None  # noqa: S101
        event = self.log.append(type, payload, agent)
        self.absorb()
        return event

    def absorb(self) -> None:
        """Take in what actions appended to the log."""
        assert self.log is not None  # noqa: S101
        for event in self.log.appended:
            if event.seq > self.state.seq:
                apply(self.state, event)

    def _catch_up(self) -> None:
        assert self.log is not None  # noqa: S101
        if self.log.stored_seq > self.state.seq:
            fold(run_log.read(self.run_id, after=self.state.seq), self.state)
        self.absorb()


class Kept:
    """Runs that this process has lately let go of, so that it need not read and fold them again.

    A log only grows: what was folded of it stays true, and `writing` reads what has come since. Facts and
    memories may be as old as KEPT_SECONDS. Runs of a session are read again: others share it.
    """

    def __init__(self) -> None:
        self._runs: OrderedDict[str, tuple[float, ClaimedRun]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, claimed: ClaimedRun) -> None:
        """Keep the run once this transaction has committed; at once where there is none."""
        if not claimed.session_key:
            transaction.on_commit(lambda: self._put(claimed))

    def take(self, log: RunLog) -> ClaimedRun | None:
        """The run as it was kept, for its new attempt, if it is here and young."""
        with self._lock:
            at, claimed = self._runs.pop(log.id, (0.0, None))
        if claimed is None or time.monotonic() - at > KEPT_SECONDS or claimed.state.seq > log.stored_seq:
            return None
        claimed.attempt = log.attempt
        claimed.past_deadline = log.deadline is not None and log.now >= log.deadline
        return claimed

    def _put(self, claimed: ClaimedRun) -> None:
        for name in ("prompt", "sleep"):
            claimed.cache.pop(name, None)
        with self._lock:
            self._runs[claimed.run_id] = time.monotonic(), claimed
            while len(self._runs) > KEPT_RUNS:
                self._runs.popitem(last=False)


kept = Kept()
