"""Count the log: what happened, for metrics. Done when somebody asks, and never on a run's way.

Events are counted in the order of their ids, each once. An id is handed out before its transaction
commits, so that a later one may be seen first: what is there up to an id is known to be all there is
once every transaction that was open at the time has ended. So each count notes how far the ids went, and
the next one goes as far as that.
"""

from django.db import transaction

from common.db import execute, row, rows
from runs.models import EventCountCursor

MOST = 200_000  # ids counted at once
BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)  # seconds; of the histogram

START = """
INSERT INTO runs_eventcountcursor (id, done, next, next_at)
SELECT 1, newest, newest, clock_timestamp()
FROM (SELECT COALESCE(pg_sequence_last_value('runs_runevent_id_seq'), 0) AS newest) ids
ON CONFLICT DO NOTHING
"""
CURSOR = "SELECT done, next, next_at FROM runs_eventcountcursor WHERE id = 1 FOR UPDATE SKIP LOCKED"
OPEN_BEFORE = """
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
               AND backend_xid IS NOT NULL AND xact_start <= %s)
"""
NOTE = """
UPDATE runs_eventcountcursor SET done = %(to)s, next_at = clock_timestamp(),
    next = GREATEST(%(to)s, COALESCE(pg_sequence_last_value('runs_runevent_id_seq'), 0))
WHERE id = 1
"""
# A step of a model lasts from the event before its message; a tool's call from its tool.called.
COUNT = """
WITH new AS MATERIALIZED (
    SELECT id, run_id, seq, type, payload, created_at FROM runs_runevent WHERE id > %(after)s AND id <= %(to)s
),
replies AS (
    SELECT new.*, EXTRACT(epoch FROM new.created_at - before.created_at) AS seconds
    FROM new CROSS JOIN LATERAL (  -- one at a time, in the partition of its run
        SELECT created_at FROM runs_runevent WHERE run_id = new.run_id AND seq = new.seq - 1 OFFSET 0
    ) before
    WHERE new.type = 'message.created' AND new.payload->>'role' = 'assistant'
),
answers AS (
    SELECT new.*, split_part(new.type, '.', 2) AS outcome,
           CASE WHEN new.payload #>> '{error,code}' = 'UNKNOWN_TOOL' THEN '(unknown)'
                ELSE COALESCE(new.payload->>'tool', '(unknown)') END AS tool,
           EXTRACT(epoch FROM new.created_at - (
               SELECT called.created_at FROM runs_runevent called
               WHERE called.run_id = new.run_id AND called.seq < new.seq AND called.type = 'tool.called'
                 AND called.payload->>'call_id' = new.payload->>'call_id'
               ORDER BY called.seq DESC LIMIT 1)) AS seconds
    FROM new WHERE new.type IN ('tool.completed', 'tool.failed', 'tool.blocked', 'tool.rejected',
                                'tool.expired', 'tool.outcome_unknown')
),
steps AS (
    SELECT 'model' AS step, seconds FROM replies
    UNION ALL SELECT 'tool', seconds FROM answers WHERE seconds IS NOT NULL
),
counted AS (
    SELECT 'events' AS name, ARRAY[type::text] AS labels, count(*)::float8 AS value FROM new GROUP BY type
    UNION ALL SELECT 'tool_calls', ARRAY[tool, outcome], count(*) FROM answers GROUP BY tool, outcome
    UNION ALL SELECT 'tokens', ARRAY[COALESCE(payload->>'model', ''), 'input'],
                     sum((payload #>> '{usage,input_tokens}')::bigint) FROM replies GROUP BY 2
    UNION ALL SELECT 'tokens', ARRAY[COALESCE(payload->>'model', ''), 'output'],
                     sum((payload #>> '{usage,output_tokens}')::bigint) FROM replies GROUP BY 2
    UNION ALL SELECT 'step_seconds', ARRAY[step], sum(seconds) FROM steps GROUP BY step
    UNION ALL SELECT 'step_bucket', ARRAY[step, width_bucket(seconds, %(bounds)s::numeric[])::text], count(*)
              FROM steps GROUP BY 2
)
INSERT INTO runs_eventcount (name, labels, value)
SELECT name, labels, value FROM counted WHERE value IS NOT NULL
ON CONFLICT (name, labels) DO UPDATE SET value = runs_eventcount.value + EXCLUDED.value
"""

Counts = dict[str, dict[tuple[str, ...], float]]  # by name, then by labels


def count() -> None:
    """Count on. Does nothing while another process is at it, or a transaction is open from before."""
    with transaction.atomic():
        if not EventCountCursor.objects.exists():
            execute(START)
        found = row(CURSOR)
        if found is None:
            return
        done, upto, noted_at = found
        if row(OPEN_BEFORE, [noted_at])[0]:
            return
        upto = min(upto, done + MOST)
        if upto > done:
            execute(COUNT, {"after": done, "to": upto, "bounds": list(BOUNDS)})
        execute(NOTE, {"to": upto})


def read() -> Counts:
    """The counts as they stand."""
    found: Counts = {}
    for name, labels, value in rows("SELECT name, labels, value FROM runs_eventcount"):
        found.setdefault(name, {})[tuple(labels)] = value
    return found
