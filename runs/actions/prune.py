"""Prune: what old runs said goes, that they happened stays, and their logs still prove it.

An organization says after how many days (`retention_days`). A run goes with its whole tree, and a session
with all of its runs, so that nothing that goes on misses a part. What is never touched: a run that has
not ended, or from which knowledge waits for a curator. What groups left as knowledge is not a run's any more.

An event's digest is made of the digest of its payload (runs/log/log.py), which is kept in its place.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from common.canonical import digest
from common.db import execute, from_json, jsonb, row, rows
from groups.models import Organization
from memory.context.models import ContextView
from runs.log import log

BATCH = 100  # trees looked for at once
PIECE = 500  # events read and written at once
GONE = "(pruned)"

# Of a root: its tree, and session, ended before the cutoff. A session's key may be the id of the run that
# began it (`in_conversation`).
OVER = """
      NOT EXISTS (SELECT FROM runs_run t WHERE t.root_id = r.id
                  AND (t.ended_at IS NULL OR t.ended_at >= cutoff.at))
  AND NOT EXISTS (SELECT FROM runs_run s WHERE s.session_key = COALESCE(NULLIF(r.session_key, ''), r.id)
                  AND s.session_key <> '' AND s.organization_id = r.organization_id AND s.user_id = r.user_id
                  AND s.project_id = r.project_id AND (s.ended_at IS NULL OR s.ended_at >= cutoff.at))
  AND NOT EXISTS (SELECT FROM runs_run b WHERE b.id = r.session_key AND b.session_key = ''
                  AND b.organization_id = r.organization_id AND b.user_id = r.user_id
                  AND b.project_id = r.project_id AND (b.ended_at IS NULL OR b.ended_at >= cutoff.at))
  AND NOT EXISTS (SELECT FROM memory_memory m JOIN runs_run t ON t.id = m.source_run_id
                  WHERE t.root_id = r.id AND m.status = 'pending_review')
"""
CUTOFF = "WITH cutoff AS (SELECT clock_timestamp() - %(days)s * interval '1 day' AS at)"
# Ids sort by time, so the walk never looks back.
CANDIDATES = f"""
{CUTOFF} SELECT r.id FROM runs_run r, cutoff
WHERE r.organization_id = %(organization)s AND r.parent_run_id IS NULL AND r.pruned_at IS NULL
  AND r.id > %(after)s AND r.ended_at < cutoff.at AND {OVER}
ORDER BY r.id LIMIT %(batch)s
"""  # noqa: S608 - our own text
STILL_OVER = f"""
{CUTOFF} SELECT EXISTS (SELECT FROM runs_run r, cutoff WHERE r.id = %(root)s AND {OVER})
"""  # noqa: S608 - our own text
LOCK_TREE = "SELECT id, pruned_at FROM runs_run WHERE root_id = %s ORDER BY depth, id FOR NO KEY UPDATE"
EVENTS = """
SELECT seq, payload FROM runs_runevent WHERE run_id = %s AND NOT payload ? 'pruned' ORDER BY seq LIMIT %s
"""
PRUNE_EVENTS = """
UPDATE runs_runevent e SET payload = gone.payload
FROM (SELECT unnest(%s::int[]) AS seq, unnest(%s::jsonb[]) AS payload) gone
WHERE e.run_id = %s AND e.seq = gone.seq
"""
PRUNE_REST = (
    """
    UPDATE runs_run SET goal = %(gone)s, context = '', output = NULL, pruned_at = clock_timestamp(),
        error = error || jsonb_build_object('message', %(gone)s::text)
    WHERE id = ANY(%(runs)s)
    """,
    """
    UPDATE runs_toolcall SET arguments = '{}', effective_arguments = '{}', result = NULL, evidence = NULL,
        error = CASE WHEN error IS NOT NULL
                     THEN jsonb_build_object('code', error->'code', 'message', %(gone)s::text) END
    WHERE run_id = ANY(%(runs)s)
    """,
    "UPDATE runs_wait SET payload = NULL WHERE run_id = ANY(%(runs)s)",
    "DELETE FROM runs_shownwords WHERE run_id = ANY(%(runs)s)",
    """
    UPDATE runs_approval SET edited_arguments = NULL, replaced_arguments = NULL WHERE run_id = ANY(%(runs)s)
    """,
)
# of a run, or of an agent in a session that has ended
VIEWS = """
SELECT v.id FROM memory_contextview v WHERE v.owner = ANY(%(runs)s) OR EXISTS (
    SELECT FROM runs_run r WHERE r.id = ANY(%(runs)s) AND r.session_key <> ''
    AND v.owner = r.agent_instance_id AND v.project_id = r.project_id AND v.session_key = r.session_key)
"""


@dataclass
class Pruned:
    """What was pruned, or would be, in counts."""

    trees: int = 0
    runs: int = 0
    events: int = 0


def prune(organization: Organization, *, dry_run: bool = False) -> Pruned:
    """Prune what is older than the organization keeps; nothing where it keeps everything.

    A tree is one transaction: stopped at any moment, the next call goes on. `dry_run` only counts.
    """
    done = Pruned()
    if organization.retention_days is None:
        return done
    for root_id in candidates(organization):
        runs, events = count(root_id) if dry_run else prune_tree(root_id, organization.retention_days)
        done.trees += bool(runs)
        done.runs += runs
        done.events += events
    return done


def candidates(organization: Organization) -> Iterator[str]:
    """Roots of trees that are to be pruned, in order."""
    values = {
        "organization": organization.pk,
        "days": organization.retention_days,
        "batch": BATCH,
        "after": "",
    }
    while found := rows(CANDIDATES, values):
        for (root_id,) in found:
            yield root_id
        values["after"] = found[-1][0]


def count(root_id: str) -> tuple[int, int]:
    found = row("SELECT count(*), sum(last_seq) FROM runs_run WHERE root_id = %s", [root_id])
    return int(found[0]), int(found[1])


def prune_tree(root_id: str, days: int) -> tuple[int, int]:
    """One tree that has ended; returns how many runs and events it has, zeros when another was quicker, or
    its session has gone on since it was looked for: the new turn's agent is told what the old ones said.
    """
    with transaction.atomic():
        found = rows(LOCK_TREE, [root_id])
        runs = [run_id for run_id, pruned_at in found if pruned_at is None]
        events = sum(map(prune_events, runs))
        values = {"runs": runs, "gone": GONE}
        for (view_id,) in rows(VIEWS, values):
            ContextView.objects.filter(pk=view_id).delete()
        for statement in PRUNE_REST:
            execute(statement, values)
        if not row(STILL_OVER, {"days": days, "root": root_id})[0]:
            transaction.set_rollback(True)
            return 0, 0
    return len(runs), events


def prune_events(run_id: str) -> int:
    """Leave of every payload its version and its digest."""
    done = 0
    while found := rows(EVENTS, [run_id, PIECE]):
        gone = [jsonb(pruned(from_json(payload))) for _, payload in found]
        done += execute(PRUNE_EVENTS, [[seq for seq, _ in found], gone, run_id])
    return done


def pruned(payload: dict[str, Any]) -> dict[str, Any]:
    """What stays of a payload."""
    return {"v": payload.get("v"), log.PRUNED: digest(payload)}
