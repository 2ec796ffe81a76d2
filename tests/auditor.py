"""What must hold of every run whatever happened to it, asked of the database and of the outside witness.

`audit` may be asked at any moment: each of its rules holds between any two transactions. `unrest` and
`audit_effects` are for the end, when everything that could go on has gone on.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any

from django.db import connection, transaction

from common.db import execute, rows
from runs.log import log as run_log
from runs.log import state as phases
from runs.log.state import State, fold
from runs.log.verify import verify
from runs.models import Run, RunEvent, ToolCall
from runs.models.choices import ACTIVE, TERMINAL, CallStatus

ENDED = f"({', '.join(repr(status.value) for status in sorted(TERMINAL))})"
LIVES = f"({', '.join(repr(status.value) for status in sorted(ACTIVE))})"

# Each finds the ids of what breaks the rule. r: runs; e: events; w: waits; c: calls; a: approvals.
RULES = {
    "an ended run waits for nothing": f"""
        SELECT w.id FROM runs_run r JOIN runs_wait w ON w.run_id = r.id
        WHERE r.status IN {ENDED} AND w.resolved_at IS NULL""",
    "an ended run has no pending approval": f"""
        SELECT a.id FROM runs_run r JOIN runs_approval a ON a.run_id = r.id
        WHERE r.status IN {ENDED} AND a.status = 'pending'""",
    "an ended run has no call that is under way": f"""
        SELECT c.id FROM runs_run r JOIN runs_toolcall c ON c.run_id = r.id
        WHERE r.status IN {ENDED} AND c.status IN ('requested', 'waiting', 'running')""",
    "a waiting run has something to wait for": """
        SELECT r.id FROM runs_run r WHERE r.status = 'waiting' AND NOT EXISTS (SELECT FROM runs_wait w
            WHERE w.run_id = r.id AND w.resolved_at IS NULL AND w.kind <> 'signal')""",
    "whatever is resolved wakes the run": """
        SELECT r.id FROM runs_run r WHERE r.status = 'waiting'
        AND (SELECT max(seq) FROM runs_runevent e WHERE e.run_id = r.id AND e.type = 'wait.completed')
            > (SELECT max(seq) FROM runs_runevent e WHERE e.run_id = r.id AND e.type = 'run.waiting')""",
    "no parent waits for a child that has ended": f"""
        SELECT w.run_id FROM runs_wait w JOIN runs_run r ON r.id = w.child_run_id
        WHERE w.resolved_at IS NULL AND r.status IN {ENDED}""",
    "a living child is waited for": f"""
        SELECT r.id FROM runs_run r WHERE r.status IN {LIVES} AND r.parent_run_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM runs_wait w WHERE w.run_id = r.parent_run_id AND w.child_run_id = r.id
            AND w.resolved_at IS NULL)""",
    "nothing lives below what has ended": f"""
        SELECT r.id FROM runs_run r JOIN runs_run p ON p.id = r.parent_run_id
        WHERE r.status IN {LIVES} AND p.status IN {ENDED}""",
    "each child stands in its parent's log, once": """
        SELECT COALESCE(r.id, e.child) FROM (SELECT * FROM runs_run WHERE parent_run_id IS NOT NULL) r
        FULL JOIN (SELECT run_id, payload->>'child_run' AS child, count(*) AS times FROM runs_runevent
                   WHERE type = 'child.created' GROUP BY 1, 2) e
            ON e.run_id = r.parent_run_id AND e.child = r.id
        WHERE e.times IS DISTINCT FROM 1 OR r.id IS NULL""",
    "a pending approval and its open wait are together": """
        SELECT COALESCE(a.id, w.id) FROM (SELECT * FROM runs_approval WHERE status = 'pending') a
        FULL JOIN (SELECT * FROM runs_wait WHERE kind = 'approval' AND resolved_at IS NULL) w
            ON w.run_id = a.run_id AND w.correlation_key = a.correlation_key
        WHERE a.id IS NULL OR w.id IS NULL""",
    "only what was approved is used": """
        SELECT a.id FROM runs_approval a WHERE a.consumed_at IS NOT NULL AND a.status <> 'approved'""",
    "a call that was not approved has not begun": """
        SELECT a.id FROM runs_approval a JOIN runs_toolcall c ON c.id = a.tool_call_id
        JOIN runs_runevent e ON e.run_id = c.run_id AND e.type = 'tool.called'
            AND e.payload->>'call_id' = c.call_id
        WHERE e.seq > (SELECT COALESCE(max(q.seq), 0) FROM runs_runevent q  -- one held back asks afterwards
                       WHERE q.run_id = c.run_id AND q.type = 'tool.requires_approval'
                       AND q.payload->>'call_id' = c.call_id)
        AND NOT EXISTS (SELECT FROM runs_approval b
                          WHERE b.tool_call_id = c.id AND b.consumed_at IS NOT NULL)""",
    "what a wait brought stands in the log once": f"""
        SELECT w.id FROM runs_wait w JOIN runs_run r ON r.id = w.run_id
        WHERE w.resolved_at IS NOT NULL AND w.kind <> 'signal'
        AND NOT (w.outcome = 'cancelled' AND r.status IN {ENDED})
        AND (SELECT count(*) FROM runs_runevent e WHERE e.run_id = w.run_id AND e.type = 'wait.completed'
             AND e.payload->>'correlation_key' = w.correlation_key) <> 1""",
    "nothing is told twice, or without a wait": """
        SELECT e.run_id FROM runs_runevent e LEFT JOIN runs_wait w
            ON w.run_id = e.run_id AND w.correlation_key = e.payload->>'correlation_key'
        WHERE e.type = 'wait.completed' GROUP BY e.run_id, e.payload->>'correlation_key'
        HAVING count(*) > 1 OR bool_or(w.resolved_at IS NULL)""",
    "each claim is an attempt of its own": """
        SELECT r.id FROM runs_run r LEFT JOIN runs_runevent e
            ON e.run_id = r.id AND e.type IN ('run.started', 'run.resumed')
        WHERE r.driver = 'internal' GROUP BY r.id, r.attempt
        HAVING count(e.seq) <> r.attempt OR count(DISTINCT e.payload->>'attempt') <> r.attempt""",
    "who is at work has a lease, and nobody else": """
        SELECT r.id FROM runs_run r
        WHERE CASE WHEN r.status = 'running' AND r.driver = 'internal'
            THEN r.lease_expires_at IS NULL
                 AND NOT EXISTS (SELECT FROM runs_outboundcall o WHERE o.run_id = r.id)
            ELSE r.lease_expires_at IS NOT NULL END""",
    "a run with outbound calls is at work, as their attempt, and in nobody's hands": """
        SELECT o.run_id FROM runs_outboundcall o LEFT JOIN runs_run r ON r.id = o.run_id
        WHERE r.status IS DISTINCT FROM 'running' OR r.attempt <> o.attempt
            OR r.lease_expires_at IS NOT NULL""",
    "a run ends once": """
        SELECT e.run_id FROM runs_runevent e
        WHERE e.type IN ('run.completed', 'run.failed', 'run.cancelled') GROUP BY 1 HAVING count(*) > 1""",
    "a group's knowledge is left once": """
        SELECT e.run_id FROM runs_runevent e WHERE e.type = 'memory.deposited'
        GROUP BY 1 HAVING count(*) > 1""",
}

NARROWED = ", ".join(
    f"{table} AS NOT MATERIALIZED (SELECT * FROM public.{table} WHERE organization_id = %(organization)s)"
    for table in (
        *("runs_run", "runs_runevent", "runs_wait", "runs_toolcall", "runs_approval", "runs_outboundcall"),
    )
)
ALL_RULES = f"WITH {NARROWED} " + " UNION ALL ".join(
    f"SELECT '{rule.replace(chr(39), chr(39) * 2)}', of.id FROM ({sql}) of(id)" for rule, sql in RULES.items()
)

# What a call row may say of a call that has come so far, while its run lives.
ROW_STATUSES = {
    phases.ASKED: {None, CallStatus.REQUESTED, CallStatus.WAITING},
    phases.CALLED: {CallStatus.RUNNING},
    phases.WAITING: {CallStatus.WAITING, CallStatus.UNKNOWN},
    phases.READY: {CallStatus.WAITING, CallStatus.UNKNOWN},
    phases.ENDED: {
        CallStatus.SUCCEEDED,
        CallStatus.FAILED,
        CallStatus.DENIED,
        CallStatus.REJECTED,
        CallStatus.EXPIRED,
        CallStatus.CANCELLED,
    },
}
CUT_SHORT = {None, CallStatus.CANCELLED, CallStatus.UNKNOWN}  # unfinished when its run ended

# Runs that could go on by themselves: nobody below waits for a person or an outside agent.
UNREST = f"""
WITH RECURSIVE open AS (
    SELECT r.id, r.parent_run_id FROM runs_run r
    WHERE r.status IN {LIVES} AND r.organization_id = %(organization)s
    AND (r.driver = 'external' OR (r.status = 'waiting' AND EXISTS (
        SELECT FROM runs_wait w WHERE w.run_id = r.id AND w.resolved_at IS NULL
        AND w.kind IN ('approval', 'input', 'review'))))
    UNION SELECT r.id, r.parent_run_id FROM runs_run r JOIN open o ON o.parent_run_id = r.id
)
SELECT r.id, r.status, r.waiting_reason FROM runs_run r
WHERE r.status IN {LIVES} AND r.organization_id = %(organization)s AND r.id NOT IN (SELECT id FROM open)
"""


def audit(organization_id: str, but: Collection[str] = ()) -> list[str]:
    """Every rule this organization's runs break at this moment, one line each.

    The logs of the runs `but` are not read again.
    """
    first = not connection.in_atomic_block
    with transaction.atomic():
        if first:
            execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        found = [f"{rule}: {', '.join(ids)}" for rule, ids in broken(organization_id)]
        for run in Run.objects.filter(organization_id=organization_id).exclude(pk__in=but):
            found += audit_run(run)
    return found


def broken(organization_id: str) -> Iterator[tuple[str, list[str]]]:
    """The rules that do not hold, and what breaks them. The tables are narrowed to the organization."""
    found: dict[str, set[str]] = {}
    for rule, broken_by in rows(ALL_RULES, {"organization": organization_id}):
        found.setdefault(rule, set()).add(str(broken_by))
    for rule, ids in found.items():
        yield rule, sorted(ids)


def audit_run(run: Run) -> list[str]:
    """What is wrong with this run's log, and with what repeats it."""
    verdict = verify(run.pk)
    if verdict.broken:
        return [f"{run.pk}: {verdict.broken}"]
    events = run_log.read(run.pk)
    state = fold(events)
    found = [f"goes back in time at {b.seq}" for a, b in pairwise(events) if b.created_at < a.created_at]
    found += _tool_calls(run, state)
    if run.usage and run.usage["steps"] != state.steps and run.driver == "internal":
        found.append(f"counts {run.usage['steps']} steps, its log {state.steps}")
    return [f"{run.pk}: {words}" for words in found]


