"""Bringing vectors up to date: read a batch, ask the model, write it; resumed wherever it stopped."""

import logging
import time
from collections.abc import Callable

from common.db import session_lock
from memory.embeddings import client, store
from memory.embeddings.client import EmbeddingFailed, Vector
from memory.embeddings.models import EmbeddingModel, configured
from memory.embeddings.store import Text

logger = logging.getLogger(__name__)

BATCH = 64  # texts asked for at once
TIMEOUT = 60.0  # seconds for a batch
PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds after a failure that may pass, before it is passed on
SLICE = 45.0  # seconds of one turn in the background
ALONE = "hashtextextended('memory.embeddings.filling', 0)"

Report = Callable[[int], None]  # told after each batch how many were embedded in it


def fill(*, everything: bool = False, seconds: float | None = None, report: Report | None = None) -> int:
    """Embed what has no vector yet; returns how many. Nothing, where no model is set.

    Outside any transaction, by one process at a time: what another is at is left to it. `everything` waits
    for the other and looks at all memories again, not only at those since the last time; `seconds` ends it
    early. Raises BadModel, EmbeddingFailed, store.Unprepared; what was embedded by then is kept.
    """
    model = configured()
    if model is None:
        return 0
    with session_lock(ALONE, wait=everything) as alone:
        return _fill(model, everything, seconds, report) if alone else 0


def fill_quietly() -> int:
    """A bounded turn of it in the background: what goes wrong is logged, and tried again next time."""
    try:
        return fill(seconds=SLICE)
    except (ValueError, EmbeddingFailed, store.Unprepared) as error:
        logger.warning("memories wait for their vectors: %s", error)
        return 0


def _fill(model: EmbeddingModel, everything: bool, seconds: float | None, report: Report | None) -> int:
    started, done = time.monotonic(), 0
    reached = store.reached(model)
    after = "" if everything else reached
    while texts := (edited := store.stale(BATCH)) or store.missing(model, after, BATCH):
        written = _embed(model, texts)
        done += written
        if not edited:
            after = texts[-1].id
            store.settled_until(model, after)
        if report:
            report(written)
        if seconds is not None and time.monotonic() - started > seconds:
            return done
    store.settled_until(model)
    return done


def _embed(model: EmbeddingModel, texts: list[Text]) -> int:
    vectors = _asked(model, texts)
    if dimensions := next((len(vector) for vector in vectors if vector), 0):
        store.prepare(model, dimensions)
    return store.write(model, texts, vectors)


def _asked(model: EmbeddingModel, texts: list[Text]) -> list[Vector | None]:
    """A vector for each text; None for one that the model refuses even alone."""
    try:
        return list(_patiently(model, texts))
    except EmbeddingFailed as failed:
        if failed.retryable:
            raise
        if len(texts) == 1:
            logger.warning("%s is found by its words alone: %s", texts[0].id, failed)
            return [None]
        half = len(texts) // 2
        return _asked(model, texts[:half]) + _asked(model, texts[half:])


def _patiently(model: EmbeddingModel, texts: list[Text]) -> list[Vector]:
    for pause in PAUSES:
        try:
            return client.embed(model, [text.content for text in texts], TIMEOUT)
        except EmbeddingFailed as failed:
            if not failed.retryable:
                raise
            time.sleep(pause)
    return client.embed(model, [text.content for text in texts], TIMEOUT)
