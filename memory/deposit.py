"""What a group leaves behind: its episodic entries, and the project's new knowledge (000, 3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from common.db import from_json, rows
from memory import statistics
from memory.models import Memory, MemoryStatus, MemoryType
from memory.rows import insert, insertion
from memory.scope import Scope
from memory.substance import OUTPUT_PREFIX, makes_up, says_something
from memory.write import MOST_CHARACTERS

# What a run has written so far: what may be concluded from, and what was deposited before.
KNOWN = ("id", "original", "type", "status", "group_id", "content", "metadata")
OF_RUN = f"SELECT {', '.join(KNOWN)} FROM memory_memory WHERE source_run_id = %s"  # noqa: S608

OUTPUT = "output"
GOAL_KEPT = 500  # characters
SAYS_NOTHING = "says_nothing"  # metadata.review_reason of what seems to answer nothing
QUOTED = (
    "source",
    "original_memory_id",
    "deposited_at",
)  # what a conclusion leaves with the output it makes up


@dataclass(frozen=True)
class GroupResult:
    """A completed group run, as plain data. `review`: its knowledge waits for a curator."""

    run_id: str
    organization_id: str
    project_id: str
    group_id: str
    output: str | None = None
    decisions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    review: bool = False
    goal: str = ""  # kept with the knowledge: what it answers


def deposit(result: GroupResult) -> dict[str, str]:
    """Write the group's episodic entries and the project's knowledge.

    Returns the new knowledge's ids, each with the reason why a curator has to look at it first ("" where
    there is none). Nothing is left out: what seems to say nothing waits for review.

    Inside the transaction that completes the group run (ruling 25). A redelivery adds nothing and
    returns nothing: each entry is unique on its run and its original. Whether something like it is known
    already is asked later (memory.duplicates).
    """
    known = [_known(found) for found in rows(OF_RUN, [result.run_id])]
    there = {memory.original for memory in known}
    episodic = [memory for memory in _episodic(result) if memory.original not in there]
    archival = [memory for memory in _archival(result, known + episodic) if memory.original not in there]
    insert([*episodic, *archival])
    for memory in archival[:1]:
        statistics.fold_sometimes(memory)
    return {memory.id: memory.metadata.get("review_reason", "") for memory in archival}


def remember_outcome(
    run_id: str, scope: Scope, goal: str, outcome: str, later: list[tuple[str, list[Any]]]
) -> None:
    """A completed personal run's goal and outcome, for its person's next tasks in this project.

    The statement, which adds nothing where this run's is there already, goes to `later`, for the caller to
    execute in this transaction. Nothing where there is no person or project to remember it for.
    """
    if scope.user_id is None or scope.project_id is None:
        return
    own = Scope(scope.organization_id, user_id=scope.user_id, project_id=scope.project_id)
    memory = Memory(
        **_columns(own),
        type=MemoryType.EPISODIC,
        content=_text(f"Goal: {goal}\nOutcome: {outcome}"),
        metadata={"source": "run_outcome", "source_run_id": run_id},
        source_run_id=run_id,
        original=OUTPUT,
        scope_key=own.key(MemoryType.EPISODIC),
    )
    later.append(insertion([memory]))
    statistics.fold_sometimes(memory)


def _episodic(result: GroupResult) -> Iterable[Memory]:
    """DECISION, EVIDENCE and TODO at {organization, project, group}, each once."""
    blackboard = Scope(result.organization_id, project_id=result.project_id, group_id=result.group_id)
    kinds = {"DECISION": result.decisions, "EVIDENCE": result.evidence, "TODO": result.todos}
    for kind, contents in kinds.items():
        for content in dict.fromkeys(text for text in map(_text, contents) if text):
            yield Memory(
                **_columns(blackboard),
                type=MemoryType.EPISODIC,
                content=content,
                metadata={"memory_type": kind, "source_run_id": result.run_id},
                source_run_id=result.run_id,
                original=f"{kind}:{sha256(content.encode()).hexdigest()[:40]}",
            )


def _archival(result: GroupResult, of_run: list[Memory]) -> Iterable[Memory]:
    """The run's decisions and its blackboard's conclusions, then its output, without the group.

    A conclusion that makes up the output is known once, as the output, which names both as its sources.
    """
    output = _text(result.output or "")
    said, quoted = set(), []
    for memory in of_run:
        if memory.content in said or not _concludes(memory, result.group_id):
            continue
        said.add(memory.content)
        original = f"knowledge:{memory.original}" if memory.original else memory.id
        known = _knowledge(result, memory.content, original, "group_run", original_memory_id=memory.id)
        if output and makes_up(memory.content, output, [*result.evidence, *result.todos]):
            quoted.append(known)
        else:
            yield known
    if output:
        stays = _knowledge(result, f"{OUTPUT_PREFIX}{output}", OUTPUT, "group_run_output")
        if quoted:
            stays.metadata["sources"] = [
                {key: known.metadata[key] for key in QUOTED} | {"source_run_id": result.run_id}
                for known in quoted
            ]
        yield stays


def _doubt(result: GroupResult, content: str) -> str:
    """Why a curator has to see to it before it is found; "" where nothing speaks against it."""
    content = content.removeprefix(OUTPUT_PREFIX)
    if any(says_something(text, result.goal) for text in result.evidence):
        return ""
    return "" if says_something(content, result.goal, leaving_out=result.todos) else SAYS_NOTHING


def _concludes(memory: Memory, group_id: str) -> bool:
    if memory.group_id != group_id or memory.status != MemoryStatus.ACTIVE:
        return False
    decision = memory.type == MemoryType.EPISODIC and memory.metadata.get("memory_type") == "DECISION"
    return decision or memory.type == MemoryType.CORE


def _knowledge(result: GroupResult, content: str, original: str, source: str, **lineage: str) -> Memory:
    doubt = _doubt(result, content)
    stamped: dict[str, Any] = {
        "source": source,
        "source_run_id": result.run_id,
        "goal": result.goal[:GOAL_KEPT],
        **lineage,
        **({"review_reason": doubt} if doubt else {}),
        "deposited_at": datetime.now(UTC).isoformat(),
    }
    return Memory(
        **_columns(Scope(result.organization_id, project_id=result.project_id)),
        type=MemoryType.ARCHIVAL,
        content=content,
        metadata=stamped,
        status=MemoryStatus.PENDING_REVIEW if result.review or doubt else MemoryStatus.ACTIVE,
        source_run_id=result.run_id,
        original=original,
    )


def _known(found: Sequence[Any]) -> Memory:
    columns = dict(zip(KNOWN, found, strict=True))
    return Memory(**{**columns, "metadata": from_json(columns["metadata"])})


def _columns(scope: Scope) -> dict[str, Any]:
    return {
        "organization_id": scope.organization_id,
        "user_id": scope.user_id,
        "project_id": scope.project_id,
        "group_id": scope.group_id,
        "agent_instance_id": scope.agent_instance_id,
    }


def _text(text: str) -> str:
    """What a model said, as the database can keep it: a strange character must not fail the run's end."""
    text = text.replace("\x00", "").encode(errors="replace").decode()
    return text.strip()[:MOST_CHARACTERS]
