"""Talking to one's agent."""

from typing import Any

from django.contrib import messages
from django.db import connection
from django.http import Http404, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from common import redact
from common.api import slots
from common.api.errors import Problem
from runs.api import stream
from runs.api.readers import Reader
from runs.models import Run
from runs.models.choices import ACTIVE
from runs.web import access, conversations, doing, pages, suggestions, thread
from runs.web.access import MemberRequest, member
from runs.web.forms import AskForm

MOST_TURNS = 500
A_BEGINNER = 3  # conversations after which nothing is suggested any more


@require_safe
@member
def home(request: MemberRequest) -> HttpResponse:
    """A new conversation; what waits; on a first visit, what to try."""
    return _home(request, AskForm(request))


def _home(request: MemberRequest, form: AskForm, status: int = 200) -> HttpResponse:
    listed = conversations.listed(request)
    context = {
        "form": form,
        "first": not conversations.has_looked(request),
        "suggestions": suggestions.offered(request) if len(listed[0]) <= A_BEGINNER else [],
        "here": "new",
    }
    return pages.page(request, "web/home.html", context, status, listed)


@require_POST
@member
def ask(request: MemberRequest) -> HttpResponse:
    """Begin a conversation."""
    form = AskForm(request, None, request.POST, request.FILES)
    if not form.is_valid():
        for problem in form.problems():
            messages.error(request, problem)
        return _home(request, form, 422)
    try:
        run_id = _asked(request, form, doing.new_key())
    except doing.Refused as refused:
        messages.error(request, str(refused))
        return _home(request, form, 422)
    return redirect("web:conversation", run_id)


def _asked(request: MemberRequest, form: AskForm, session_key: str) -> str:
    said = form.cleaned_data
    group = said["group"].pk if said["group"] else None
    return doing.ask(request, said["project"], said["goal"], said["attachments"], session_key, group)


@require_safe
@member
def conversation(request: MemberRequest, run_id: str) -> HttpResponse:
    run = access.own_root(request, run_id)
    return _conversation(request, run, AskForm(request, run.project))


def _conversation(request: MemberRequest, run: Run, form: AskForm, status: int = 200) -> HttpResponse:
    shown = _shown(request)
    runs, earlier = conversations.latest(request, run, shown)
    kept = conversations.see(request, run)
    first = runs[0] if not earlier else conversations.turns(request, run).first()
    context = {
        "run": run,
        "first": first,
        "turns": thread.read(request, runs),
        "earlier": earlier,
        "more": shown + conversations.TURNS,
        "title": redact.shown(kept.title) or conversations.titled(first.goal if first else run.goal),
        "form": form,
        "busy": runs[-1].status in ACTIVE,
        "goes_on": bool(run.session_key) or runs[-1].status in ACTIVE,
        "with_composer": True,
        "here": first.pk if first else run.pk,
    }
    return pages.page(request, "web/conversation.html", context, status)


def _shown(request: MemberRequest) -> int:
    text = request.GET.get("turns", "")
    asked = text.isascii() and text.isdigit() and 0 < len(text) < 6
    return min(int(text), MOST_TURNS) if asked else conversations.TURNS


@require_POST
@member
def send(request: MemberRequest, run_id: str) -> HttpResponse:
    """The next words of a conversation: for the run at work where there is one, else a new turn."""
    run = access.own_root(request, run_id)
    form = AskForm(request, run.project, request.POST, request.FILES)
    last = conversations.turns(request, run).last()
    try:
        if not form.is_valid():
            raise doing.Refused(" ".join(form.problems()))
        if last is not None and last.status in ACTIVE:
            _say(request, last, form)
        elif not run.session_key:
            raise doing.Refused(_("This run has no session to carry on: begin a new conversation."))
        else:
            _asked(request, form, run.session_key)
    except doing.Refused as refused:
        messages.error(request, str(refused))
        return _conversation(request, run, form, 422)
    return redirect("web:conversation", run_id)


def _say(request: MemberRequest, run: Run, form: AskForm) -> None:
    """A word to the run at work. Files would be taken for the person's own words, so they wait."""
    if form.cleaned_data["attachments"]:
        raise doing.Refused(_("Your agent is at work: hand it files with the next goal."))
    if doing.tell(request, run, form.cleaned_data["goal"]) == "kept":
        messages.info(request, _("Your agent reads it next."))


