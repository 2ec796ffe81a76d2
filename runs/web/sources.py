"""The memories that an answer rests on, as far as its person may read them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.models import Memory
from runs.models import RunEvent
from runs.models.choices import EventType
from runs.web import access
from runs.web.access import MemberRequest

SHOWN_SOURCES = 8
PASSAGE = 40  # characters that have to be the same for an answer to repeat a memory


@dataclass(frozen=True)
class Source:
    """A memory that stood before the agent when it answered."""

    id: str
    text: str
    name: str


def behind(
    request: MemberRequest, answers: Mapping[str, str], events: Mapping[str, Sequence[RunEvent]]
) -> dict[str, list[Source]]:
    """The memories behind each answer: those it names or repeats, of what its agents were shown or found.

    `answers` by turn, and with the same keys the `events` of all its runs.
    """
    shown = {turn: list(_shown(events[turn])) for turn in answers}
    ids = {memory for found in shown.values() for memory in found}
    if not ids:
        return {}
    seen = access.memories(request).filter(pk__in=ids).defer("search_vector")
    known = {memory.pk: memory for memory in seen}
    return {
        turn: [
            _source(known[memory])
            for memory in shown[turn]
            if memory in known and quoted(known[memory], answer)
        ][:SHOWN_SOURCES]
        for turn, answer in answers.items()
    }


def _shown(events: Iterable[RunEvent]) -> dict[str, None]:
    """The ids of the memories that stood in a prompt or came back from a search, in order, each once."""
    found: dict[str, None] = {}
    for event in events:
        if event.type == EventType.MESSAGE_CREATED:
            found |= {str(memory.get("id")): None for memory in event.payload.get("memories") or []}
        elif event.type == EventType.TOOL_COMPLETED:
            found |= dict.fromkeys(_hits(event.payload.get("result")))
    return found


def _hits(result: Any) -> list[str]:
    """The ids of the memories in the result of a search."""
    hits = result.get("results") if isinstance(result, dict) else None
    return [str(hit["id"]) for hit in hits or [] if isinstance(hit, dict) and "id" in hit]


def quoted(memory: Memory, answer: str) -> bool:
    """Whether the answer names the memory, or repeats a passage of it word for word."""
    if memory.pk in answer:
        return True
    if memory.metadata.get("source") == "run_outcome":  # it remembers the question itself
        return False
    said = " ".join(answer.split())
    for line in memory.content.splitlines():
        text = " ".join(line.split())
        if len(text) >= PASSAGE // 2 and text[:PASSAGE] in said:
            return True
    return False


def _source(memory: Memory) -> Source:
    heading = next((line.strip("# ").strip() for line in memory.content.splitlines() if line.strip()), "")
    name = str(memory.metadata.get("path") or memory.metadata.get("title") or "")
    return Source(memory.pk, heading[:100], name)
