"""What people do with knowledge: approve, retract, restore, edit, promote, merge. Each leaves a revision."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import transaction

from common import redact
from groups import today
from groups.actors import Actor
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryRevision, MemoryStatus, MemoryType
from memory.write import BY_PROGRAM, LINEAGE, check_scope, checked_content, checked_metadata
from policy.authority import About, Verb, may, speaks


@transaction.atomic
def approve(memory_id: str, by: Actor | None) -> Memory:
    """Let a deposit that waits for review count. Raises MemoryRefused (wrong_state)."""
    memory = _locked(memory_id, by, MemoryStatus.PENDING_REVIEW)
    return _changed(memory, "approve", by, status=MemoryStatus.ACTIVE)


@transaction.atomic
def retract(memory_id: str, by: Actor | None) -> Memory:
    """Take a memory back: no search finds it any more; restore undoes it. Raises MemoryRefused."""
    memory = _locked(memory_id, by, MemoryStatus.ACTIVE, MemoryStatus.PENDING_REVIEW)
    return _changed(memory, "retract", by, status=MemoryStatus.RETRACTED)


@transaction.atomic
def restore(memory_id: str, by: Actor | None) -> Memory:
    """Make a retracted, superseded or merged memory count again. Raises MemoryRefused (wrong_state)."""
    memory = _locked(memory_id, by, MemoryStatus.RETRACTED, MemoryStatus.SUPERSEDED)
    if memory.superseded_by_id is not None:
        _leave(memory, by)
    return _changed(memory, "restore", by, status=MemoryStatus.ACTIVE, superseded_by=None)


@transaction.atomic
def edit(memory_id: str, by: Actor | None, **changes: Any) -> Memory:
    """Change content, metadata (without the lineage, which stays), importance or expires_at, with history."""
    memory = _locked(memory_id, by, *MemoryStatus)
    if "content" in changes:
        changes["content"] = checked_content(_kept("content", changes["content"], memory.content))
    if "metadata" in changes:
        changes["metadata"] = _kept("metadata", changes["metadata"], memory.metadata)
        kept = {key: value for key, value in memory.metadata.items() if key in LINEAGE}
        sent = {key: value for key, value in changes["metadata"].items() if kept.get(key) != value}
        changes["metadata"] = checked_metadata(sent) | kept
    if unknown := changes.keys() - {"content", "metadata", "importance", "expires_at"}:
        raise MemoryRefused("invalid_change", f"{sorted(unknown)[0]} cannot be changed")
    if "content" in changes:
        marked = _by(by, memory, changes["content"], changes.get("metadata", memory.metadata))
        changes |= {"metadata": marked} if marked != memory.metadata else {}
    return _changed(memory, "edit", by, **changes)


@transaction.atomic
def supersede(memory_id: str, content: str, by: Actor | None) -> Memory:
    """A new memory in the old one's scope and place; the old one stays as history. Returns the new one."""
    old = _locked(memory_id, by, MemoryStatus.ACTIVE)
    content = checked_content(_kept("content", content, old.content))
    # whose words they are is said by who writes them; what they were made from goes on being known
    metadata = _unstamped(old) | {"sources": lineage(old)}
    new = _copy(old, content=content, metadata=_by(by, old, content, metadata))
    new.save(force_insert=True)
    _changed(old, "supersede", by, status=MemoryStatus.SUPERSEDED, superseded_by=new)
    return new


@transaction.atomic
def promote(memory_id: str, by: Actor | None) -> Memory:
    """A project's knowledge becomes the organization's; it keeps its lineage. Returns the new memory."""
    old = _locked(memory_id, by, MemoryStatus.ACTIVE)
    if old.type != MemoryType.ARCHIVAL or old.project_id is None:
        raise MemoryRefused("not_project_knowledge", "only a project's knowledge is promoted")
    if by is not None:
        may(today.since(by), Verb.CURATE, About(old.organization_id))
    new = _copy(old, project_id=None, source_run_id=old.source_run_id, metadata=dict(old.metadata))
    new.save(force_insert=True)
    _changed(old, "promote", by, status=MemoryStatus.SUPERSEDED, superseded_by=new)
    return new


