"""Runs and decisions of the last fortnight, day by day, for the theme's charts."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.translation import gettext as _

from common import ids
from runs.models.choices import ACTIVE, ApprovalStatus, RunStatus

DAYS = 14
COLOURS = {
    RunStatus.COMPLETED: "#2e9d5b",
    RunStatus.FAILED: "#d64545",
    RunStatus.CANCELLED: "#8a94a6",
    "active": "#4a7bf7",
    ApprovalStatus.APPROVED: "#2e9d5b",
    ApprovalStatus.REJECTED: "#d64545",
    ApprovalStatus.EXPIRED: "#c98a1b",
}
OPTIONS = json.dumps(
    {
        "animation": False,
        "maintainAspectRatio": False,
        "plugins": {"legend": {"display": True, "position": "bottom", "labels": {"boxWidth": 10}}},
        "scales": {
            "x": {"stacked": True, "grid": {"display": False}},
            "y": {"stacked": True, "beginAtZero": True, "ticks": {"precision": 0}, "grid": {}},
        },
    }
)


@dataclass(frozen=True)
class Chart:
    """One chart and the same as a table, for those who do not see it."""

    title: str
    data: str
    heads: list[str]
    rows: list[tuple[str, list[int]]]
    total: int
    link: str
    options: str = OPTIONS


def runs_by_day(runs: QuerySet[Any], link: str) -> Chart:
    """How the runs that people asked for came out, by the day they were asked for; one query."""
    found = Counter[tuple[date, str]]()
    # by the clock of whoever made the id, which keeps the primary key's index in use
    lately = ids.first_of("run", _since() - timedelta(days=1))
    for day, status, count in _counted(runs.filter(depth=0, pk__gte=lately), "created_at"):
        found[day, "active" if status in ACTIVE else status] += count
    heads = {
        RunStatus.COMPLETED: _("Completed"),
        RunStatus.FAILED: _("Failed"),
        RunStatus.CANCELLED: _("Cancelled"),
        "active": _("Active"),
    }
    return _chart(_("Runs by day"), heads, found, link)


def decisions_by_day(approvals: QuerySet[Any], link: str) -> Chart:
    """What became of approvals, by the day; one query."""
    heads = {
        ApprovalStatus.APPROVED: _("Approved"),
        ApprovalStatus.REJECTED: _("Rejected"),
        ApprovalStatus.EXPIRED: _("Expired"),
    }
    counted = _counted(approvals.filter(status__in=heads), "decided_at")
    found = Counter({(day, status): count for day, status, count in counted})
    return _chart(_("Decisions by day"), heads, found, link)


def _since() -> datetime:
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=DAYS - 1)


def _counted(rows: QuerySet[Any], when: str) -> Any:
    """(day, status, how many) of the last days."""
    recent = rows.filter(**{f"{when}__gte": _since()}).order_by().annotate(day=TruncDate(when))
    return recent.values_list("day", "status").annotate(count=Count("pk"))


def _chart(title: str, heads: dict[Any, str], found: "Counter[tuple[date, str]]", link: str) -> Chart:
    days = [_since().date() + timedelta(days=n) for n in range(DAYS)]
    labels = [f"{day:%m-%d}" for day in days]
    sets = [
        {
            "label": name,
            "data": [found[day, status] for day in days],
            "backgroundColor": COLOURS[status],
            "maxBarThickness": 18,
        }
        for status, name in heads.items()
    ]
    rows = [
        (label, [found[day, status] for status in heads]) for label, day in zip(labels, days, strict=True)
    ]
    data = json.dumps({"labels": labels, "datasets": sets})
    return Chart(title, data, list(heads.values()), rows, sum(found.values()), link)
