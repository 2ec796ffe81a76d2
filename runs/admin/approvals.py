"""Approvals: what waits for a decision, and deciding it."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin import AllValuesFieldListFilter
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Case, F, When
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from common import redact, times
from common.api.errors import Problem
from common.canonical import same
from common.tags import truncatechars
from groups.actors import Actor, actors_of
from groups.admin.searching import SearchesWhatIsShown
from groups.admin.tenancy import History, Related, TenantAdmin
from policy.authority import holds
from runs.actions import decide
from runs.admin import recalled, words
from runs.admin.dashboard import decidable
from runs.admin.decided import DecidedPages
from runs.admin.remember import RememberForm, offered
from runs.admin.run_tree import path as path_to
from runs.deciding import edit, queue, view
from runs.deciding.view import fate
from runs.gate import deciders
from runs.models import Approval
from runs.models.choices import ApprovalStatus

SHOWN_LINES = 4  # of the arguments, in the list
THEN = ","  # between the ids of those that open one after the other
QUEUE = 500  # pending ones read to say which comes next


class StatusFilter(admin.SimpleListFilter):
    title = gettext_lazy("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(value, _(words)) for value, words in ApprovalStatus.choices]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(status=self.value()) if self.value() in ApprovalStatus.values else queryset


@admin.register(Approval)
class ApprovalAdmin(SearchesWhatIsShown, DecidedPages, History, TenantAdmin):
    """Decisions are taken here by runs.actions.decide and nowhere else."""

    project_lookup = "run__project_id"
    fixed = ()
    list_display = ("call", "for_whom", "why_short", "age", "expiry", "state")
    list_display_links = None
    list_filter = (
        StatusFilter,
        ("capability", AllValuesFieldListFilter),
        ("effect", ChoicesDropdownFilter),
        ("run__project", Related),
        ("run__user", Related),
    )
    list_select_related = ("tool_call", "run__user", "run__project", "run__group")
    search_fields = ("tool_call__tool", "capability", "run__goal", "id__exact", "run__id__exact")
    masked_text = "run__goal"
    search_help_text = gettext_lazy("A tool, a capability, words of the goal, or an id")
    actions = ("approve_selected", "reject_selected")
    empty_message = gettext_lazy("Nothing waits for a decision. When a call needs one, it shows here.")
    list_before_template = "admin/runs/approval/queue_link.html"

    def get_ordering(self, request: HttpRequest) -> Any:
        """Pending ones first, as every door has them; then those decided, the latest first."""
        waits = Case(When(status=ApprovalStatus.PENDING, then=F(queue.ORDER)), default=None)
        return (waits.asc(nulls_last=True), "-requested_at", "-id")

    # The list

    @admin.display(description=gettext_lazy("What would run"), ordering="tool_call__tool")
    def call(self, approval: Approval) -> str:
        lines = view.lines_of(approval)
        context = {
            "approval": approval,
            "capability": "" if approval.capability == approval.tool_call.tool else approval.capability,
            "lines": lines[:SHOWN_LINES],
            "more": max(len(lines) - SHOWN_LINES, 0),
        }
        return render_to_string("admin/runs/approval/call.html", context)

    @admin.display(description=gettext_lazy("For"), ordering="run__user__username")
    def for_whom(self, approval: Approval) -> str:
        run = approval.run
        where = f"{run.project}, {run.group}" if run.group else run.project
        return format_html(
            '<span class="dp-strong">{}</span> <span class="dp-help">{}</span>'
            '<span class="dp-block">{}</span>',
            *(run.user, where, truncatechars(redact.shown(run.goal), 90)),
        )

    @admin.display(description=gettext_lazy("Why"))
    def why_short(self, approval: Approval) -> str:
        return str(truncatechars(approval.explanation, 120))

    @admin.display(description=gettext_lazy("Asked"), ordering="requested_at")
    def age(self, approval: Approval) -> str:
        return times.ago(approval.requested_at)

    @admin.display(description=gettext_lazy("Expires"), ordering="expires_at")
    def expiry(self, approval: Approval) -> str:
        return times.left(approval.expires_at) if approval.status == ApprovalStatus.PENDING else ""

    @admin.display(description=gettext_lazy("Status"), ordering="status")
    def state(self, approval: Approval) -> str:
        said = words.badge(approval.get_status_display(), words.tone(approval.status))
        why = view.single_only(approval) if approval.status == ApprovalStatus.PENDING else ""
        if why:  # seen before rows are chosen; calls of one run and tool are one question all the same
            return format_html('{} <span class="dp-help" title="{}">{}</span>', said, why, _("one by one"))
        return said

    def headings_of(self, found: list[Approval]) -> list[str]:
        """Above the first of several pending calls of one tool by one run: what they are, as people's own
        page has it.
        """
        said = {group.entries[0].pk: _heading(group) for group in queue.grouped_rows(found)}
        return [said.get(one.pk, "") for one in found]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """The list, with how many wait for this person, which its title says."""
        count = decidable(request).count() if self.has_view_permission(request) else 0
        answer: HttpResponse = super().changelist_view(
            request, {"queue_count": count, **(extra_context or {})}
        )
        return answer

    # Its page

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("next/", wrap(require_safe(self.next_view)), name="runs_approval_next"),
            path("<str:object_id>/state/", wrap(require_safe(self.state_view)), name="runs_approval_state"),
            *super().get_urls(),
        ]

    def next_view(self, request: HttpRequest) -> HttpResponse:
        """The approval that has waited longest for this person, or the list where nothing does."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return _to(queue.next_after(waiting(request), ""))

    def state_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Whether it is still pending, and what became of it in words: {pending, said}."""
        approval = self.visible_or_404(request, object_id)
        pending = approval.status == ApprovalStatus.PENDING
        answer = JsonResponse({"pending": pending, "said": "" if pending else fate(approval)})
        answer["Cache-Control"] = "no-store"
        return answer

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        approval = self.visible_or_404(request, object_id)
        if request.method == "POST":
            return self._decide_one(request, approval)
        return self._page(request, approval.pk, extra_context=extra_context)

    def _page(
        self,
        request: HttpRequest,
        approval_id: str,
        remember: RememberForm | None = None,
        extra_context: Any = None,
    ) -> HttpResponse:
        """The approval's page; `remember`: what was said of calls like it and could not be kept.

        What somebody wrote and could not be kept stands in its fields again.
        """
        approval = (
            self.get_queryset(request)
            .select_related("tool_call", "run__user", "run__project", "run__group", "run__role", "decided_by")
            .get(pk=approval_id)
        )
        if not offered(approval, actor_at(request, approval)):
            remember = None
        elif remember is None:
            remember = RememberForm(approval.arguments)
        waits = waiting(request)
        context = {
            **self.admin_site.each_context(request),
            **view.page(
                approval, actor_at(request, approval), request.user, self.get_queryset(request), request
            ),
            "title": _("Approval"),
            "subtitle": None,
            "opts": self.opts,
            "door": "admin",
            "state": reverse("admin:runs_approval_state", args=[approval.pk]),
            "path": path_to(approval.run_id),
            "remember": remember,
            "recalled": recalled.behind(request, approval.run, view.asking(approval)),
            "alike": view.alike(approval) if approval.status == ApprovalStatus.PENDING else [],
            "checkbox": ACTION_CHECKBOX_NAME,
            **queue.place(waits, approval.pk),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/runs/approval/page.html", context)

    def _decide_one(self, request: HttpRequest, approval: Approval) -> HttpResponse:
        """Decide, and open the next one that waits; what is refused stays on the page, as written."""
        waits, remember = waiting(request), None
        if request.POST.get("decision") == "approve_always":
            remember = RememberForm(approval.arguments, request.POST)
        if self._take(request, approval, request.POST.get("decision", ""), remember):
            chosen = [
                pk for pk in request.GET.get("then", "").split(THEN) if pk in waits and pk != approval.pk
            ]
            if chosen:
                return _one_by_one(chosen)
            return _to(queue.next_after(waits, approval.pk) or newest(approval))
        return self._page(request, approval.pk, remember)

    def _take(
        self, request: HttpRequest, approval: Approval, decision: str, remember: RememberForm | None
    ) -> bool:
        """One decision as the page's form says it. False: refused, in words."""
        reason = request.POST.get("reason", "")
        try:
            edit.check_taken(decision, approval.arguments, request.POST)
        except edit.NotReadable as refused:
            self._say(request, approval, str(refused), messages.ERROR)
            return False
        if decision == "approve_always" and remember is not None:
            if not remember.is_valid():
                self._say(request, approval, _("Nothing was decided: see below."), messages.ERROR)
                return False
            return self._decide(request, approval, "approve", reason, remember=remember.remember())
        if decision not in (edit.AS_JSON, edit.FIELDS):
            return self._decide(request, approval, decision, reason)
        try:
            arguments = _changed(request, approval, decision)
        except edit.NotReadable as refused:
            self._say(request, approval, str(refused), messages.ERROR)
            return False
        unchanged = same(arguments, approval.arguments)
        return self._decide(request, approval, "approve", reason, None if unchanged else arguments)

    def _decide(
        self,
        request: HttpRequest,
        approval: Approval,
        decision: str,
        reason: str,
        arguments: dict[str, Any] | None = None,
        remember: decide.Remember | None = None,
        digest: str | None = None,
    ) -> bool:
        """Take one decision about what the form showed, and say what came of it. False when refused."""
        digest, actor = digest or request.POST.get("arguments_digest"), actor_at(request, approval)
        try:
            if decision == "approve":
                decided = decide.approve(approval.pk, actor, digest, reason.strip(), arguments, remember)
            elif decision == "reject":
                decided = decide.reject(approval.pk, actor, digest, reason)
            else:
                self._say(request, approval, _("Say whether to approve or to reject."), messages.ERROR)
                return False
        except decide.DecisionRefused as refused:
            if refused.code == "NOT_ENTITLED" and not self.has_decide_permission(request):
                raise PermissionDenied(refused.message) from None
            self._say(request, approval, _(refused.message), messages.ERROR)
            return False
        if decided.status == ApprovalStatus.PENDING:
            said = _("Your approval counts; {count} people have to approve.")
            if decided.pk != approval.pk and not decided.decisions.filter(user=actor.user).exists():
                said = _("Changed; with these arguments somebody else has to decide.")
            self._say(request, approval, said.format(count=decided.deciders_needed), messages.SUCCESS)
        elif decided.decided_by_id != request.user.pk:
            said = _("{who} has meanwhile decided the same; nothing changed.")
            self._say(request, approval, said.format(who=decided.decided_by), messages.WARNING)
        elif decision == "approve":
            said = _("Approved; the call runs now.")
            always = f" {_('Calls like it pass from now on.')}" if remember else ""
            self._say(request, approval, said + always, messages.SUCCESS)
        else:
            self._say(request, approval, _("Rejected; the agent is told why."), messages.SUCCESS)
        return True

    def _say(self, request: HttpRequest, approval: Approval, said: str, level: int) -> None:
        """The words, with a way back to what they are about."""
        link = reverse("admin:runs_approval_change", args=[approval.pk])
        about = format_html(
            '<a class="dp-link" href="{}">{}, {}</a>: {}',
            link,
            approval.tool_call.tool,
            approval.run.user,
            said,
        )
        self.message_user(request, about, level)

    # Several at once

    @admin.action(description=gettext_lazy("Approve…"), permissions=["decide"])
    def approve_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._several(request, queryset, "approve")

    @admin.action(description=gettext_lazy("Reject…"), permissions=["decide"])
    def reject_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._several(request, queryset, "reject")

    def _several(self, request: HttpRequest, queryset: Any, decision: str) -> HttpResponse | None:
        """Show every argument of every call first; decide what is confirmed, as it was shown."""
        rows = queryset.order_by("id").select_related("tool_call", "run__user", "run__project")
        found = list(rows.filter(status=ApprovalStatus.PENDING))
        gone = queryset.count() - len(found)
        if gone:
            self.message_user(
                request, _("Decided or withdrawn meanwhile: {count}.").format(count=gone), messages.WARNING
            )
        like = len({(a.run_id, a.tool_call.tool) for a in found}) == 1
        single = {a.pk: why for a in found if decision == "approve" and (why := view.single_only(a, like))}
        together = [approval for approval in found if approval.pk not in single]
        alone = [approval for approval in found if approval.pk in single]
        if request.POST.get("confirmed") and together:
            reason = request.POST.get("reason", "").strip()
            if decision == "approve" or reason:
                self._decide_several(request, together, decision, reason)
                return _one_by_one(list(single)) if single else None
            said = _("A rejection needs a reason: the agents are told it.")
            self.message_user(request, said, messages.ERROR)
        if not found:
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Approve these calls?") if decision == "approve" else _("Reject these calls?"),
            "decision": decision,
            "then": THEN.join(single),
            "together": view.shown(together, self.get_queryset(request)),
            "single": [(item, single[item.approval.pk]) for item in view.shown(alone)],
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/runs/approval/several.html", context)

    def _decide_several(
        self, request: HttpRequest, approvals: list[Approval], decision: str, reason: str
    ) -> None:
        for approval in approvals:
            digest = request.POST.get(f"digest-{approval.pk}", "")
            self._decide(request, approval, decision, reason, digest=digest)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether the actions are offered; each approval is decided, or refused, by itself."""
        return any(holds(actor, deciders.PERMISSION) for actor in actors_of(request))


def actor_at(request: HttpRequest, approval: Approval) -> Actor:
    """Whoever is signed in, as a member of the approval's organization."""
    return Actor.of_request(request, approval.organization_id)


