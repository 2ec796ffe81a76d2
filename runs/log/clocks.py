"""Clocks that stand still while a person is waited for (design 4, Clocks). All by the database's time."""

from common.db import row
from runs.models.choices import WAITS_FOR_A_PERSON

# The time in which something in the run's subtree waited for a person, overlaps counted once, and
# whether something does so now.
STOOD_STILL = """
WITH RECURSIVE tree AS (
    SELECT id FROM runs_run WHERE id = %(run)s
    UNION ALL SELECT r.id FROM runs_run r JOIN tree t ON r.parent_run_id = t.id
), spans AS (
    SELECT tstzrange(w.created_at, COALESCE(w.resolved_at, clock_timestamp())) AS span,
           w.resolved_at IS NULL AS open
    FROM runs_wait w JOIN tree t ON w.run_id = t.id WHERE w.kind = ANY(%(kinds)s)
), merged AS (
    SELECT unnest(range_agg(span)) AS span FROM spans
)
SELECT COALESCE(EXTRACT(epoch FROM sum(upper(span) - lower(span))), 0)::float8,
       COALESCE((SELECT bool_or(open) FROM spans), false)
FROM merged
"""


def stood_still(run_id: str) -> tuple[float, bool]:
    """Seconds the run's subtree has waited for people so far, and whether it does right now."""
    kinds = [kind.value for kind in WAITS_FOR_A_PERSON]
    seconds, now = row(STOOD_STILL, {"run": run_id, "kinds": kinds})
    return seconds, now
