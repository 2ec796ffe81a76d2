"""The vector of a question. Where there is none, search goes by words alone and the log says why."""

import logging
import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from django.conf import settings
from django.db import connection

logger = logging.getLogger(__name__)

TIMEOUT = 3.0  # seconds; a worker's lease lasts longer
PATIENT = 60.0  # while measuring
SILENCE = 30.0  # seconds in which a server that failed is not asked again
KEPT = 256  # vectors of recent questions, in each process

_lock = threading.Lock()
_kept: OrderedDict[tuple[str, str], "Asked"] = OrderedDict()
_silent_until = 0.0


class Asked(NamedTuple):
    """A question as the statement takes it: its model's name, its vector as text, and how long that is."""

    model: str
    vector: str
    dimensions: int


def vector_of(question: str, waiting: bool = False) -> Asked | None:
    """The question's vector; None where no model is set, the server fails, or a transaction is open.

    A model is slow work, and no transaction waits for it: `warm` asks beforehand.
    """
    if not settings.EMBEDDING_MODEL:
        return None
    with _lock:
        known = _kept.get((settings.EMBEDDING_MODEL, question))
    if known or time.monotonic() < _silent_until:
        return known
    if not waiting and connection.in_atomic_block:
        logger.info("search by words alone: the question was not embedded before its transaction")
        return None
    return _ask(question, PATIENT if waiting else TIMEOUT)


def warm(question: str, *, waiting: bool = False) -> None:
    """Ask for a question's vector now, so that a search inside a transaction finds it.

    `waiting`: even if a transaction is open, for measurements only.
    """
    if settings.EMBEDDING_MODEL and question.strip():
        vector_of(question, waiting)


def forget() -> None:
    """As in a new process."""
    global _silent_until
    with _lock:
        _kept.clear()
        _silent_until = 0.0


def _ask(question: str, timeout: float) -> Asked | None:
    global _silent_until
    from memory.embeddings import client, models, store  # not loaded where nothing is embedded

    try:
        model = models.configured()
        assert model is not None  # noqa: S101
        (vector,) = client.embed(model, [question], timeout)
        if not store.ready(model, len(vector)):
            raise store.Unprepared("nothing has been embedded yet; `manage.py embed` does it")
    except (ValueError, client.EmbeddingFailed, store.Unprepared) as error:
        _silent_until = time.monotonic() + SILENCE
        logger.warning("search by words alone for %d seconds: %s", SILENCE, error)
        return None
    asked = Asked(model.name, store.literal(vector), len(vector))
    with _lock:
        _kept[model.name, question] = asked
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return asked
