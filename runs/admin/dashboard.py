"""The first page: what waits for me, what runs, what failed, what was learnt."""

from collections import Counter
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.db.models import Count, Min, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from common import times
from groups.actors import actors_of
from policy.authority import Verb, visible
from runs.admin import charts, words
from runs.gate import deciders
from runs.models import Approval, Run, Wait
from runs.models.choices import ACTIVE, ApprovalStatus, RunStatus, WaitKind

SHOWN = 6  # rows of each short list


def mine(request: HttpRequest, model: Any) -> QuerySet[Any]:
    """The model's rows that this person sees: as its admin page has them."""
    rows: QuerySet[Any] = admin.site.get_model_admin(model).get_queryset(request)
    return rows


def decidable(request: HttpRequest) -> QuerySet[Approval]:
    """The pending approvals that wait for this person."""
    rows = mine(request, Approval)
    mine_of = [deciders.waits_for(actor) for actor in actors_of(request)]
    return rows.filter(reduce(or_, mine_of)) if mine_of else rows.none()


def pending_badge(request: HttpRequest) -> int:
    """The number beside "Approvals" in the sidebar; none is shown for 0."""
    return decidable(request).count()


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Everything the first page shows; what somebody may not see has no figure."""
    now = timezone.now()
    figures, drawn = [_waiting(request), *_alarmed(request)], []
    lists: dict[str, list[Any]] = {}
    if request.user.has_perm("runs.view_run"):
        figures += _runs(request, now)
        rows = mine(request, Run).select_related("user", "project", "group")
        lists["active"] = [_row(run) for run in rows.filter(status__in=ACTIVE, depth=0)[:SHOWN]]
        lists["failed"] = [
            _row(run)
            for run in rows.filter(status=RunStatus.FAILED, ended_at__gte=now - timedelta(days=1))[:SHOWN]
        ]
        link = link_to("runs_run_changelist", level="root", asked="month")
        drawn.append(charts.runs_by_day(mine(request, Run), link))
    figures += _learnt(request, now)
    if request.user.has_perm("runs.view_approval"):
        rows = decidable(request).select_related("tool_call", "run__user").order_by("id")
        lists["approvals"] = list(rows[:SHOWN])
        drawn.append(charts.decisions_by_day(mine(request, Approval), link_to("runs_approval_changelist")))
    return {
        **context,
        "title": _("Overview"),
        "figures": [figure for figure in figures if figure],
        "lists": lists,
        "charts": drawn,
        "questions": _questions(request),
        "may_ask": request.user.has_perm("runs.start_run"),
        "may_see_runs": request.user.has_perm("runs.view_run"),
    }


def link_to(name: str, **query: Any) -> str:
    address = reverse(f"admin:{name}")
    return f"{address}?{urlencode(query)}" if query else address


def _waiting(request: HttpRequest) -> dict[str, Any]:
    """How many wait for this person, since when, and for which capabilities; one query."""
    waiting = decidable(request).order_by().values("capability", "tool_call__tool")
    found: list[Any] = list(waiting.annotate(count=Count("pk"), oldest=Min("requested_at")))
    oldest = min((row["oldest"] for row in found), default=None)
    return {
        "label": _("Waiting for me"),
        "count": sum(row["count"] for row in found),
        "note": format_html(_("oldest {}"), times.ago(oldest)) if oldest else _("nothing to decide"),
        "link": link_to("runs_approval_changelist", status="pending"),
        "tone": "warn" if found else "",
        "kinds": _kinds(found),
    }


def _alarmed(request: HttpRequest) -> list[dict[str, Any]]:
    """Approvals of whom nobody hears, for those who see approvals; nothing where there is none."""
    if not request.user.has_perm("runs.view_approval"):
        return []
    rows = mine(request, Approval).filter(status=ApprovalStatus.PENDING).exclude(watch=None)
    found = list(rows.exclude(watch__alarm="").order_by("id").values_list("watch__alarm", flat=True)[:1000])
    if not found:
        return []
    return [
        {
            "label": _("Approvals nobody hears of"),
            "count": len(found),
            "note": str(words.ALARMS.get(found[0], "")),
            "link": link_to("runs_approval_changelist", status="pending"),
            "tone": "bad",
        }
    ]


def _kinds(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What waits, by capability, or by tool where a call has none; the most first."""
    counts = Counter[str]()
    for row in found:
        counts[row["capability"] or row["tool_call__tool"]] += row["count"]
    named = {row["capability"] for row in found}
    return [
        {
            "name": name,
            "count": count,
            "link": link_to(
                "runs_approval_changelist",
                status="pending",
                **({"capability": name} if name in named else {"q": name}),
            ),
        }
        for name, count in counts.most_common(SHOWN)
    ]


def _runs(request: HttpRequest, now: datetime) -> list[dict[str, Any]]:
    """What runs, what of it waits, and what failed; one query."""
    lately = Q(status=RunStatus.FAILED, ended_at__gte=now - timedelta(days=1))
    rows = mine(request, Run).order_by().filter(Q(status__in=ACTIVE) | lately)
    found = rows.aggregate(
        active=Count("pk", filter=Q(status__in=ACTIVE)),
        waiting=Count("pk", filter=Q(status=RunStatus.WAITING)),
        failed=Count("pk", filter=lately),
    )
    active, waiting, failed = found["active"], found["waiting"], found["failed"]
    waits = ngettext("{count} of them waits", "{count} of them wait", waiting).format(count=waiting)
    return [
        {
            "label": _("Running"),
            "count": active,
            "note": waits if waiting else _("none waits") if active else _("all is quiet"),
            "link": link_to("runs_run_changelist", group="active"),
            "tone": "info" if active else "",
        },
        {
            "label": _("Failed in the last day"),
            "count": failed,
            "note": _("see why") if failed else _("nothing failed"),
            "link": link_to("runs_run_changelist", group="failed_today"),
            "tone": "bad" if failed else "",
        },
    ]


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
            "label": _("Learnt this week"),
            "count": count,
            "note": _("what groups left behind") if count else _("groups have left nothing yet"),
            "link": link_to("memory_depositedknowledge_changelist"),
            "tone": "good" if count else "",
        }
    ]


def _questions(request: HttpRequest) -> list[Run]:
    """My runs that ask me something."""
    if not request.user.has_perm("runs.view_run"):
        return []
    asking = Wait.objects.filter(kind=WaitKind.INPUT, resolved_at=None).values("run_id")
    runs = Run.objects.filter(pk__in=asking)
    keys = [visible(actor, Verb.ANSWER, runs).values("pk") for actor in actors_of(request)]
    if not keys:
        return []
    return list(mine(request, Run).filter(reduce(or_, (Q(pk__in=some) for some in keys)))[:SHOWN])


def _row(run: Run) -> dict[str, Any]:
    return {"run": run, "badge": words.run_badge(run), "error": (run.error or {}).get("message", "")}
