"""Writing a memory. The scope and the source come from the platform, never from an agent's arguments."""

from datetime import datetime
from typing import Any

from django.conf import settings

from common import limits
from common.canonical import NotJson, normalise
from memory import statistics
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryType
from memory.scope import Scope

MOST_CHARACTERS = 200_000
BY_PROGRAM = "by_program"  # in the metadata of what a program wrote: text from outside, as all that it says
# Stamped by the platform; a client that sends one is refused.
LINEAGE = frozenset(
    {
        "source",
        "source_run_id",
        "original_memory_id",
        "deposited_at",
        "sources",
        "group_id",
        "review_reason",
        "contradicts",
        BY_PROGRAM,
    }
)


def memory_write(
    content: str,
    scope: Scope,
    *,
    type: str,
    metadata: dict[str, Any] | None = None,
    importance: float = 0.5,
    source_run_id: str | None = None,
    expires_at: datetime | None = None,
    outside: bool = False,
) -> Memory:
    """A new memory in exactly `scope`, in the caller's transaction, found from the next search on.

    A preference is `type="core"` with `metadata={"pa_preference": True}` (000, 2.2). `outside`: a program
    wrote it. Raises MemoryRefused: invalid_content, invalid_type, invalid_metadata, invalid_importance,
    illegal_scope, too_many_preferences.
    """
    memory = Memory(
        organization_id=scope.organization_id,
        user_id=scope.user_id,
        project_id=scope.project_id,
        group_id=scope.group_id,
        agent_instance_id=scope.agent_instance_id,
        type=_type(type),
        content=checked_content(content),
        metadata=checked_metadata(metadata or {}) | ({BY_PROGRAM: True} if outside else {}),
        importance=_importance(importance),
        source_run_id=source_run_id,
        expires_at=expires_at,
    )
    check_scope(memory)
    _check_room(memory)
    memory.save(force_insert=True)
    statistics.fold_sometimes(memory)
    return memory


def checked_content(content: str) -> str:
    """The text as PostgreSQL can store it. Raises MemoryRefused."""
    try:
        content = normalise(content)
    except NotJson as error:
        raise MemoryRefused("invalid_content", f"content {error}") from None
    if not isinstance(content, str) or not content.strip():
        raise MemoryRefused("invalid_content", "content is empty")
    if len(content) > MOST_CHARACTERS:
        raise MemoryRefused("invalid_content", f"content is longer than {MOST_CHARACTERS} characters")
    return content


def checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata a client may set: JSON, without the platform's own keys. Raises MemoryRefused."""
    try:
        metadata = normalise(metadata)
    except NotJson as error:
        raise MemoryRefused("invalid_metadata", f"metadata {error}") from None
    if not isinstance(metadata, dict):
        raise MemoryRefused("invalid_metadata", "metadata is not an object")
    if stamped := sorted(LINEAGE & metadata.keys()):
        raise MemoryRefused("invalid_metadata", f"only the platform sets metadata.{stamped[0]}")
    return metadata


def check_scope(memory: Memory) -> None:
    """The rules of the table's CHECK constraints, said in words. Raises MemoryRefused."""
    owner = memory.user_id is not None or memory.agent_instance_id is not None
    if memory.type == MemoryType.ARCHIVAL and (owner or memory.group_id):
        raise MemoryRefused(
            "illegal_scope", "archival memories belong to a project or the organization alone"
        )
    if memory.group_id and (owner or not memory.project_id):
        raise MemoryRefused("illegal_scope", "a group's memories belong to its project, and to no person")
    if memory.metadata.get("pa_preference") is True:
        personal = memory.user_id is not None and memory.agent_instance_id is not None
        if memory.type != MemoryType.CORE or not personal or memory.project_id or memory.group_id:
            raise MemoryRefused("illegal_scope", "a preference is core, of a person and their agent alone")


def _check_room(memory: Memory) -> None:
    """Raises MemoryRefused for one more of what a person's agent always knows than fits."""
    if memory.type != MemoryType.CORE or memory.user_id is None:
        return
    mine = Memory.objects.filter(
        organization_id=memory.organization_id, user_id=memory.user_id, type=MemoryType.CORE
    )
    try:
        limits.room(mine, settings.PREFERENCES, "there are %(most)s preferences already; delete some first")
    except limits.TooMany as refused:
        raise MemoryRefused("too_many_preferences", refused.messages[0]) from None


def _type(type: str) -> str:
    if type not in MemoryType.values:
        raise MemoryRefused("invalid_type", f"type is one of {', '.join(MemoryType.values)}")
    return type


def _importance(importance: float) -> float:
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise MemoryRefused("invalid_importance", "importance is a number from 0 to 1")
    return float(importance)
