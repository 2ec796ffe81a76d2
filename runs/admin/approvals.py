"""Approvals: what waits for a decision, and deciding it."""

import json
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Case, IntegerField, Value, When
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from groups.admin.tenancy import History, Related, TenantAdmin
from policy.models import CapabilityRule
from runs.actions import decide
from runs.admin import knew, words
from runs.admin.family import path as path_to
from runs.admin.remember import RememberForm, offered
from runs.choices import ApprovalEffect, ApprovalStatus
from runs.models import Approval
from runs.tools import registry

REASONS = {
    "risk_default": "The tool's risk asks for it; no rule says otherwise.",
}
SHOWN_LINES = 4  # of the arguments, in the list


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return ApprovalStatus.choices

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(status=self.value()) if self.value() in ApprovalStatus.values else queryset


@dataclass(frozen=True)
class Shown:
    """An approval as its page and the confirmation of many show it."""

    approval: Approval
    arguments: list[words.Line]
    exact: str
    why: str
    rule: CapabilityRule | None
    age: str
    left: str
    risk: str
    tone: str

    @property
    def pending(self) -> bool:
        return self.approval.status == ApprovalStatus.PENDING


def shown(approvals: list[Approval]) -> list[Shown]:
    """Everything a decider needs; one query for all the rules."""
    now = timezone.now()
    ids = {approval.rule for approval in approvals}
    rules = {rule.pk: rule for rule in CapabilityRule.objects.select_related("capability").filter(pk__in=ids)}
    found = []
    for approval in approvals:
        arguments = arguments_of(approval)
        found.append(
            Shown(
                approval=approval,
                arguments=words.readable(arguments),
                exact=json.dumps(arguments, indent=2, ensure_ascii=False),
                why=approval.explanation or REASONS.get(approval.rule, ""),
                rule=rules.get(approval.rule),
                age=words.between(approval.requested_at, now),
                left=words.between(now, approval.expires_at),
                risk=risk_of(approval.tool_call.tool),
                tone=words.tone(approval.status),
            )
        )
    return found


def arguments_of(approval: Approval) -> Any:
    """What would run: the call's effective arguments, or as a decider changed them."""
    if approval.edited_arguments is not None:
        return approval.edited_arguments
    return approval.tool_call.effective_arguments


def risk_of(tool: str) -> str:
    """The tool's risk; a tool that is gone counts as high."""
    found = registry.get(tool)
    return found.risk_level if found else "high"


def single_only(approval: Approval) -> str:
    """Why this cannot be approved together with others; empty when it can."""
    if approval.effect == ApprovalEffect.REQUIRE_HUMAN:
        return "a person has to decide it on its own page"
    if approval.deciders_needed > 1:
        return f"{approval.deciders_needed} people have to decide it, each on its own page"
    if risk_of(approval.tool_call.tool) == "high":
        return f"{approval.tool_call.tool} is of high risk: decide it on its own page"
    return ""


