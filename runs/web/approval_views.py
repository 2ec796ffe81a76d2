"""What waits for decisions: those to decide, and those of one's own runs to follow."""

from typing import Any

from django.contrib import messages
from django.db import connection
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from common.api import slots
from common.api.errors import Problem
from common.canonical import same
from runs.api import queue_stream
from runs.api.readers import Reader
from runs.deciding import edit, queue, view
from runs.deciding.view import fate
from runs.models import Approval
from runs.models.choices import ApprovalStatus
from runs.web import access, doing, pages
from runs.web.access import MemberRequest, member
from runs.web.following import all_followed, followed

DECIDED = 20  # of the latest that are listed


@require_safe
@member
def waiting(request: MemberRequest) -> HttpResponse:
    """Everything that waits for this person, and what they wait for."""
    mine = access.own_pending(request)
    decided = access.approvals(request).exclude(status=ApprovalStatus.PENDING).order_by("-id")
    context = {
        "to_decide": queue.grouped(view.shown(access.to_decide(request))),
        "questions": _questions(request),
        "followed": all_followed(mine),
        "decided": [(approval, fate(approval)) for approval in decided[:DECIDED]],
        "here": "waiting",
    }
    return pages.page(request, "web/waiting.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@member
def together(request: MemberRequest) -> HttpResponse:
    """Calls of one tool in one run, each shown whole, and one decision; those that take a page of their own
    open after it.
    """
    named = (request.POST if request.method == "POST" else request.GET).getlist("id")[: access.MOST_ASKED]
    found = list(
        queue.in_order(access.approvals(request).filter(pk__in=named, status=ApprovalStatus.PENDING))
    )
    like = len({(one.run_id, one.tool_call.tool) for one in found}) == 1
    single = {one.pk: why for one in found if (why := view.single_only(one, like))}
    chosen = [one for one in found if one.pk not in single]
    if request.method == "POST" and _decide_each(request, chosen):
        return redirect("web:approval", next(iter(single))) if single else redirect("web:waiting")
    if not found:
        return redirect("web:waiting")
    shown = view.shown(found, access.approvals(request))
    context = {
        "together": [one for one in shown if one.approval.pk not in single],
        "single": [(one, single[one.approval.pk]) for one in shown if one.approval.pk in single],
        "reason": request.POST.get("reason", ""),
        "here": "waiting",
    }
    return pages.page(request, "web/together.html", context)


def _decide_each(request: MemberRequest, chosen: list[Approval]) -> bool:
    """One decision about each of them, as it was shown. False where none was taken."""
    approve, reason = request.POST.get("decision") == "approve", request.POST.get("reason", "")
    taken = 0
    for one in chosen:
        try:
            doing.decide_one(request, one, approve, request.POST.get(f"digest-{one.pk}", ""), reason)
            taken += 1
        except doing.Refused as refused:
            messages.error(request, str(refused))
    if taken:
        said = _("{count} approved.") if approve else _("{count} rejected.")
        messages.success(request, said.format(count=taken))
    return taken > 0


@require_safe
@member
def follow(request: MemberRequest) -> HttpResponseBase:
    """Word that the queue has changed; the page then asks for it again."""
    here = request.membership.organization_id
    if not connection.in_atomic_block:
        connection.close()  # a stream holds none
    try:
        slot = slots.take(request.user, None, here)
    except Problem as refused:
        return JsonResponse(refused.problem, status=refused.status_code, headers=refused.headers)
    reader = Reader.of_browser(request, here, None)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    stream = queue_stream.changes(reader, slot)
    return StreamingHttpResponse(stream, content_type="text/event-stream", headers=headers)


@require_safe
@member
def to_decide(request: MemberRequest) -> HttpResponse:
    """The queue alone, for a page that follows it."""
    found = queue.grouped(view.shown(access.to_decide(request)))
    return render(request, "web/to_decide.html", {"to_decide": found})


def _questions(request: MemberRequest) -> list[dict[str, Any]]:
    """The open questions of one's runs, with their words."""
    found = []
    for wait in access.own_waits(request)[:50]:
        asked = wait.run.events.filter(type="tool.waits", payload__correlation_key=wait.correlation_key)
        payload = asked.values_list("payload", flat=True).first() or {}
        found.append({"wait": wait, "root": wait.run.root, "text": payload.get("question", "")})
    return found


@require_http_methods(["GET", "HEAD", "POST"])
@member
def approval(request: MemberRequest, approval_id: str) -> HttpResponse:
    """Exactly what would run, why, and for those who may: the decision."""
    found = access.approval_or_404(request, approval_id)
    if request.method == "POST":
        return _decide(request, found)
    return _page(request, found)


def _page(request: MemberRequest, found: Approval, status: int = 200) -> HttpResponse:
    context = {
        **view.page(found, request.actor, request.user, access.approvals(request), request),
        **queue.place(access.queue(request), found.pk),
        "door": "web",
        "state": reverse("web:approval_state", args=[found.pk]),
        "mine": found.run.user_id == request.user.pk,
        "followed": followed(found),
        "here": "waiting",
    }
    return pages.page(request, "web/approval.html", context, status)


@require_safe
@member
def state(request: MemberRequest, approval_id: str) -> JsonResponse:
    """Whether it is still pending, and what became of it in words: {pending, said}."""
    found = access.look_up(request, approval_id)
    return JsonResponse({"pending": found.status == ApprovalStatus.PENDING, "said": fate(found)})


def _decide(request: MemberRequest, found: Approval) -> HttpResponse:
    """Decide what was shown; what is refused stays on the page, as it was written."""
    decision = request.POST.get("decision", "")
    try:
        if decision not in ("approve", edit.FIELDS, "reject"):
            raise doing.Refused(_("Say whether to approve or to reject."))
        arguments = _changed(request, found, decision)
        approve = decision != "reject"
        digest, reason = request.POST.get("arguments_digest", ""), request.POST.get("reason", "")
        decided = doing.decide_one(request, found, approve, digest, reason, arguments)
    except doing.Refused as refused:
        messages.error(request, str(refused))
        found.refresh_from_db()
        return _page(request, found, 422)
    messages.success(request, _outcome(decided, approve))
    return redirect("web:approval", decided.pk)  # another one, where the arguments were changed


def _changed(request: MemberRequest, found: Approval, decision: str) -> dict[str, Any] | None:
    """The arguments as the form has them; None where nothing was changed, and but for the button that takes
    them. Raises Refused.
    """
    before = found.arguments
    try:
        edit.check_taken(decision, before, request.POST)
        if decision != edit.FIELDS:
            return None
        arguments = edit.read(before, request.POST)
    except edit.NotReadable as unreadable:
        raise doing.Refused(str(unreadable)) from None
    return None if same(arguments, before) else arguments


def _outcome(decided: Approval, approve: bool) -> str:
    if decided.status == ApprovalStatus.PENDING:
        said = _("Your approval counts; {count} people have to approve.")
        return said.format(count=decided.deciders_needed)
    return _("Approved; the call runs now.") if approve else _("Rejected; the agent is told why.")