def _tool_calls(run: Run, state: State) -> list[str]:
    said: dict[str, Any] = dict(ToolCall.objects.filter(run=run).values_list("call_id", "status"))
    found = [f"call {call_id} stands in its row only" for call_id in said.keys() - state.calls.keys()]
    for call in state.calls.values():
        allowed = ROW_STATUSES[call.phase]
        if run.status in TERMINAL and call.phase != phases.ENDED:
            allowed = CUT_SHORT
        if said.get(call.call_id) not in allowed:
            found.append(f"call {call.call_id} is {call.phase}, its row {said.get(call.call_id)}")
    return found


def unrest(organization_id: str) -> list[str]:
    """Runs that ought to have gone on by now."""
    found = rows(UNREST, {"organization": organization_id})
    return [f"{run_id} is still {status} ({reason})" for run_id, status, reason in found]


def audit_effects(
    organization_id: str, effects: Iterable[tuple[str, str, str]], repeatable: set[str]
) -> list[str]:
    """What happened outside, (name, run, key) each, against the log and the calls' rows.

    An effect of a `repeatable` tool may have happened again under its key: whoever is outside does
    it once. Every other happened once, or its call says that nobody knows.
    """
    counts = Counter(key for _, _, key in effects)
    called = {
        key: (run_id, call_id, tool)
        for key, run_id, call_id, tool in rows(
            "SELECT payload->>'idempotency_key', run_id, payload->>'call_id', payload->>'tool' "
            "FROM runs_runevent WHERE organization_id = %s AND type = 'tool.called'",
            [organization_id],
        )
    }
    found = [f"an effect nobody admitted: {key}" for key in counts.keys() - called.keys()]
    told = {(c.run_id, c.call_id): c for c in ToolCall.objects.filter(organization_id=organization_id)}
    for key, (run_id, call_id, tool) in called.items():
        if tool not in TELLING:
            continue
        call, times = told[run_id, call_id], counts[key]
        if times > 1 and tool not in repeatable:
            found.append(f"{run_id} {call_id}: {tool} happened {times} times")
        if times == 0 and call.status == CallStatus.SUCCEEDED:
            found.append(f"{run_id} {call_id}: {tool} succeeded and never happened")
        if times and call.status not in (CallStatus.SUCCEEDED, CallStatus.UNKNOWN):
            found.append(f"{run_id} {call_id}: {tool} happened, its row says {call.status}")
    return found


TELLING = {"effect", "keyed_effect", "nap"}  # the tools that tell the witness


def counts(organization_id: str) -> dict[str, int]:
    """How many runs there are in each status, and how many events."""
    runs = Run.objects.filter(organization_id=organization_id).values_list("status", flat=True)
    return dict(Counter(runs)) | {"events": RunEvent.objects.filter(organization_id=organization_id).count()}
