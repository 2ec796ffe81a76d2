"""What an agent keeps of one person: theirs to read, correct, delete and take along."""

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from common import redact
from groups import changes, today
from groups.actors import Actor
from groups.models import AgentInstance
from memory import curate
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryStatus
from policy.authority import About, Verb, may


def of(user: Any, organization_id: str) -> QuerySet[Memory]:
    """The person's preferences, facts and earlier tasks in one organization, the latest first."""
    kept = Memory.objects.filter(organization_id=organization_id, user_id=user.pk)
    return kept.filter(status=MemoryStatus.ACTIVE).order_by("-id")


@transaction.atomic
def correct(memory_id: str, actor: Actor, content: str) -> Memory:
    """Other words for a memory of one's own. Raises NotAllowed, MemoryRefused."""
    _find(memory_id, actor)
    return curate.edit(memory_id, actor, content=content)


@transaction.atomic
def forget(memory_id: str, actor: Actor) -> None:
    """Delete a memory of one's own for good, with its history. Raises NotAllowed, MemoryRefused."""
    memory = _find(memory_id, actor)
    may(today.since(actor), Verb.CURATE, memory)
    memory.delete()


@transaction.atomic
def forget_all(actor: Actor) -> int:
    """Delete everything an agent keeps of the person here, what was superseded or retracted included.

    Returns how many memories that were. Raises NotAllowed.
    """
    here, user_id = actor.organization_id or "", actor.user.pk
    may(actor, Verb.CURATE, About(here, user_id=user_id))
    whole = Memory.objects.filter(organization_id=here, user_id=user_id)
    count = whole.count()
    whole.delete()
    changes.update(AgentInstance.objects.filter(organization_id=here, user_id=user_id), preferences={})
    return count


def exported(user: Any, organization_id: str) -> Iterator[dict[str, Any]]:
    """All of it as JSON objects."""
    agent = AgentInstance.objects.filter(organization_id=organization_id, user_id=user.pk).first()
    if agent and agent.preferences:
        yield {"kind": "agent_preferences", "content": redact.masked(agent.preferences)}
    whole = Memory.objects.filter(organization_id=organization_id, user_id=user.pk).defer("search_vector")
    for memory in whole.order_by("id").iterator():
        yield {
            "kind": "memory",
            "id": memory.pk,
            "type": memory.type,
            "status": memory.status,
            "project": memory.project_id,
            "content": redact.shown(memory.content),
            "metadata": redact.masked(memory.metadata),
            "source_run": memory.source_run_id,
            "created_at": memory.created_at.isoformat(),
        }


def _find(memory_id: str, actor: Actor) -> Memory:
    found = of(actor.user, actor.organization_id or "").filter(pk=memory_id)
    memory = found.select_for_update(no_key=True, of=("self",)).first()
    if memory is None:
        raise MemoryRefused("unknown_memory", f"there is no memory {memory_id}")
    return memory
