"""Questions that a step is about to search memory for: embedded before its transaction, which waits for no
model. Nothing is done where no model embeds (EMBEDDING_MODEL).

A slow server of embeddings does not stop workers: after an answer that took longer than QUICK_SECONDS, the
worker goes on for three times as long without asking, so that it waits for a quarter of its time at most.
Those searches go by words alone.
"""

import logging
import time
from collections.abc import Iterable

from django.conf import settings

from common.db import row
from memory.embeddings.questions import warm
from runs.providers.base import ToolRequest

logger = logging.getLogger(__name__)

ASKED_BY = {"memory_search": "query", "escalate_to_group": "goal"}  # a tool's argument that is searched by
WITHOUT = 3.0  # times as long as the last answer took
QUICK_SECONDS = 0.25

_asked_again_at = 0.0  # not before, by the monotonic clock; a worker is one process with one thread for steps


def of_run(run_id: str) -> None:
    """The run's goal, which its prompts search by."""
    if settings.EMBEDDING_MODEL and (found := row("SELECT goal FROM runs_run WHERE id = %s", [run_id])):
        _ask(found[0])


def of_calls(calls: Iterable[ToolRequest]) -> None:
    """What these calls will search for."""
    for call in calls:
        query = call.arguments.get(ASKED_BY.get(call.name, ""))
        if isinstance(query, str):
            _ask(query)


def _ask(question: str) -> None:
    global _asked_again_at
    began = time.monotonic()
    if not settings.EMBEDDING_MODEL or began < _asked_again_at:
        return
    warm(question)
    took = time.monotonic() - began
    if took < QUICK_SECONDS or settings.EMBEDDING_MODEL.startswith("embedded:"):
        return  # the embedded model works in this process, and waits for nobody
    _asked_again_at = began + took + WITHOUT * took
    logger.warning(
        "the embedding model took %.1f s; for %.1f s search goes by words alone", took, WITHOUT * took
    )