def waiting(request: HttpRequest) -> list[str]:
    """The ids of the pending approvals this person could decide, the oldest first."""
    return list(queue.in_order(decidable(request)).values_list("pk", flat=True)[:QUEUE])


def newest(approval: Approval) -> str:
    """The id of the last approval of the same call: the one about changed arguments, where they were."""
    same = Approval.objects.filter(tool_call_id=approval.tool_call_id).order_by("-id")
    return str(same.values_list("pk", flat=True)[0])


def _one_by_one(chosen: list[str]) -> HttpResponse:
    """The first of these; the others open after it, each when the one before is decided."""
    answer = _to(chosen[0])
    answer["Location"] += f"?{urlencode({'then': THEN.join(chosen)})}"
    return answer


def _to(approval_id: str | None) -> HttpResponse:
    if approval_id is None:
        return redirect("admin:runs_approval_changelist")
    return redirect("admin:runs_approval_change", approval_id)


def _changed(request: HttpRequest, approval: Approval, decision: str) -> dict[str, Any]:
    """The arguments as the decider wants them. Raises edit.NotReadable."""
    if decision == edit.FIELDS:
        return edit.read(approval.arguments, request.POST)
    try:
        arguments = edit.parsed(request.POST.get("arguments", ""))
    except Problem:
        raise edit.NotReadable(_("The changed arguments are not JSON; nothing was decided.")) from None
    if not isinstance(arguments, dict):
        raise edit.NotReadable(_("The arguments are a JSON object; nothing was decided."))
    return arguments


def _heading(group: queue.Rows) -> str:
    if len(group.entries) < 2:
        return ""
    return render_to_string("admin/runs/approval/heading.html", {"group": group, "run": group.entries[0].run})
