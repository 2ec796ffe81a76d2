"""Runs: the list, a run's page, asking, saying something, cancelling."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_POST, require_safe
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from common import redact, times
from common.api import slots
from common.api.errors import Problem
from groups.actors import Actor
from groups.admin.searching import SearchesWhatIsShown
from groups.admin.tenancy import History, ListedFromReplica, Related, TenantAdmin
from policy.authority import NotAllowed, Verb, can
from runs.actions.cancel import cancel
from runs.actions.fork import fork, point
from runs.actions.message import message
from runs.actions.resolve import resolve
from runs.actions.signal import SignalRefused
from runs.actions.start import CannotStart, again, start
from runs.admin import recalled, words
from runs.admin.ask import AskForm
from runs.admin.context_at import seen
from runs.admin.masking import WithoutSecrets
from runs.admin.remedy import remedy
from runs.admin.run_tree import MOST, SHOWN_CHILDREN, run_tree, stamp
from runs.admin.run_tree import path as path_to
from runs.admin.timeline import MOST_EVENTS, SHOWN_EVENTS, questions, timeline
from runs.api import stream
from runs.api.readers import Reader
from runs.gate import repeats
from runs.log.log import AlreadyEnded, RunGone
from runs.models import Approval, Run, ToolCall, Wait
from runs.models.choices import ACTIVE, ApprovalStatus, RunStatus, WaitKind
from runs.observe import cost

PARTS = ("summary", "tree", "timeline")  # of a run's page, refreshed while it is active


class StateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "group"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [
            ("active", _("Active")),
            ("waiting_person", _("Waiting for a person")),
            ("failed_today", _("Failed in the last day")),
            ("ended", _("Ended")),
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
    title = gettext_lazy("asked")
    parameter_name = "asked"
    HOURS = {"hour": 1, "day": 24, "week": 168, "month": 720}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [
            ("hour", _("In the last hour")),
            ("day", _("In the last day")),
            ("week", _("In the last week")),
            ("month", _("In the last month")),
        ]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        hours = self.HOURS.get(self.value() or "")
        if hours is None:
            return queryset
        return queryset.filter(created_at__gte=timezone.now() - timedelta(hours=hours))


class RootFilter(admin.SimpleListFilter):
    title = gettext_lazy("level")
    parameter_name = "level"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [("root", _("Asked by people")), ("child", _("Handed down"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == "root":
            return queryset.filter(depth=0)
        return queryset.filter(depth__gt=0) if self.value() == "child" else queryset


@admin.register(Run)
class RunAdmin(SearchesWhatIsShown, WithoutSecrets, ListedFromReplica, History, TenantAdmin):
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
    search_fields, masked_text = ("goal", "id__exact"), "goal"
    search_help_text = gettext_lazy("Words of the goal, or a run's id")
    ordering = ("-id",)
    list_before_template = "admin/runs/run/ask_link.html"
    empty_message = gettext_lazy("No run yet. Ask your agent something, and follow it here.")
    empty_link = ("admin:runs_run_ask", gettext_lazy("Ask"))

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        match = request.resolver_match
        if match and match.url_name == "runs_run_changelist":
            rows = rows.defer("context", "output", "delegated_permissions", "roles_above", "groups_above")
        return rows

    @admin.display(description=gettext_lazy("Goal"))  # an order by goals would tell what they hide
    def goal_start(self, run: Run) -> str:
        goal = redact.shown(run.goal)
        return goal[:90] + ("…" if len(goal) > 90 else "")

    @admin.display(description=gettext_lazy("Status"), ordering="status")
    def state(self, run: Run) -> str:
        return words.run_badge(run)

    @admin.display(description=gettext_lazy("Who"), ordering="kind")
    def kind_and_group(self, run: Run) -> str:
        return _("Group {name}").format(name=run.group) if run.group else str(run.get_kind_display())

    @admin.display(description=gettext_lazy("Took"))
    def duration(self, run: Run) -> str:
        return times.between(run.started_at, run.ended_at or timezone.now())

    @admin.display(description=pgettext_lazy("of a model", "Tokens"))
    def token_count(self, run: Run) -> int:
        return words.tokens(run.usage)

    @admin.display(description=gettext_lazy("Asked"), ordering="id")
    def age(self, run: Run) -> str:
        return times.ago(run.created_at)

    # Pages

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view

        def post(view: Callable[..., Any]) -> Any:
            return wrap(require_POST(view))

        return [
            path("ask/", wrap(self.ask_view), name="runs_run_ask"),
            path("<str:object_id>/live/", wrap(require_safe(self.live_view)), name="runs_run_live"),
            path("<str:object_id>/stream/", wrap(require_safe(self.stream_view)), name="runs_run_stream"),
            path("<str:object_id>/fork/<int:seq>/", wrap(self.fork_view), name="runs_run_fork"),
            path("<str:object_id>/again/", wrap(require_POST(self.again_view)), name="runs_run_again"),
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
            "title": _("Run"),
            "subtitle": None,
            "opts": self.opts,
            "may_cancel": can(actor_at(request, run), Verb.CANCEL, run),
            "may_say": can(actor_at(request, run), Verb.STEER, run),
            "speaks": can(actor_at(request, run), Verb.SPEAK_AS_PERSON, run),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/runs/run/page.html", context)

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The parts of a run's page that have changed since the stamp `v`: {stamp, active, parts, last}."""
        run = self.visible_or_404(request, object_id)
        now, active = stamp(run.root_id, run.organization_id)
        answer: dict[str, Any] = {"stamp": now, "active": active, "parts": {}}
        if request.GET.get("v") != now:
            context = self._page(request, run)
            answer["last"] = context["story"].last
            answer["parts"] = {
                part: render_to_string(f"admin/runs/run/{part}.html", context, request) for part in PARTS
            }
        response = JsonResponse(answer)
        response["Cache-Control"] = "no-store"
        return response

    def stream_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """What happens in the run and below it, as the API streams it; the page reads it as hints."""
        run = self.visible_or_404(request, object_id)
        last = request.GET.get("last_event_id", "")
        if stream.told_all(run, True, last):
            return HttpResponse(status=204)
        try:
            slot = slots.take(request.user, None, run.organization_id)
        except Problem as refused:  # the page looks by itself from time to time
            return JsonResponse(refused.problem, status=refused.status_code, headers=refused.headers)
        cursor = stream.TreeCursor(run.pk, run.root_id, run.user_id)
        events = stream.events(cursor, last, Reader.of_admin(request, run), slot)
        if not connection.in_atomic_block:
            connection.close()  # a stream holds none
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingHttpResponse(events, content_type="text/event-stream", headers=headers)

    def _page(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        """What the run's page and its parts show; the number of queries does not grow with the run."""
        shown_events = _number(request, "events", SHOWN_EVENTS, MOST_EVENTS)
        shown_children = _number(request, "children", SHOWN_CHILDREN, MOST)
        now, active = stamp(run.root_id, run.organization_id)
        waits = list(Wait.objects.filter(run=run, resolved_at=None))
        approvals = Approval.objects.filter(run=run, status=ApprovalStatus.PENDING).select_related(
            "tool_call"
        )
        answered_here = [wait for wait in waits if not wait.correlation_key.startswith(repeats.PREFIX)]
        inputs = [wait for wait in answered_here if wait.kind == WaitKind.INPUT]
        reviews = {wait.tool_call_id: wait for wait in waits if wait.kind == WaitKind.REVIEW}
        tree = run_tree(run.root_id, run.organization_id, run.pk, shown_children)
        below = [one.id for one in tree.here if one.id != run.pk]
        asked = questions(run, [wait.correlation_key for wait in inputs])
        own = run.user_id == request.user.pk
        story = timeline(run, below, tree.events, shown_events, own)
        recalled.fill(request, run, story.entries)
        return {
            "run": run,
            "badge": words.run_badge(run),
            "tokens": words.tokens(run.usage),
            "cost": cost.of_run(run.pk),
            "duration": times.between(run.started_at, run.ended_at or timezone.now()),
            "path": path_to(run.pk),
            "stamp": now,
            "active": active,
            "run_tree": tree,
            "shown_children": shown_children,
            "more_children": shown_children * 5,
            "story": story,
            "shown_events": shown_events,
            "more_events": shown_events * 5,
            "keep": _kept(request, "events", "children"),
            "questions": [(wait, asked.get(wait.correlation_key, "")) for wait in inputs],
            "reviews": [(reviews[call.pk], call) for call in ToolCall.objects.filter(pk__in=reviews)],
            "may_resolve": can(actor_at(request, run), Verb.RESOLVE_REVIEW, run),
            "may_fork": can(actor_at(request, run), Verb.FORK, run),
            "remedy": remedy(run),
            "may_run_again": can(actor_at(request, run), Verb.FORK, run) and run.depth == 0,
            "approvals": list(approvals),
        }

    def ask_view(self, request: HttpRequest) -> HttpResponse:
        """Ask one's agent; the answer is the run's page."""
        if not request.user.has_perm("runs.start_run"):  # who is no member is told so on the page
            raise PermissionDenied
        form = AskForm(request, request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                organization_id = form.cleaned_data["project"].organization_id
                run_id = start(actor=Actor.of_request(request, organization_id), **form.cleaned_data)
            except (CannotStart, NotAllowed) as refused:
                form.add_error(None, _(refused.message))
            else:
                if not request.user.has_perm("runs.view_run"):
                    self.message_user(
                        request, _("Your agent is at work: {run}.").format(run=run_id), messages.SUCCESS
                    )
                    return redirect("admin:index")
                return redirect("admin:runs_run_change", run_id)
        context = {**self.admin_site.each_context(request), "title": _("Ask"), "form": form}
        return TemplateResponse(request, "admin/runs/run/ask.html", context)

    def say_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say something to a run, or answer what it asks."""
        run = self.visible_or_404(request, object_id)
        content = request.POST.get("content", "")
        key = request.POST.get("correlation_key", "")
        to = self._spoken_to(request, run)
        try:
            said = message(to.pk, content, actor_at(request, to), key if to.pk == run.pk else "")
        except NotAllowed as refused:
            raise PermissionDenied(refused.message) from None
        except SignalRefused as refused:
            self.message_user(request, _(refused.message), messages.ERROR)
        else:
            answered = said.state == "delivered"
            heard = _("The agent has its answer.") if answered else _("The agent will read it next.")
            self.message_user(request, heard, messages.SUCCESS)
        return _to(run)

    def resolve_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say what became of an interrupted call."""
        run = self.visible_or_404(request, object_id)
        call_id, outcome = request.POST.get("call_id", ""), request.POST.get("outcome", "")
        key = request.POST.get("correlation_key", "")
        said = request.POST.get("message", "").strip()
        result = said if outcome == "succeeded" else None
        try:
            resolve(run.pk, call_id, outcome, actor_at(request, run), result, said, key)
        except NotAllowed as refused:
            raise PermissionDenied(refused.message) from None
        except SignalRefused as refused:
            self.message_user(request, _(refused.message), messages.ERROR)
        else:
            self.message_user(request, _("Kept; the run goes on."), messages.SUCCESS)
        return _to(run)

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask once more, then cancel the run and all below it."""
        run = self.visible_or_404(request, object_id)
        if not can(actor_at(request, run), Verb.CANCEL, run):
            raise PermissionDenied
        if request.method != "POST":
            tree = run_tree(run.root_id, run.organization_id, run.pk)
            context = {
                **self.admin_site.each_context(request),
                "title": _("Cancel this run?"),
                "run": run,
                "badge": words.run_badge(run),
                "active_kin": tree.active,
            }
            return TemplateResponse(request, "admin/runs/run/cancel.html", context)
        try:
            cancel(run.pk, actor_at(request, run), reason=request.POST.get("reason", "").strip()[:1000])
        except (AlreadyEnded, RunGone) as refused:
            self.message_user(request, str(refused), messages.ERROR)
        else:
            self.message_user(request, _("Cancelled, with everything below it."), messages.SUCCESS)
        return _to(run)

    def _spoken_to(self, request: HttpRequest, run: Run) -> Run:
        """The run the words are for: this one, or one of its tree. Raises Http404."""
        to = request.POST.get("to") or run.pk
        if to == run.pk:
            return run
        found: Run = get_object_or_404(self.get_queryset(request), pk=to, root_id=run.root_id)
        return found

    def fork_view(self, request: HttpRequest, object_id: str, seq: int) -> HttpResponse:
        """Say what running again from an event means, then do it; the answer is the new run's page."""
        run = self.visible_or_404(request, object_id)
        if not can(actor_at(request, run), Verb.FORK, run):
            raise PermissionDenied
        problem = ""
        try:
            if request.method == "POST":
                new = fork(run.pk, seq, actor_at(request, run), request.POST.get("content", ""))
                self.message_user(request, _("A new run goes on from there; the old one stays."))
                return redirect("admin:runs_run_change", new)
            point(run, seq, actor_at(request, run))
        except CannotStart as refused:
            problem = _(refused.message)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Run again from here"),
            "run": run,
            "seq": seq,
            "problem": problem,
            "badge": words.run_badge(run),
        }
        return TemplateResponse(request, "admin/runs/run/fork.html", context)

    def again_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The same goal once more, with today's roles, models and limits."""
        run = self.visible_or_404(request, object_id)
        actor = actor_at(request, run)
        if not can(actor, Verb.FORK, run) or run.depth:
            raise PermissionDenied
        try:
            new = again(run, actor, run.session_key)
        except CannotStart as refused:
            self.message_user(request, _(refused.message), messages.ERROR)
            return _to(run)
        return redirect("admin:runs_run_change", new)


def actor_at(request: HttpRequest, run: Run) -> Actor:
    """Whoever is signed in, as a member of the run's organization."""
    return Actor.of_request(request, run.organization_id)


def _to(run: Run) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:runs_run_change", args=[run.pk]))


def _number(request: HttpRequest, name: str, default: int, most: int) -> int:
    text = request.GET.get(name, "")
    return min(max(int(text), 1), most) if text.isascii() and text.isdigit() and len(text) < 9 else default


def _kept(request: HttpRequest, *names: str) -> str:
    """These parameters of the address, ready to be followed by others."""
    said = {name: request.GET[name] for name in names if name in request.GET}
    return f"{urlencode(said)}&" if said else ""
