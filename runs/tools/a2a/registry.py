"""An organization's remote agents, as tools: `partner.send_message` gives `partner` a task.

The call lasts as long as the task. While the agent works, the call waits for a time, without a worker, a
thread or a place at a carrier, and then looks again; what the agent asks goes to the run's person as a form.
"""

from collections.abc import Callable, Iterable
from typing import Any

from common.canonical import digest
from policy.provenance.infer import Declaration
from runs.models import CardState, RemoteAgent
from runs.tools.a2a import cards, tasks
from runs.tools.a2a.client import PeerError
from runs.tools.base import NoAnswer, Tool, ToolContext, ToolError

MAX_TEXT = 50_000  # characters of what an agent is told at once
MAX_CONTEXT = 200
PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_TEXT,
            "description": "What the remote agent is to do. It leaves the organization as written here.",
        },
        "context_id": {
            "type": "string",
            "maxLength": MAX_CONTEXT,
            "description": "The context_id of an earlier answer, to go on with the same conversation.",
        },
    },
    "required": ["text"],
    "additionalProperties": False,
}
# All that is said leaves the organization, so all of it steers; what comes back is an outsider's.
DECLARED = Declaration(
    output_trust="outside",
    steering=frozenset({"text", "context_id"}),
    effect=True,
    deeds=frozenset({"send"}),
    network=True,
    origin="declared",
)
CAPABILITIES = ("a2a_send",)
SUSPENDED = {
    CardState.NEW: "The card of the remote agent '{name}' is new: an administrator has to accept it.",
    CardState.CHANGED: "The card of the remote agent '{name}' has changed: an administrator has to look.",
    CardState.UNUSABLE: "The remote agent '{name}' cannot be used: an administrator has to look at its card.",
}


def tools_of(organization_id: str) -> dict[str, Tool]:
    """By name, also those that are suspended."""
    return {agent.call_name: made(agent) for agent in rows([organization_id])}


def names_of(organizations: Iterable[str] | None) -> set[str]:
    """The names of the tools of these organizations, or of all there are."""
    return {agent.call_name for agent in rows(organizations)}


def rows(organizations: Iterable[str] | None) -> Iterable[RemoteAgent]:
    found = RemoteAgent.objects.order_by("id")
    return found if organizations is None else found.filter(organization_id__in=list(organizations))


def made(agent: RemoteAgent) -> Tool:
    """The tool, as the accepted card describes it."""
    says = cards.described(agent.accepted) if agent.accepted else ""
    return Tool(
        name=agent.call_name,
        description=f"Gives a task to '{agent.name}', an agent of others: its answer is the result. {says}",
        parameters=PARAMETERS,
        function=function(agent.pk, reaches(agent)),
        risk_level="high",
        mutating=True,
        supports_parallel=False,
        capabilities=CAPABILITIES,
        provenance="outside",
        suspended=suspended(agent),
        declared=DECLARED,
        reaches=reaches(agent),
        address=agent.endpoint,
    )


def suspended(agent: RemoteAgent) -> str:
    """Why it cannot be asked now; empty where it can."""
    if not agent.enabled:
        return f"The remote agent '{agent}' is switched off."
    return SUSPENDED.get(CardState(agent.state), "").format(name=agent.name)


def reaches(agent: RemoteAgent) -> str:
    """Whom a call goes to, and as what: what an approval of it holds for."""
    return digest(agent.pk, agent.url, agent.accepted_digest, agent.sealed_headers)


def function(agent_id: str, whom: str) -> Callable[..., Any]:
    """What runs a call, if it still reaches `whom`: the agent's address and headers are read anew each
    time.
    """

    def call(run: ToolContext, /, text: str, context_id: str = "") -> Any:
        agent = RemoteAgent.objects.filter(pk=agent_id, organization_id=run.organization_id).first()
        if agent is None or suspended(agent):  # since the gate let it pass
            said = suspended(agent) if agent else "The remote agent is gone."
            raise ToolError(said, "TOOL_SUSPENDED")
        if reaches(agent) != whom:
            raise ToolError(f"Whom '{agent}' reaches has just changed: ask again.", "TOOL_SUSPENDED")
        try:
            return tasks.advance(agent, run, text, context_id)
        except PeerError as error:
            raise (NoAnswer if error.silent else ToolError)(error.message, error.code) from None

    return call
