"""What one's agent knows of one: where it came from, to be corrected, deleted and taken along."""

import json
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from common import redact
from memory import own
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryType
from memory.write import MOST_CHARACTERS
from policy.authority import NotAllowed
from runs.models import Run
from runs.web import access, pages
from runs.web.access import MemberRequest, member

SHOWN = 50
KINDS = {
    "preference": gettext_lazy("Preference"),
    "core": gettext_lazy("Fact"),
    "episodic": gettext_lazy("Earlier task"),
}


@require_safe
@member
def known(request: MemberRequest) -> HttpResponse:
    """Preferences, facts and earlier tasks, the latest first."""
    words = request.GET.get("q", "").replace("\x00", "").strip()
    found = own.of(request.user, request.membership.organization_id).select_related("project")
    if words:
        found = found.filter(content__icontains=words[:200])
    shown = Paginator(found.defer("search_vector"), SHOWN).get_page(request.GET.get("page"))
    runs = _own_sources(request, shown.object_list)
    context = {
        "memories": [(memory, kind(memory), runs.get(memory.source_run_id or "")) for memory in shown],
        "shown": shown,
        "words": words,
        "here": "known",
    }
    return pages.page(request, "web/known.html", context)


def kind(memory: Memory) -> Any:
    if memory.metadata.get("pa_preference") is True:
        return KINDS["preference"]
    outcome = memory.metadata.get("source") == "run_outcome"
    return KINDS["episodic"] if outcome else KINDS["core"]


def _own_sources(request: MemberRequest, memories: Any) -> dict[str, str]:
    """The conversation each memory came from, where it is the person's own: run -> its root."""
    ids = {memory.source_run_id for memory in memories if memory.source_run_id}
    mine: Any = access.own_runs(request).filter(pk__in=ids)
    return dict(mine.values_list("pk", "root_id"))


@require_POST
@member
def correct(request: MemberRequest, memory_id: str) -> HttpResponse:
    content = request.POST.get("content", "")
    try:
        own.correct(memory_id, request.actor, content)
    except MemoryRefused as refused:
        if refused.code == "unknown_memory":
            raise Http404 from None
        if redact.MASK in content:
            told = _("It was not changed: write what stands hidden as {mask} anew, or leave it out.")
        else:
            told = _("It was not changed: write between 1 and {most} characters.")
        messages.error(request, told.format(most=MOST_CHARACTERS, mask=redact.MASK))
    except NotAllowed as refused:
        messages.error(request, _(refused.message))
    else:
        messages.success(request, _("Corrected."))
    return redirect("web:known")


@require_POST
@member
def forget(request: MemberRequest, memory_id: str) -> HttpResponse:
    try:
        own.forget(memory_id, request.actor)
    except MemoryRefused:
        raise Http404 from None
    messages.success(request, _("Deleted. Your agent does not know it any more."))
    return redirect("web:known")


@require_POST
@member
def forget_all(request: MemberRequest) -> HttpResponse:
    """All of it, once the person has said so twice."""
    if request.POST.get("sure") != "yes":
        messages.error(request, _("Nothing was deleted: tick that you are sure."))
        return redirect("web:known")
    count = own.forget_all(request.actor)
    said = ngettext("Deleted: {count} memory.", "Deleted: {count} memories.", count)
    messages.success(request, said.format(count=count))
    return redirect("web:known")


@require_safe
@member
def export(request: MemberRequest) -> HttpResponse:
    """Everything the agent keeps of the person, as JSON."""
    found = list(own.exported(request.user, request.membership.organization_id))
    body = json.dumps(found, ensure_ascii=False, indent=2)
    response = HttpResponse(body, content_type="application/json; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="what-my-agent-knows.json"'
    return response


@require_safe
@member
def source(request: MemberRequest, memory_id: str) -> HttpResponse:
    """One memory that an answer rests on, if the person may see it."""
    memory = access.memories(request).filter(pk=memory_id).select_related("project", "group").first()
    if memory is None:
        raise Http404
    mine: Any = access.own_runs(request).filter(pk=memory.source_run_id or "")
    context = {
        "memory": memory,
        "is_knowledge": memory.type == MemoryType.ARCHIVAL,
        "run": mine.values_list("root_id", flat=True).first(),
        "foreign": bool(memory.source_run_id) and Run.objects.filter(pk=memory.source_run_id).exists(),
        "here": "",
    }
    return pages.page(request, "web/source.html", context)