@admin.register(Approval)
class ApprovalAdmin(History, TenantAdmin):
    """Decisions are taken here by runs.actions.decide and nowhere else."""

    project_lookup = "run__project_id"
    fixed = ()
    list_display = ("tool_name", "arguments_short", "for_whom", "why_short", "age", "expiry", "state")
    list_display_links = ("tool_name",)
    list_filter = (
        StatusFilter,
        ("effect", ChoicesDropdownFilter),
        ("run__project", Related),
        ("run__user", Related),
    )
    list_select_related = ("tool_call", "run__user", "run__project")
    search_fields = ("tool_call__tool", "capability", "run__goal", "id__exact", "run__id__exact")
    search_help_text = "A tool, a capability, words of the goal, or an id"
    actions = ("approve_selected", "reject_selected")
    empty_message = "Nothing waits for a decision. When a call needs one, it shows here."

    def get_ordering(self, request: HttpRequest) -> Any:
        """Pending ones first, then the latest."""
        pending = When(status=ApprovalStatus.PENDING, then=Value(0))
        return (Case(pending, default=Value(1), output_field=IntegerField()).asc(), "-requested_at", "-id")

    # The list

    @admin.display(description="Tool", ordering="tool_call__tool")
    def tool_name(self, approval: Approval) -> str:
        capability = approval.capability
        tool = approval.tool_call.tool
        return tool if capability in ("", tool) else f"{tool} ({capability})"

    @admin.display(description="Arguments")
    def arguments_short(self, approval: Approval) -> str:
        lines = words.readable(arguments_of(approval))
        context = {"lines": lines[:SHOWN_LINES], "more": max(len(lines) - SHOWN_LINES, 0)}
        return render_to_string("admin/runs/approval/arguments_short.html", context)

    @admin.display(description="For", ordering="run__user__username")
    def for_whom(self, approval: Approval) -> str:
        return f"{approval.run.user}: {approval.run.goal[:60]}"

    @admin.display(description="Why")
    def why_short(self, approval: Approval) -> str:
        return approval.explanation[:120]

    @admin.display(description="Age", ordering="requested_at")
    def age(self, approval: Approval) -> str:
        return words.between(approval.requested_at, timezone.now())

    @admin.display(description="Expires", ordering="expires_at")
    def expiry(self, approval: Approval) -> str:
        if approval.status != ApprovalStatus.PENDING or approval.expires_at is None:
            return ""
        left = (approval.expires_at - timezone.now()).total_seconds()
        return f"in {words.span(left)}" if left > 0 else "expired"

    @admin.display(description="Status", ordering="status")
    def state(self, approval: Approval) -> str:
        context = {"text": approval.get_status_display(), "tone": words.tone(approval.status)}
        return render_to_string("admin/runs/plain_badge.html", context)

    # Its page

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
        """The approval's page; `remember`: what was said of calls like it and could not be kept."""
        approval = (
            self.get_queryset(request)
            .select_related("tool_call", "run__user", "run__project", "run__group", "decided_by")
            .get(pk=approval_id)
        )
        if not offered(approval):
            remember = None
        elif remember is None:
            remember = RememberForm(arguments_of(approval))
        context = {
            **self.admin_site.each_context(request),
            "title": "Approval",
            "subtitle": None,
            "opts": self.opts,
            "shown": shown([approval])[0],
            "approval": approval,
            "run": approval.run,
            "path": path_to(approval.run_id),
            "refused": refusal(approval, request.user),
            "remember": remember,
            "knew": knew.behind(request, approval.run, approval.tool_call),
            "reason": request.POST.get("reason", ""),
            "decisions": list(approval.decisions.select_related("user").order_by("id")),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/runs/approval/page.html", context)

    def _decide_one(self, request: HttpRequest, approval: Approval) -> HttpResponse:
        if not self.has_decide_permission(request):
            raise PermissionDenied
        decision, reason = request.POST.get("decision", ""), request.POST.get("reason", "")
        shown_now = request.POST.get("digest") == approval.arguments_digest
        if not shown_now and not asks_for_what_stands(request, approval):
            self._say(request, approval, "has changed since you opened it: look again.", messages.ERROR)
        elif decision == "approve_edited":
            self._approve_edited(request, approval, reason)
        elif decision == "approve_always":
            form = RememberForm(arguments_of(approval), request.POST)
            if not self._approve_always(request, approval, reason, form):
                return self._page(request, approval.pk, form)
        else:
            self._decide(request, approval, decision, reason)
        return HttpResponseRedirect(reverse("admin:runs_approval_change", args=[approval.pk]))

    def _approve_always(
        self, request: HttpRequest, approval: Approval, reason: str, form: RememberForm
    ) -> bool:
        """Approve, and calls like this from now on. False: refused, and the form is to be shown again."""
        if form.is_valid():
            return self._decide(request, approval, "approve", reason, remember=form.remember())
        self._say(request, approval, "Nothing was decided: see below.", messages.ERROR)
        return False

    def _approve_edited(self, request: HttpRequest, approval: Approval, reason: str) -> None:
        try:
            arguments = json.loads(request.POST.get("arguments", ""))
        except (ValueError, RecursionError):
            self._say(
                request, approval, "The changed arguments are not JSON; nothing was decided.", messages.ERROR
            )
            return
        if not isinstance(arguments, dict):
            self._say(
                request, approval, "The arguments are a JSON object; nothing was decided.", messages.ERROR
            )
            return
        unchanged = arguments == arguments_of(approval)
        self._decide(request, approval, "approve", reason, None if unchanged else arguments)

    def _decide(
        self,
        request: HttpRequest,
        approval: Approval,
        decision: str,
        reason: str,
        arguments: dict[str, Any] | None = None,
        remember: decide.Remember | None = None,
    ) -> bool:
        """Take one decision and say what came of it. False when it was refused."""
        try:
            if decision == "approve":
                decided = decide.approve(approval.pk, request.user, reason.strip(), arguments, remember)
            elif decision == "reject":
                decided = decide.reject(approval.pk, request.user, reason)
            else:
                self._say(request, approval, "Say whether to approve or to reject.", messages.ERROR)
                return False
        except decide.DecisionRefused as refused:
            self._say(request, approval, refused.message, messages.ERROR)
            return False
        if decided.status == ApprovalStatus.PENDING:
            said = f"Your approval counts; {decided.deciders_needed} people have to approve."
            self._say(request, approval, said, messages.SUCCESS)
        elif decided.decided_by_id != request.user.pk:
            said = f"{decided.decided_by} has meanwhile decided the same; nothing changed."
            self._say(request, approval, said, messages.WARNING)
        elif decision == "approve":
            always = " Calls like it pass from now on." if remember else ""
            self._say(request, approval, f"Approved; the call runs now.{always}", messages.SUCCESS)
        else:
            self._say(request, approval, "Rejected; the agent is told why.", messages.SUCCESS)
        return True

    def _say(self, request: HttpRequest, approval: Approval, words: str, level: int) -> None:
        self.message_user(request, f"{approval.tool_call.tool}: {words}", level)

    # Several at once

    @admin.action(description="Approve…", permissions=["decide"])
    def approve_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._several(request, queryset, "approve")

    @admin.action(description="Reject…", permissions=["decide"])
    def reject_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self._several(request, queryset, "reject")

    def _several(self, request: HttpRequest, queryset: Any, decision: str) -> HttpResponse | None:
        """Show every argument of every call first; decide what is confirmed, as it was shown."""
        rows = queryset.order_by("id").select_related("tool_call", "run__user", "run__project")
        found = list(rows.filter(status=ApprovalStatus.PENDING))
        gone = queryset.count() - len(found)
        if gone:
            self.message_user(request, f"Decided or withdrawn meanwhile: {gone}.", messages.WARNING)
        single = {a.pk: single_only(a) for a in found if decision == "approve" and single_only(a)}
        together = [approval for approval in found if approval.pk not in single]
        if request.POST.get("confirmed") and together:
            reason = request.POST.get("reason", "").strip()
            if decision == "approve" or reason:
                return self._decide_several(request, together, decision, reason)
            self.message_user(request, "A rejection needs a reason: the agents are told it.", messages.ERROR)
        if not found:
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Approve these calls?" if decision == "approve" else "Reject these calls?",
            "decision": decision,
            "together": shown(together),
            "single": [
                (item, single[item.approval.pk]) for item in shown([a for a in found if a.pk in single])
            ],
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/runs/approval/several.html", context)

    def _decide_several(
        self, request: HttpRequest, approvals: list[Approval], decision: str, reason: str
    ) -> HttpResponse | None:
        for approval in approvals:
            if request.POST.get(f"digest-{approval.pk}") != approval.arguments_digest:
                self._say(request, approval, "Changed since it was shown, so not decided.", messages.ERROR)
            else:
                self._decide(request, approval, decision, reason)
        return None

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("runs.decide_approval"))


def asks_for_what_stands(request: HttpRequest, approval: Approval) -> bool:
    """Whether the form's changed arguments are the ones that stand already: sent twice, as a rule."""
    if request.POST.get("decision") != "approve_edited" or approval.edited_arguments is None:
        return False
    try:
        return bool(json.loads(request.POST.get("arguments", "")) == approval.edited_arguments)
    except (ValueError, RecursionError):
        return False


def refusal(approval: Approval, user: Any) -> str:
    """Why this person cannot decide this, in words; empty when they can."""
    try:
        decide.entitled(approval, user)
    except decide.DecisionRefused as refused:
        return refused.message
    return ""
