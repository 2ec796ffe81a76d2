"""What the pages about memories share: who curates, how one searches, what is shown and done."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from common import redact
from groups.actors import Actor
from groups.admin.searching import SearchesWhatIsShown
from memory import curate
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryStatus
from policy.authority import NotAllowed

TONES = {
    MemoryStatus.ACTIVE: "success",
    MemoryStatus.PENDING_REVIEW: "warning",
    MemoryStatus.RETRACTED: "danger",
}


class Acting(SearchesWhatIsShown):
    """For a ModelAdmin of memories. What a person may not see is a 404."""

    masked_text = "content"

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> Any:
        raise Http404(f"No {opts.verbose_name} {object_id}.")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """To be shown, and edited as it is shown: without keys. Nobody saves this row itself."""
        found = super().get_object(request, object_id, from_field)  # type: ignore[misc]
        if found is not None:
            found.content, found.metadata = redact.shown(found.content), redact.masked(found.metadata)
        return found

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("memory.curate_memory"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if search_term.strip().startswith("run_"):
            return queryset.from_run(search_term.strip()), False  # type: ignore[attr-defined]
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description=gettext_lazy("content"))
    def text(self, memory: Memory) -> str:
        return memory.title if len(memory.title) <= 120 else f"{memory.title[:119]}…"

    @display(description=gettext_lazy("status"), ordering="status", label=TONES)  # type: ignore[untyped-decorator]
    def state(self, memory: Memory) -> tuple[str, str]:
        return memory.status, memory.get_status_display()

    @admin.display(description=gettext_lazy("source run"), ordering="source_run_id")
    def run(self, memory: Memory) -> SafeString | str:
        return run_link(memory.source_run_id)

    @admin.action(description=gettext_lazy("Retract"), permissions=["curate"])
    def retract(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self.each(request, queryset, curate.retract, _("{count} retracted."))

    @admin.action(description=gettext_lazy("Restore"), permissions=["curate"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self.each(request, queryset, curate.restore, _("{count} restored."))

    def actor_at(self, request: HttpRequest, memory_id: str) -> Actor:
        """Whoever is signed in, as a member of the memory's organization."""
        found = Memory.objects.filter(pk=memory_id).values_list("organization_id", flat=True).first()
        return Actor.of_request(request, found)

    def each(
        self, request: HttpRequest, queryset: QuerySet[Memory], verb: Callable[..., Memory], done: str
    ) -> None:
        count = 0
        for memory_id in queryset.order_by("id").values_list("id", flat=True):
            try:
                verb(memory_id, self.actor_at(request, memory_id))
                count += 1
            except (MemoryRefused, NotAllowed) as refused:
                self.message_user(request, f"{memory_id}: {refused}", messages.ERROR)  # type: ignore[attr-defined]
        if count:
            self.message_user(request, done.format(count=count), messages.SUCCESS)  # type: ignore[attr-defined]


def run_link(run_id: str | None) -> SafeString | str:
    if not run_id:
        return "-"
    try:
        return format_html(
            '<a class="dp-link" href="{}">{}</a>', reverse("admin:runs_run_change", args=[run_id]), run_id
        )
    except NoReverseMatch:
        return run_id
