"""Search memory and write to it. The scope comes from the run, never from arguments (design 6)."""

from typing import Annotated, Any, Literal

from memory.errors import MemoryRefused
from memory.scope import Scope
from memory.search import memory_search_pa, memory_search_tiered
from memory.write import memory_write as write
from policy.provenance.infer import Declaration
from runs.models.choices import EventType, RunKind
from runs.tools.base import Done, ToolContext, ToolError
from runs.tools.registry import tool

SIZE = {"minLength": 1, "maxLength": 20_000}  # characters


@tool(
    description=(
        "Search what is known: preferences, the organization's and the project's knowledge, earlier work."
    ),
    risk_level="low",
    mutating=False,
    supports_parallel=True,
    transactional=True,
    # agents and programs write all of a memory, its metadata too: nothing in a result is Deputy's own word
    declared=Declaration(
        steering=frozenset({"query"}),
        content=frozenset({"limit"}),
        effect=False,
        deeds=frozenset({"read"}),
        nouns=frozenset({"memory"}),
        origin="declared",
    ),
)
def memory_search(
    run: ToolContext,
    *,
    query: Annotated[str, "What to look for, in any language"],
    limit: Annotated[int, "How many results at most", {"minimum": 1, "maximum": 50}] = 10,
) -> dict[str, Any]:
    """A PA searches its tiers, a group's member the group's (seed 000, 2)."""
    search = memory_search_pa if run.kind == RunKind.PERSONAL else memory_search_tiered
    try:
        hits = search(query, scope_of(run), limit)
    except MemoryRefused as error:
        raise ToolError(str(error), error.code.upper()) from None
    return {"results": [hit.as_dict() for hit in hits]}


@tool(
    description=(
        "Remember something. A personal agent keeps facts and the user's preferences; a group's member "
        "keeps notes of its own."
    ),
    risk_level="low",
    mutating=True,
    supports_parallel=False,
    transactional=True,
)
def memory_write(
    run: ToolContext,
    *,
    content: Annotated[str, "What to remember, in one or a few sentences", SIZE],
    pa_preference: Annotated[bool, "Whether this is a preference of the user"] = False,
    category: Annotated[str, "A word to sort it by", {"maxLength": 100}] = "",
) -> Done:
    """A preference (core) or a fact of a PA, or a member's own episodic note. Agents never write archival."""
    personal = run.kind == RunKind.PERSONAL
    if pa_preference and not personal:
        raise ToolError("Only a personal agent keeps its user's preferences.", "NOT_A_PERSONAL_AGENT")
    metadata = {"category": category} if category else {}
    if personal and pa_preference:
        scope = Scope(run.organization_id, user_id=run.user_id, agent_instance_id=run.agent_id)
        return _write(run, content, scope, "core", {**metadata, "pa_preference": True})
    if personal:
        scope = Scope(run.organization_id, user_id=run.user_id, project_id=run.project_id)
        return _write(run, content, scope, "episodic", metadata)
    scope = Scope(run.organization_id, project_id=run.project_id, agent_instance_id=run.agent_id)
    return _write(run, content, scope, "episodic", metadata)


@tool(
    description=(
        "Write on the group's blackboard, which every member reads. Evidence, to-dos and proposals come "
        "from anyone; conclusions (core) and decisions are the lead's."
    ),
    risk_level="low",
    mutating=True,
    supports_parallel=False,
    transactional=True,
)
def blackboard_write(
    run: ToolContext,
    *,
    content: Annotated[str, "What the group should know", SIZE],
    type: Annotated[
        Literal["core", "episodic"], "core: a conclusion; episodic: something on the way"
    ] = "episodic",
    memory_type: Annotated[
        Literal["PROPOSAL", "EVIDENCE", "TODO", "DECISION"], "What kind of entry an episodic one is"
    ] = "EVIDENCE",
) -> Done:
    """An entry in the group's scope; core and DECISION are for the lead alone."""
    if run.kind != RunKind.GROUP or not run.group_id:
        raise ToolError("Only a group has a blackboard.", "NOT_A_GROUP")
    if not run.is_lead and (type == "core" or memory_type == "DECISION"):
        raise ToolError("Conclusions and decisions are written by the group's lead.", "LEAD_ONLY")
    scope = Scope(run.organization_id, project_id=run.project_id, group_id=run.group_id)
    return _write(run, content, scope, type, {} if type == "core" else {"memory_type": memory_type})


def scope_of(run: ToolContext) -> Scope:
    """The run's own place: a PA's user and agent, or a group and the member who speaks."""
    if run.kind == RunKind.PERSONAL:
        return Scope(
            run.organization_id,
            user_id=run.user_id,
            project_id=run.project_id,
            agent_instance_id=run.agent_id,
        )
    return Scope(
        run.organization_id,
        project_id=run.project_id,
        group_id=run.group_id,
        agent_instance_id=run.agent_id,
    )


def _write(run: ToolContext, content: str, scope: Scope, type: str, metadata: dict[str, Any]) -> Done:
    try:
        memory = write(content, scope, type=type, metadata=metadata, source_run_id=run.run_id)
    except MemoryRefused as error:
        raise ToolError(str(error), error.code.upper()) from None
    written = {"memory_id": memory.pk, "type": type, "call_id": run.call_id}
    return Done({"memory_id": memory.pk}, ((EventType.MEMORY_WRITTEN.value, written),))
