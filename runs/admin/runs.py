"""Runs: the list, a run's page, asking, saying something, cancelling."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from common import times
from groups.admin.tenancy import History, Related, TenantAdmin
from runs.actions.cancel import AlreadyEnded, cancel
from runs.actions.message import message
from runs.actions.resolve import resolve
from runs.actions.signal import SignalRefused
from runs.actions.start import CannotStart, start
from runs.admin import knew, words
from runs.admin.ask import AskForm
from runs.admin.family import MOST, SHOWN_CHILDREN, family, stamp
from runs.admin.family import path as path_to
from runs.admin.sees import seen
from runs.admin.timeline import MOST_EVENTS, SHOWN_EVENTS, timeline
from runs.choices import ACTIVE, ApprovalStatus, RunStatus, WaitKind
from runs.log import RunGone
from runs.models import Approval, Run, ToolCall, Wait

PARTS = ("summary", "tree", "timeline")  # of a run's page, refreshed while it is active


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "group"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [
            ("active", "Active"),
            ("waiting_person", "Waiting for a person"),
            ("failed_today", "Failed in the last day"),
            ("ended", "Ended"),
        ]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if value == "active":
            return queryset.filter(status__in=ACTIVE)
        if value == "waiting_person":
            reasons = (WaitKind.APPROVAL, WaitKind.INPUT, WaitKind.REVIEW)
            return queryset.filter(status=RunStatus.WAITING, waiting_reason__in=reasons)
        if value == "failed_today":
            since = timezone.now() - timedelta(days=1)
            return queryset.filter(status=RunStatus.FAILED, ended_at__gte=since)
        if value == "ended":
            return queryset.exclude(status__in=ACTIVE)
        return queryset


class AgeFilter(admin.SimpleListFilter):
    title = "asked"
    parameter_name = "asked"
    HOURS = {"hour": 1, "day": 24, "week": 168, "month": 720}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(name, f"In the last {name}") for name in self.HOURS]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        hours = self.HOURS.get(self.value() or "")
        if hours is None:
            return queryset
        return queryset.filter(created_at__gte=timezone.now() - timedelta(hours=hours))


class RootFilter(admin.SimpleListFilter):
    title = "level"
    parameter_name = "level"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [("root", "Asked by people"), ("child", "Handed down")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == "root":
            return queryset.filter(depth=0)
        return queryset.filter(depth__gt=0) if self.value() == "child" else queryset


@admin.register(Run)
class RunAdmin(History, TenantAdmin):
    project_lookup = "project_id"
    fixed = ()
    list_display = (
        "goal_start",
        "state",
        "kind_and_group",
        "project",
        "user",
        "duration",
        "token_count",
        "age",
    )
    list_filter = (
        StateFilter,
        ("status", ChoicesDropdownFilter),
        ("kind", ChoicesDropdownFilter),
        RootFilter,
        AgeFilter,
        ("project", Related),
        ("user", Related),
    )
    list_select_related = ("project", "user", "group")
    search_fields = ("goal", "id__exact")
    search_help_text = "Words of the goal, or a run's id"
    ordering = ("-id",)
    list_before_template = "admin/runs/run/ask_link.html"
    empty_message = "No run yet. Ask your agent something, and follow it here."
    empty_link = ("admin:runs_run_ask", "Ask")

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        match = request.resolver_match
        if match and match.url_name == "runs_run_changelist":
            rows = rows.defer("context", "output", "delegated_permissions")
        return rows

    @admin.display(description="Goal", ordering="goal")
    def goal_start(self, run: Run) -> str:
        return run.goal[:90] + ("…" if len(run.goal) > 90 else "")

    @admin.display(description="Status", ordering="status")
    def state(self, run: Run) -> str:
        return render_to_string("admin/runs/badge.html", {"run": run, "tone": words.tone(run.status)})

    @admin.display(description="Who", ordering="kind")
    def kind_and_group(self, run: Run) -> str:
        return f"Group {run.group}" if run.group else run.get_kind_display()

    @admin.display(description="Took")
    def duration(self, run: Run) -> str:
        return times.between(run.started_at, run.ended_at or timezone.now())

    @admin.display(description="Tokens")
    def token_count(self, run: Run) -> int:
        return words.tokens(run.usage)

    @admin.display(description="Age", ordering="id")
    def age(self, run: Run) -> str:
        return times.between(run.created_at, timezone.now())

    # Pages

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view

        def post(view: Callable[..., Any]) -> Any:
            return wrap(require_POST(view))

        return [
            path("ask/", wrap(self.ask_view), name="runs_run_ask"),
            path("<str:object_id>/live/", wrap(require_safe(self.live_view)), name="runs_run_live"),
            path("<str:object_id>/cancel/", wrap(self.cancel_view), name="runs_run_cancel"),
            path("<str:object_id>/resolve/", post(self.resolve_view), name="runs_run_resolve"),
            path("<str:object_id>/say/", post(self.say_view), name="runs_run_say"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """A run's page. Nothing on it is changed by a plain POST."""
        run = self.visible_or_404(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            **self._page(request, run),
            "seen": seen(request, run),
            "title": "Run",
            "subtitle": None,
            "opts": self.opts,
            "may_cancel": request.user.has_perm("runs.cancel_run"),
            "may_say": self._may_say(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/runs/run/page.html", context)

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The parts of a run's page that have changed since the stamp `v`: {stamp, active, parts}."""
        run = self.visible_or_404(request, object_id)
        now, active = stamp(run.root_id, run.organization_id)
        answer: dict[str, Any] = {"stamp": now, "active": active, "parts": {}}
        if request.GET.get("v") != now:
            context = self._page(request, run)
            answer["parts"] = {
                part: render_to_string(f"admin/runs/run/{part}.html", context, request) for part in PARTS
            }
        response = JsonResponse(answer)
        response["Cache-Control"] = "no-store"
        return response

    def _page(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        """What the run's page and its parts show; the number of queries does not grow with the run."""
        shown_events = _number(request, "events", SHOWN_EVENTS, MOST_EVENTS)
        shown_children = _number(request, "children", SHOWN_CHILDREN, MOST)
        now, active = stamp(run.root_id, run.organization_id)
        waits = list(Wait.objects.filter(run=run, resolved_at=None))
        approvals = Approval.objects.filter(run=run, status=ApprovalStatus.PENDING).select_related(
            "tool_call"
        )
        inputs = [wait for wait in waits if wait.kind == WaitKind.INPUT]
        reviews = [w.correlation_key.removeprefix("review-") for w in waits if w.kind == WaitKind.REVIEW]
        story = timeline(run, shown_events)
        knew.fill(request, run, story.entries)
        return {
            "run": run,
            "tone": words.tone(run.status),
            "tokens": words.tokens(run.usage),
            "duration": times.between(run.started_at, run.ended_at or timezone.now()),
            "path": path_to(run.pk),
            "stamp": now,
            "active": active,
            "family": family(run.root_id, run.organization_id, run.pk, shown_children),
            "shown_children": shown_children,
            "more_children": shown_children * 5,
            "story": story,
            "shown_events": shown_events,
            "more_events": shown_events * 5,
            "keep": _kept(request, "events", "children"),
            "questions": [(wait, story.questions.get(wait.correlation_key, "")) for wait in inputs],
            "reviews": list(ToolCall.objects.filter(run=run, call_id__in=reviews)) if reviews else [],
            "may_resolve": request.user.has_perm("runs.resolve_review"),
            "approvals": list(approvals),
        }

    def ask_view(self, request: HttpRequest) -> HttpResponse:
        """Ask one's agent; the answer is the run's page."""
        if not request.user.has_perm("runs.start_run"):
            raise PermissionDenied
        form = AskForm(request, request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                run_id = start(user=request.user, **form.cleaned_data)
            except CannotStart as refused:
                form.add_error(None, refused.message)
            else:
                if not request.user.has_perm("runs.view_run"):
                    self.message_user(request, f"Your agent is at work: {run_id}.", messages.SUCCESS)
                    return redirect("admin:index")
                return redirect("admin:runs_run_change", run_id)
        context = {**self.admin_site.each_context(request), "title": "Ask", "form": form}
        return TemplateResponse(request, "admin/runs/run/ask.html", context)

    def say_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say something to a run, or answer what it asks."""
        run = self.visible_or_404(request, object_id)
        if not self._may_say(request):
            raise PermissionDenied
        content = request.POST.get("content", "")
        key = request.POST.get("correlation_key", "")
        try:
            said = message(run.pk, content, str(request.user), key)
        except SignalRefused as refused:
            self.message_user(request, refused.message, messages.ERROR)
        else:
            heard = (
                "The agent has its answer." if said.state == "delivered" else "The agent will read it next."
            )
            self.message_user(request, heard, messages.SUCCESS)
        return _to(run)

    def resolve_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say what became of an interrupted call."""
        run = self.visible_or_404(request, object_id)
        if not request.user.has_perm("runs.resolve_review"):
            raise PermissionDenied
        call_id, outcome = request.POST.get("call_id", ""), request.POST.get("outcome", "")
        said = request.POST.get("message", "").strip()
        result = said if outcome == "succeeded" else None
        try:
            resolve(run.pk, call_id, outcome, request.user, result=result, message=said)
        except SignalRefused as refused:
            self.message_user(request, refused.message, messages.ERROR)
        else:
            self.message_user(request, "Kept; the run goes on.", messages.SUCCESS)
        return _to(run)

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask once more, then cancel the run and all below it."""
        run = self.visible_or_404(request, object_id)
        if not request.user.has_perm("runs.cancel_run"):
            raise PermissionDenied
        if request.method != "POST":
            kin = family(run.root_id, run.organization_id, run.pk)
            context = {
                **self.admin_site.each_context(request),
                "title": "Cancel this run?",
                "run": run,
                "tone": words.tone(run.status),
                "active_kin": kin.active,
            }
            return TemplateResponse(request, "admin/runs/run/cancel.html", context)
        try:
            cancel(run.pk, by=str(request.user), reason=request.POST.get("reason", "").strip()[:1000])
        except (AlreadyEnded, RunGone) as refused:
            self.message_user(request, str(refused), messages.ERROR)
        else:
            self.message_user(request, "Cancelled, with everything below it.", messages.SUCCESS)
        return _to(run)

    def _may_say(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("runs.start_run"))


def _to(run: Run) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:runs_run_change", args=[run.pk]))


def _number(request: HttpRequest, name: str, default: int, most: int) -> int:
    text = request.GET.get(name, "")
    return min(max(int(text), 1), most) if text.isascii() and text.isdigit() and len(text) < 9 else default


def _kept(request: HttpRequest, *names: str) -> str:
    """These parameters of the address, ready to be followed by others."""
    said = {name: request.GET[name] for name in names if name in request.GET}
    return f"{urlencode(said)}&" if said else ""
