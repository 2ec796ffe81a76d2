"""The queue's health: what waits to be taken, what is overdue, and what to do about it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from common.db import row
from runs.admin.dashboard import link_to
from runs.models.choices import RunStatus
from runs.models.queue import lanes
from runs.observe import outbound

NO_CARRIER = gettext_lazy("Start one with: python manage.py carrier")
LATE = 30  # seconds a message may be due before something is wrong

# One look at everything; each part reads an index of its own.
LOOK = """
SELECT clock_timestamp(),
  (SELECT count(*) FROM runs_queuemessage WHERE due_at <= clock_timestamp() AND NOT queue = ANY(%(lanes)s)),
  (SELECT min(due_at) FROM runs_queuemessage
   WHERE due_at <= clock_timestamp() AND holder = '' AND NOT queue = ANY(%(lanes)s)),
  (SELECT count(*) FROM runs_queuemessage WHERE holder <> ''),
  (SELECT count(*) FROM runs_run WHERE status = 'pending'),
  (SELECT count(*) FROM runs_run WHERE status = 'running' AND driver = 'internal'),
  (SELECT count(*) FROM runs_run WHERE status = 'running' AND lease_expires_at < clock_timestamp()),
  (SELECT count(*) FROM runs_toolcall WHERE lease_expires_at IS NOT NULL),
  (SELECT count(*) FROM runs_wait WHERE resolved_at IS NULL AND expires_at < clock_timestamp()),
  (SELECT count(*) FROM runs_approvalnotice WHERE status IN ('pending', 'sending'))
"""


@dataclass(frozen=True)
class Health:
    """What was found, in words. `tone` is good, warn or bad."""

    verdict: str
    tone: str
    advice: str
    oldest: datetime | None
    figures: list[dict[str, Any]]
    calls: list[outbound.Calls]
    troubled: list[outbound.Troubled]


def look() -> Health:
    """The queue, and what carriers are at, as they are now."""
    found = row(LOOK, {"lanes": lanes()})
    now, due, oldest, held, pending, running, lost, calls, overdue, notices = found
    late = oldest is not None and (now - oldest).total_seconds() > LATE
    runs = "runs_run_changelist"
    figures = [
        _figure(_("Messages due"), due, _("what workers are to take"), "", "bad" if late else ""),
        _figure(_("Running"), held, _("taken and not done yet"), "", ""),
        _figure(_("Runs pending"), pending, _("not taken yet"), _of(runs, RunStatus.PENDING), ""),
        _figure(_("Runs at work"), running, _("a worker has them"), _of(runs, RunStatus.RUNNING), ""),
        _figure(_("Leases run out"), lost, _("brought back by the next sweep"), "", "warn" if lost else ""),
        _figure(_("Calls at work"), calls, _("of outside agents"), "", ""),
        _figure(_("Waits overdue"), overdue, _("ended by the next sweep"), "", "warn" if overdue else ""),
        _figure(_("Notices unsent"), notices, _("e-mail about approvals"), "", ""),
    ]
    calls, carriers = outbound.calls(), outbound.carriers()
    figures += _carried(calls, carriers)
    verdict = _verdict(late, lost, overdue)
    waiting = calls or any(count for _, count, _ in outbound.errands())
    if waiting and not carriers and verdict[1] != "bad":
        verdict = _("Calls wait and nobody carries them."), "bad", str(NO_CARRIER)
    return Health(*verdict, oldest, figures, calls, outbound.troubled())


def _carried(calls: list[outbound.Calls], carriers: int) -> list[dict[str, Any]]:
    under_way, waiting = sum(call.under_way for call in calls), sum(call.waiting for call in calls)
    return [
        _figure(_("Carriers"), carriers, _("carry calls of models and tools"), "", ""),
        _figure(_("Calls under way"), under_way, _("a carrier has them"), "", ""),
        _figure(_("Calls waiting"), waiting, _("for a carrier, a limit or a pause"), "", ""),
    ]


def _verdict(late: bool, lost: int, overdue: int) -> tuple[str, str, str]:
    if late:
        advice = _("Are the workers running? Start them with: python manage.py cluster")
        return _("Work waits and nobody takes it."), "bad", advice
    if lost or overdue:
        advice = _("Look again in a few seconds; if it stays, no worker sweeps.")
        return _("Something is overdue."), "warn", advice
    return _("All is well."), "good", ""


def _figure(label: str, count: int, note: str, link: str, tone: str) -> dict[str, Any]:
    return {"label": label, "count": count, "note": note, "link": link, "tone": tone}


def _of(name: str, status: str) -> str:
    return link_to(name, status__exact=status)
