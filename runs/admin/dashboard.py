"""The first page: what waits for me, what runs, what failed, what was learnt."""

from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.db.models import Min, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from common import times
from runs.admin import words
from runs.choices import ACTIVE, ApprovalEffect, ApprovalStatus, RunStatus, WaitKind
from runs.models import Approval, Run, Wait

SHOWN = 6  # rows of each short list


def mine(request: HttpRequest, model: Any) -> QuerySet[Any]:
    """The model's rows that this person sees: as its admin page has them."""
    rows: QuerySet[Any] = admin.site.get_model_admin(model).get_queryset(request)
    return rows


def decidable(request: HttpRequest) -> QuerySet[Approval]:
    """The pending approvals this person could decide."""
    if not request.user.has_perm("runs.decide_approval"):
        return Approval.objects.none()
    own = Q(effect=ApprovalEffect.REQUIRE_HUMAN, run__user=request.user)
    pending = mine(request, Approval).filter(status=ApprovalStatus.PENDING)
    return pending.exclude(own & Q(run__project__allow_self_approval=False))


def pending_badge(request: HttpRequest) -> int:
    """The number beside "Approvals" in the sidebar; none is shown for 0."""
    return decidable(request).count()


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Everything the first page shows; what somebody may not see has no figure."""
    now = timezone.now()
    figures = [_waiting(request, now)]
    lists: dict[str, Any] = {}
    if request.user.has_perm("runs.view_run"):
        figures += [_running(request), _failed(request, now)]
        rows = mine(request, Run).select_related("user", "project", "group")
        lists["active"] = [_row(run, now) for run in rows.filter(status__in=ACTIVE, depth=0)[:SHOWN]]
        lists["failed"] = [
            _row(run, now)
            for run in rows.filter(status=RunStatus.FAILED, ended_at__gte=now - timedelta(days=1))[:SHOWN]
        ]
    figures += _learnt(request, now)
    if request.user.has_perm("runs.view_approval"):
        rows = decidable(request).select_related("tool_call", "run__user").order_by("id")[:SHOWN]
        lists["approvals"] = [
            {
                "approval": a,
                "age": times.between(a.requested_at, now),
                "left": times.between(now, a.expires_at),
            }
            for a in rows
        ]
    questions = _questions(request)
    return {
        **context,
        "title": "Overview",
        "figures": [figure for figure in figures if figure],
        "lists": lists,
        "questions": questions,
        "may_ask": request.user.has_perm("runs.start_run"),
        "may_see_runs": request.user.has_perm("runs.view_run"),
    }


def _link(name: str, **query: Any) -> str:
    address = reverse(f"admin:{name}")
    return f"{address}?{urlencode(query)}" if query else address


def _waiting(request: HttpRequest, now: Any) -> dict[str, Any]:
    found = decidable(request).order_by().aggregate(oldest=Min("requested_at"))
    count = decidable(request).count()
    oldest = found["oldest"]
    return {
        "label": "Waiting for me",
        "count": count,
        "note": f"oldest {times.between(oldest, now)}" if oldest else "nothing to decide",
        "link": _link("runs_approval_changelist", status="pending"),
        "tone": "warn" if count else "",
        "icon": "approval_delegation",
    }


def _running(request: HttpRequest) -> dict[str, Any]:
    rows = mine(request, Run).filter(status__in=ACTIVE)
    waiting = rows.filter(status=RunStatus.WAITING).count()
    count = rows.count()
    return {
        "label": "Running",
        "count": count,
        "note": f"{waiting} of them wait" if waiting else "none waits" if count else "all is quiet",
        "link": _link("runs_run_changelist", group="active"),
        "tone": "info" if count else "",
        "icon": "play_circle",
    }


def _failed(request: HttpRequest, now: Any) -> dict[str, Any]:
    since = now - timedelta(days=1)
    count = mine(request, Run).filter(status=RunStatus.FAILED, ended_at__gte=since).count()
    return {
        "label": "Failed in the last day",
        "count": count,
        "note": "see why" if count else "nothing failed",
        "link": _link("runs_run_changelist", group="failed_today"),
        "tone": "bad" if count else "",
        "icon": "error",
    }


def _learnt(request: HttpRequest, now: Any) -> list[dict[str, Any]]:
    """Knowledge that groups left behind this week; nothing where its page is not installed."""
    try:
        knowledge = apps.get_model("memory", "DepositedKnowledge")
        model_admin = admin.site.get_model_admin(knowledge)
    except (LookupError, NotRegistered):
        return []
    if not request.user.has_perm("memory.view_memory"):
        return []
    since = now - timedelta(days=7)
    count = (
        model_admin.get_queryset(request).filter(source_run_id__isnull=False, created_at__gte=since).count()
    )
    return [
        {
            "label": "Learnt this week",
            "count": count,
            "note": "what groups left behind" if count else "groups have left nothing yet",
            "link": _link("memory_depositedknowledge_changelist"),
            "tone": "good" if count else "",
            "icon": "neurology",
        }
    ]


def _questions(request: HttpRequest) -> list[Run]:
    """My runs that ask me something."""
    asking = Wait.objects.filter(kind=WaitKind.INPUT, resolved_at=None, run__user_id=request.user.pk or 0)
    if not request.user.has_perm("runs.view_run"):
        return []
    return list(mine(request, Run).filter(pk__in=asking.values("run_id"))[:SHOWN])


def _row(run: Run, now: Any) -> dict[str, Any]:
    return {
        "run": run,
        "tone": words.tone(run.status),
        "age": times.between(run.created_at, now),
        "error": (run.error or {}).get("message", ""),
    }
