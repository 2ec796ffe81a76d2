"""Take a pending run: one worker gets it, for as long as its lease lasts."""

from datetime import timedelta

from django.conf import settings

from runs.log.log import RunGone, RunLog
from runs.models.choices import EventType, RunStatus


def claim(run_id: str) -> int | None:
    """Claim the run in this transaction; returns the attempt, or None when it is not to be had.

    The row lock decides between two workers: the second finds the run running.
    """
    try:
        log = RunLog.lock(run_id)
    except RunGone:
        return None
    attempt = claim_locked(log)
    log.flush()
    return attempt


def claim_locked(log: RunLog) -> int | None:
    """`claim` of a run that is locked already, or made in this transaction; the caller flushes it."""
    if log.status != RunStatus.PENDING:
        return None
    attempt = log.attempt + 1
    log.append(EventType.RUN_RESUMED if log.attempt else EventType.RUN_STARTED, {"attempt": attempt})
    started = {} if log.attempt else {"started_at": log.now}
    log.set(
        status=RunStatus.RUNNING.value,
        attempt=attempt,
        lease_expires_at=log.now + timedelta(seconds=settings.LEASE_SECONDS),
        **started,
    )
    log.attempt = attempt
    return attempt
