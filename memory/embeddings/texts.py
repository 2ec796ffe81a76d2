"""Vectors of texts that are no memories: what groups say of themselves, and the goals they are known for.

Each is embedded once, in the background, and kept in the database; routing reads them (groups.meaning).
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from django.conf import settings

from common.db import execute, rows
from memory.embeddings import client, questions
from memory.embeddings.client import EmbeddingFailed, Vector
from memory.embeddings.models import configured
from memory.embeddings.store import literal

logger = logging.getLogger(__name__)

BATCH = 64  # texts asked for at once
TIMEOUT = 60.0  # seconds for a batch
SLICE = 45.0  # seconds of one turn in the background
MOST_PRUNED = 100_000  # texts up to which those that are gone are looked for

KNOWN = "SELECT digest, vector FROM memory_textvector WHERE model = %s AND digest = ANY (%s)"
THERE = "SELECT digest FROM memory_textvector WHERE model = %s AND digest = ANY (%s)"
KEEP = """
INSERT INTO memory_textvector (model, digest, vector)
SELECT %s, digest, vector::real[] FROM unnest(%s::text[], %s::text[]) AS made (digest, vector)
ON CONFLICT DO NOTHING
"""
FORGET = "DELETE FROM memory_textvector WHERE model <> %s OR NOT digest = ANY (%s)"


def known(texts: Sequence[str]) -> Mapping[str, Vector]:
    """The vectors that are kept of these texts; none where no model is set. Asks no model."""
    if not settings.EMBEDDING_MODEL or not texts:
        return {}
    by_digest = {_digest(text): text for text in texts}
    found = rows(KNOWN, [settings.EMBEDDING_MODEL, list(by_digest)])
    return {by_digest[digest]: vector for digest, vector in found}


def of_goal(goal: str) -> Vector | None:
    """A goal's vector, as search has it: in a transaction only where it was asked for beforehand."""
    asked = questions.vector_of(goal) if goal.strip() else None
    return None if asked is None else json.loads(asked.vector)


def fill(texts: Iterable[str], seconds: float = SLICE) -> int:
    """Embed those of all these texts that have no vector yet, and forget all others; returns how many.

    Outside any transaction. Raises BadModel, EmbeddingFailed; what was embedded by then is kept.
    """
    model, started, done = configured(), time.monotonic(), 0
    if model is None:
        return 0
    wanted = list(dict.fromkeys(text for text in texts if text.strip()))
    there = {digest for (digest,) in rows(THERE, [model.name, [*map(_digest, wanted)]])}
    missing = [text for text in wanted if _digest(text) not in there]
    for at in range(0, len(missing), BATCH):
        batch = missing[at : at + BATCH]
        vectors = client.embed(model, batch, TIMEOUT)
        execute(KEEP, [model.name, [*map(_digest, batch)], [literal(vector, "{}") for vector in vectors]])
        done += len(batch)
        if time.monotonic() - started > seconds:
            return done
    if len(wanted) <= MOST_PRUNED:
        execute(FORGET, [model.name, [*map(_digest, wanted)]])
    return done


def fill_quietly(texts: Iterable[str]) -> int:
    """The same in the background: what goes wrong is logged, and tried again next time."""
    try:
        return fill(texts)
    except (ValueError, EmbeddingFailed) as error:
        logger.warning("groups are chosen by words alone: %s", error)
        return 0


def embed(texts: Sequence[str]) -> Mapping[str, Vector]:
    """These texts' vectors, asked of the model now and kept nowhere: for measurements. Raises as `fill`."""
    model = configured()
    if model is None:
        return {}
    wanted = [text for text in dict.fromkeys(texts) if text.strip()]
    found: dict[str, Vector] = {}
    for at in range(0, len(wanted), BATCH):
        batch = wanted[at : at + BATCH]
        found |= zip(batch, client.embed(model, batch, TIMEOUT), strict=True)
    return found


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()
