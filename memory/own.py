"""What an agent keeps of one person: theirs to read, correct, delete and take along."""

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from groups.actors import Actor
from groups.models import AgentInstance
from memory import curate
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryStatus


def of(user: Any, organization_id: str) -> QuerySet[Memory]:
    """The person's preferences, facts and earlier tasks in one organization, the latest first."""
    kept = Memory.objects.filter(organization_id=organization_id, user_id=user.pk)
    return kept.filter(status=MemoryStatus.ACTIVE).order_by("-id")


def correct(memory_id: str, actor: Actor, content: str) -> Memory:
    """Other words for a memory of one's own, where the actor is. Raises MemoryRefused, NotAllowed."""
    _check(memory_id, actor.user, str(actor.organization_id))
    return curate.edit(memory_id, actor, content=content)


@transaction.atomic
def forget(memory_id: str, user: Any, organization_id: str) -> None:
    """Delete a memory of one's own for good, with its history. Raises MemoryRefused."""
    _check(memory_id, user, organization_id)
    Memory.objects.filter(pk=memory_id, user_id=user.pk).delete()


@transaction.atomic
def forget_all(user: Any, organization_id: str) -> int:
    """Delete everything an agent keeps of the person here, what was superseded or retracted included.

    Returns how many memories that were.
    """
    whole = Memory.objects.filter(organization_id=organization_id, user_id=user.pk)
    count = whole.count()
    whole.delete()
    AgentInstance.objects.filter(organization_id=organization_id, user_id=user.pk).update(preferences={})
    return count


def exported(user: Any, organization_id: str) -> Iterator[dict[str, Any]]:
    """All of it as JSON objects."""
    agent = AgentInstance.objects.filter(organization_id=organization_id, user_id=user.pk).first()
    if agent and agent.preferences:
        yield {"kind": "agent_preferences", "content": agent.preferences}
    whole = Memory.objects.filter(organization_id=organization_id, user_id=user.pk).defer("search_vector")
    for memory in whole.order_by("id").iterator():
        yield {
            "kind": "memory",
            "id": memory.pk,
            "type": memory.type,
            "status": memory.status,
            "project": memory.project_id,
            "content": memory.content,
            "metadata": memory.metadata,
            "source_run": memory.source_run_id,
            "created_at": memory.created_at.isoformat(),
        }


def _check(memory_id: str, user: Any, organization_id: str) -> None:
    if not of(user, organization_id).filter(pk=memory_id).exists():
        raise MemoryRefused("unknown_memory", f"there is no memory {memory_id}")