@require_POST
@member
def answer(request: MemberRequest, run_id: str) -> HttpResponse:
    """Answer a question of the agent, or of a member of a group that works for it."""
    root = access.own_root(request, run_id)
    asked = access.own_runs(request).filter(pk=request.POST.get("run", ""), root=root).first()
    if asked is None:
        raise Http404
    said = request.POST.get("choice") or request.POST.get("content", "")
    _try(request, lambda: doing.say(request, asked, said, request.POST.get("key", "")))
    return redirect("web:conversation", run_id)


@require_POST
@member
def decline(request: MemberRequest, run_id: str) -> HttpResponse:
    """Not give what a call of the turn needs: it fails, and the agent goes on without."""
    root = access.own_root(request, run_id)
    asked = access.own_runs(request).filter(pk=request.POST.get("run", ""), root=root).first()
    if asked is None:
        raise Http404
    _try(request, lambda: doing.decline(request, asked, request.POST.get("key", "")))
    return redirect("web:conversation", run_id)


@require_POST
@member
def stop(request: MemberRequest, run_id: str) -> HttpResponse:
    run = access.own_root(request, run_id)
    _try(request, lambda: doing.stop(request, run))
    return redirect("web:conversation", run_id)


@require_POST
@member
def again(request: MemberRequest, run_id: str) -> HttpResponse:
    """The same goal once more, as a new turn."""
    run = access.own_root(request, run_id)
    try:
        new = doing.again(request, run)
    except doing.Refused as refused:
        messages.error(request, str(refused))
        return redirect("web:conversation", run_id)
    return redirect("web:conversation", new)


@require_POST
@member
def go_on(request: MemberRequest, run_id: str) -> HttpResponse:
    """A new conversation that knows what the run knew before its answer, and goes on with other words."""
    run = access.own_root(request, run_id)
    (turn,) = thread.read(request, [run])
    try:
        new = doing.go_on(request, run, turn.point, request.POST.get("content", ""))
    except doing.Refused as refused:
        messages.error(request, str(refused))
        return redirect("web:conversation", run_id)
    return redirect("web:conversation", new)


@require_POST
@member
def rate(request: MemberRequest, run_id: str) -> HttpResponse:
    run = access.own_root(request, run_id)
    good = request.POST.get("good") == "yes"
    note, wrong = request.POST.get("note", ""), request.POST.get("wrong_group") == "yes"
    if _try(request, lambda: doing.think_of(request, run, good, note, wrong)):
        messages.success(request, _("Thank you: your agent learns from it."))
    return redirect("web:conversation", run_id)


@require_POST
@member
def rename(request: MemberRequest, run_id: str) -> HttpResponse:
    run = access.own_root(request, run_id)
    conversations.rename(request, run, request.POST.get("title", ""))
    return redirect("web:conversation", run_id)


@require_safe
@member
def turn(request: MemberRequest, run_id: str) -> HttpResponse:
    """One turn as it stands now, for a page that follows it."""
    run = access.own_root(request, run_id)
    conversations.see(request, run)
    (found,) = thread.read(request, [run])
    return render(request, "web/turn.html", {"turn": found})


@require_safe
@member
def follow(request: MemberRequest, run_id: str) -> HttpResponseBase:
    """What happens in a turn, as the API streams it; the page reads it as hints."""
    run = access.own_root(request, run_id)
    if not connection.in_atomic_block:
        connection.close()  # a stream holds none
    cursor = stream.TreeCursor(run.pk, run.root_id, run.user_id)
    try:
        slot = slots.take(request.user, None, run.organization_id)
    except Problem as refused:
        return JsonResponse(refused.problem, status=refused.status_code, headers=refused.headers)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(
        stream.events(cursor, request.GET.get("last_event_id", ""), Reader.of_session(request, run), slot),
        content_type="text/event-stream",
        headers=headers,
    )


@require_safe
@member
def search(request: MemberRequest) -> HttpResponse:
    """The conversations in which words stand: the list alone for a script, else a page."""
    words = request.GET.get("q", "")
    number = request.GET.get("page", "")
    at = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else 0
    found, more = conversations.listed(request, words, at)
    context: dict[str, Any] = {"found": found, "more": more, "words": words, "next": at + 1}
    if request.headers.get("HX-Request"):
        return render(request, "web/list.html", {**context, "here": request.GET.get("here", "")})
    return pages.page(request, "web/conversations.html", {**context, "here": "conversations"})


@require_safe
@member
def count(request: MemberRequest) -> HttpResponse:
    """What waits, for the badges of a page that is open."""
    return render(request, "web/badges.html", {"waiting": pages.waiting(request)})


def _try(request: MemberRequest, act: Any) -> bool:
    """Do it, or say why it was refused."""
    try:
        act()
    except doing.Refused as refused:
        messages.error(request, str(refused))
        return False
    return True