@transaction.atomic
def merge(kept_id: str, other_ids: Iterable[str], by: Actor | None) -> Memory:
    """Others join one memory of the same scope: it is found, and names them all as its sources."""
    locked = {
        memory.id: memory
        for memory in Memory.objects.select_for_update(no_key=True)
        .filter(id__in={kept_id, *other_ids})
        .order_by("id")
    }
    _check(by, *locked.values())
    kept = locked.pop(kept_id, None)
    if kept is None or not locked:
        raise MemoryRefused("nothing_to_merge", "merging takes two memories or more")
    if any(other.scope_key != kept.scope_key for other in locked.values()):
        raise MemoryRefused("different_scopes", "only memories of one scope are merged")
    if any(memory.status != MemoryStatus.ACTIVE for memory in (kept, *locked.values())):
        raise MemoryRefused("wrong_state", "only active memories are merged")
    sources = [*kept.sources, *(entry for other in locked.values() for entry in lineage(other))]
    for other in locked.values():
        _changed(other, "merge", by, status=MemoryStatus.SUPERSEDED, superseded_by=kept)
    return _changed(kept, "merge", by, metadata=kept.metadata | {"sources": sources})


def lineage(memory: Memory) -> list[dict[str, Any]]:
    """Where a memory came from, as entries for another's `metadata.sources`."""
    own = {key: memory.metadata[key] for key in sorted(LINEAGE - {"sources"}) if key in memory.metadata}
    return [own | {"memory_id": memory.id, "source_run_id": memory.source_run_id}, *memory.sources]


def _kept(name: str, written: Any, stored: Any) -> Any:
    """What people and programs send back as they were shown it, masked, stays as it is stored."""
    try:
        return redact.kept(written, stored)
    except redact.Hidden:
        raise MemoryRefused(
            f"invalid_{name}",
            f"{name} says {redact.MASK} where a key is hidden: write it anew, or leave it out",
        ) from None


def _locked(memory_id: str, by: Actor | None, *allowed: MemoryStatus) -> Memory:
    memory = Memory.objects.select_for_update(no_key=True).filter(id=memory_id).first()
    if memory is None:
        raise MemoryRefused("unknown_memory", f"there is no memory {memory_id}")
    _check(by, memory)
    if memory.status not in allowed:
        raise MemoryRefused("wrong_state", f"the memory is {memory.get_status_display().lower()}")
    return memory


def _check(by: Actor | None, *memories: Memory) -> None:
    """Raises NotAllowed. None is Deputy itself, which joins duplicates."""
    if by is not None:
        now = today.since(by)
        for memory in memories:
            may(now, Verb.CURATE, memory)


def _changed(memory: Memory, action: str, by: Actor | None, **changes: Any) -> Memory:
    before = {name: _plain(getattr(memory, name)) for name in changes}
    author = None if by is None else by.user
    MemoryRevision.objects.create(memory=memory, action=action, by=author, before=before)
    for name, value in changes.items():
        setattr(memory, name, value)
    check_scope(memory)
    memory.save(update_fields=[*changes, *(("search_vector", "length") if "content" in changes else ())])
    return memory


def _leave(memory: Memory, by: Actor | None) -> None:
    """Undo a merge: the memory that was joined names this one no more."""
    joined = Memory.objects.select_for_update(no_key=True).get(id=memory.superseded_by_id)
    mine = [entry["memory_id"] for entry in lineage(memory) if "memory_id" in entry]
    sources = [entry for entry in joined.sources if entry.get("memory_id") not in mine]
    if sources != joined.sources:
        _changed(joined, "unmerge", by, metadata=joined.metadata | {"sources": sources})


def _copy(memory: Memory, **changes: Any) -> Memory:
    columns = ("organization_id", "user_id", "project_id", "group_id", "agent_instance_id")
    same = {name: getattr(memory, name) for name in (*columns, "type", "content", "importance", "expires_at")}
    return Memory(**same | changes)


def _unstamped(memory: Memory) -> dict[str, Any]:
    return {key: value for key, value in memory.metadata.items() if key not in LINEAGE}


def _by(by: Actor | None, old: Memory, content: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata of words that `by` has written: a program's are marked, a person's are not. Who hands the
    words of a program or a run back as they were, by a form or a file, with line ends of its own, has not
    written them; nor where the program has written others since the form was opened, or the file exported.
    """
    if by is None:
        return metadata
    unmarked = {key: value for key, value in metadata.items() if key != BY_PROGRAM}
    if speaks(by) and not any(content.split() == words.split() for words in _of_others(old)):
        return unmarked
    return {**unmarked, BY_PROGRAM: True}


def _of_others(memory: Memory) -> Iterator[str]:
    """What programs have written as this memory, up to now, and what the run left that it comes from."""
    content, metadata = memory.content, memory.metadata
    if metadata.get(BY_PROGRAM):
        yield content
    for before in memory.revisions.order_by("-id").values_list("before", flat=True):
        content, metadata = before.get("content", content), before.get("metadata", metadata)
        if metadata.get(BY_PROGRAM):
            yield content
    if memory.source_run_id:
        yield content


def _plain(value: Any) -> Any:
    if isinstance(value, Memory):
        return value.id
    return value.isoformat() if hasattr(value, "isoformat") else value
