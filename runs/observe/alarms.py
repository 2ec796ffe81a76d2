"""Approvals that nobody may come to decide (runs/notices/watch.py): how many, and why."""

from common.db import rows

LOOK = """
SELECT w.alarm, count(*) FROM runs_approvalwatch w JOIN runs_approval a ON a.id = w.approval_id
WHERE w.alarm <> '' AND a.status = 'pending' GROUP BY w.alarm ORDER BY w.alarm
"""


def alarms() -> dict[str, int]:
    """How many approvals there are with each alarm."""
    return dict(rows(LOOK))
