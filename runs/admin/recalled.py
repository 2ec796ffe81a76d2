"""Why an agent knew something: the memories that stood in the prompt of a message."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from memory.models import DepositedKnowledge
from runs.admin import words
from runs.admin.timeline import Entry
from runs.models import Run
from runs.models.choices import RunKind

# what the tiers of a search are, for a person's own agent and for a group's member
TIERS: dict[str, dict[int, Any]] = {
    RunKind.PERSONAL: {
        1: gettext_lazy("the person's preference"),
        2: gettext_lazy("knowledge"),
        3: gettext_lazy("an earlier task"),
    },
    RunKind.GROUP: {
        1: gettext_lazy("the group's blackboard"),
        2: gettext_lazy("the project's core"),
        3: gettext_lazy("the agent's own"),
        4: gettext_lazy("knowledge"),
    },
}
SHOWN = 120  # characters of a memory


@dataclass(frozen=True)
class Known:
    """One memory. `text` is empty where it has no page, is gone, or is not the reader's to see."""

    id: str
    tier: str
    text: str


def fill(request: HttpRequest, run: Run, entries: Iterable[Entry]) -> None:
    """Give each message the memories it was written with; at most two queries for all of them."""
    told = [entry for entry in entries if entry.memories]
    texts = _texts(request, [memory for entry in told for memory in entry.memories])
    for entry in told:
        entry.recalled = [_known(run, memory, texts) for memory in entry.memories]


def behind(request: HttpRequest, run: Run, said: Mapping[str, Any]) -> list[Known]:
    """The memories in the prompt of a message, from its payload."""
    memories = said.get("memories") or []
    texts = _texts(request, memories)
    return [_known(run, memory, texts) for memory in memories]


def _texts(request: HttpRequest, memories: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The words of those that this person may open on the page of knowledge, by id."""
    ids = {str(memory.get("id")) for memory in memories}
    page = admin.site.get_model_admin(DepositedKnowledge)
    if not ids or not page.has_view_permission(request):
        return {}
    return dict(page.get_queryset(request).filter(pk__in=ids).order_by().values_list("pk", "content"))


def _known(run: Run, memory: Mapping[str, Any], texts: Mapping[str, str]) -> Known:
    id, tier = str(memory.get("id", "")), memory.get("tier")
    text = words.visible(texts.get(id, ""))
    short = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
    said = TIERS.get(run.kind, {}).get(tier, f"tier {tier}")  # type: ignore[arg-type]
    return Known(id, str(said), short)
