"""Merge deposits that say what their project knows already, and keep both sources."""

import logging
from collections.abc import Iterable, Mapping
from math import hypot

from django.db import transaction

from memory import curate, statistics
from memory.embeddings import client
from memory.embeddings.client import EmbeddingFailed, Vector
from memory.embeddings.models import BadModel, configured
from memory.errors import MemoryRefused
from memory.likeness import alike, contradict, may_be_alike
from memory.models import Memory, MemoryStatus, MemoryType
from memory.search import Hit, memory_search
from memory.substance import OUTPUT_PREFIX

logger = logging.getLogger(__name__)

CONTRADICTS = "contradicts"  # metadata.review_reason of what denies something known
LOOKED_AT = 20  # as many may be deposited alike before the first of them joins
TIMEOUT = 10.0  # seconds for the vectors of one deposit and of what it may repeat

Vectors = Mapping[str, Vector]


def join_duplicates(memory_ids: Iterable[str]) -> list[tuple[str, str]]:
    """Let new deposits join what their project knows already; returns (joined, kept) ids.

    Each under its project's lock, in a transaction of its own. What joins is superseded and becomes a
    source of the one that stays; `curate.restore` undoes it. Doing it again changes nothing.
    """
    joined = []
    for memory_id in memory_ids:
        vectors = _vectors(memory_id)  # a model is asked outside the transaction
        with transaction.atomic():
            kept = _join(memory_id, vectors)
        if kept is not None:
            joined.append((memory_id, kept))
    return joined


def _vectors(memory_id: str) -> Vectors:
    """Of a deposit and of what it may repeat, where a model could decide it; none if no model answers."""
    memory = _deposit(memory_id)
    if memory is None:
        return {}
    try:
        model = configured()
        if model is None:
            return {}
        text = _said(memory.content)
        texts = [known for known in map(_text, _known(memory)) if may_be_alike(text, known)]
        asked = [text, *texts] if texts else []
        return dict(zip(asked, client.embed(model, asked, TIMEOUT), strict=True)) if asked else {}
    except (BadModel, EmbeddingFailed) as error:
        logger.warning("%s is compared by its words alone: %s", memory_id, error)
        return {}


def _join(memory_id: str, vectors: Vectors) -> str | None:
    memory = _deposit(memory_id)
    if memory is None:
        return None
    statistics.lock(f"memory.join.{memory.scope_key}")
    memory.refresh_from_db()
    if memory.status != MemoryStatus.ACTIVE:
        return None
    text = _said(memory.content)
    for hit in _known(memory):
        known = _text(hit)
        if contradict(text, known):
            _doubt(memory, hit.id)
            return None
        if alike(text, known, near(vectors, text, known)):
            try:
                curate.merge(hit.id, [memory.id], by=None)
            except MemoryRefused:  # somebody retracted one of them meanwhile
                return None
            return hit.id
    return None


def _deposit(memory_id: str) -> Memory | None:
    return Memory.objects.filter(id=memory_id, type=MemoryType.ARCHIVAL).first()


def _known(memory: Memory) -> list[Hit]:
    """What its project knew before it, of other runs, the likest first."""
    hits = memory_search(_said(memory.content), memory.scope, type=MemoryType.ARCHIVAL, limit=LOOKED_AT)
    same_run = memory.source_run_id
    return [hit for hit in hits if hit.id < memory.id and (same_run is None or hit.source_run_id != same_run)]


def _text(hit: Hit) -> str:
    return _said(hit.content)


def _said(content: str) -> str:
    return content.removeprefix(OUTPUT_PREFIX)


def near(vectors: Vectors, one: str, other: str) -> float | None:
    """The cosine of two texts' vectors; None where one of them has none."""
    first, second = vectors.get(one), vectors.get(other)
    if first is None or second is None:
        return None
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return product / (hypot(*first) * hypot(*second))


def _doubt(memory: Memory, known: str) -> None:
    """Put a deposit that denies what is known to a curator: it is found again once they approve it."""
    memory.metadata |= {"review_reason": CONTRADICTS, "contradicts": [known]}
    memory.status = MemoryStatus.PENDING_REVIEW
    memory.save(update_fields=["metadata", "status"])
