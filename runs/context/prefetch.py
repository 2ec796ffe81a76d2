"""Questions that a step is about to search memory for: embedded before its transaction, which waits for no
model. Nothing is done where no model embeds (EMBEDDING_MODEL).
"""

from collections.abc import Iterable

from django.conf import settings

from common.db import row
from memory.embeddings.questions import warm
from runs.providers.base import ToolRequest

ASKED_BY = {"memory_search": "query", "escalate_to_group": "goal"}  # a tool's argument that is searched by


def of_run(run_id: str) -> None:
    """The run's goal, which its prompts search by."""
    if settings.EMBEDDING_MODEL and (found := row("SELECT goal FROM runs_run WHERE id = %s", [run_id])):
        warm(found[0])


def of_calls(calls: Iterable[ToolRequest]) -> None:
    """What these calls will search for."""
    for call in calls:
        query = call.arguments.get(ASKED_BY.get(call.name, ""))
        if isinstance(query, str):
            warm(query)
