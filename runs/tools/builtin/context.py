"""An agent's hands on its working memory: the context_… tools (seed 002, docs/context.md)."""

from dataclasses import replace
from typing import Any

from memory.context import ContextError
from memory.context.tools import TOOLS, ContextTool, Outcome
from policy.provenance.infer import infer
from runs.tools.base import Done, OwnView, ToolContext, ToolError
from runs.tools.registry import tool

READING = {
    "context_view",
    "context_find",
    "context_segment",
    "context_segments",
    "context_children",
    "context_parent",
    "context_ancestors",
}


def register(defined: ContextTool) -> None:
    """Make a tool of it: it only writes this database, so it runs inside the step, exactly once."""
    reads = defined.name in READING
    inferred = infer(defined.name, defined.description, defined.parameters, effect=False)

    @tool(
        name=defined.name,
        description=defined.description,
        parameters=defined.parameters,
        risk_level=defined.risk,
        mutating=not reads,
        supports_parallel=reads,
        transactional=True,
        declared=replace(inferred, keeps=False, origin="declared"),  # pages are what somebody wrote on them
    )
    def run(context: ToolContext, **arguments: Any) -> Done:
        if context.view is None:
            raise ToolError("This run has no working memory.", "NO_VIEW")
        try:
            return perform(defined, context.view, arguments, reads)
        except ContextError as error:
            raise ToolError(str(error), error.code) from None


def perform(defined: ContextTool, view: OwnView, arguments: dict[str, Any], reads: bool) -> Done:
    """Reading an untouched view leaves it untouched; the first change stores it."""
    if reads:
        return Done(defined.run(view.read(), arguments).result)
    agent, made = view.write()
    outcome: Outcome = defined.run(agent, arguments)
    return Done(outcome.result, (view.changed([*made, *outcome.changes]),))


for _defined in TOOLS:
    register(_defined)
