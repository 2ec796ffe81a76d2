"""What Deputy offers to an MCP client: the tools its run may call, and the calls, through the one door."""

import secrets
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from memory.context.tools import TOOLS as WORKING_MEMORY
from policy.authority import NotAllowed
from runs.actions.start import CannotStart, personal_agent
from runs.api import access, tools
from runs.context import texts
from runs.execution import calls, outside_agents
from runs.execution.outside_agents import CALL_ID, OutsideRefused
from runs.mcp import session as sessions
from runs.mcp.session import McpSession
from runs.models import Run, ToolCall
from runs.models.choices import Driver, WaitKind
from runs.tools import toolbox
from runs.tools.call import Gate

CALL_ID_KEY = "deputy/call-id"  # in _meta: the same id is the same call, however often it is sent
START, RESULT, COMPLETE = "deputy_start_run", "deputy_call_result", "deputy_complete_run"
NOT_FOR_OUTSIDE = frozenset(tool.name for tool in WORKING_MEMORY)  # an outside agent keeps its own
GIVEN_UP = {"RUN_ENDED", "BUDGET_STEPS", "BUDGET_TOKENS", "BUDGET_SECONDS"}  # another run may still do it

TEXT = {"type": "string"}
OWN: dict[str, dict[str, Any]] = {
    RESULT: {
        "description": "The result of an earlier call that had to wait, for example for an approval.",
        "parameters": {
            "type": "object",
            "properties": {
                "call_id": {**TEXT, "description": "As the earlier answer said."},
                "run": {**TEXT, "description": "The run it belongs to, if that is not the present one."},
            },
            "required": ["call_id"],
            "additionalProperties": False,
        },
        "reads": True,
    },
    COMPLETE: {
        "description": "Say that the work is done, and what came of it. Ends the run.",
        "parameters": {
            "type": "object",
            "properties": {"output": {**TEXT, "description": "The result, for the person it was done for."}},
            "required": ["output"],
            "additionalProperties": False,
        },
    },
    START: {
        "description": "Say what the calls that follow are for. They belong to a new run with this goal, "
        "which people see.",
        "parameters": {
            "type": "object",
            "properties": {"goal": TEXT, "context": TEXT},
            "required": ["goal"],
            "additionalProperties": False,
        },
    },
}


class Refused(Exception):
    """The call cannot be made; the words are for the client's model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class Answer:
    """What a client is told. `look` is the call as it stands, where there is one."""

    text: str
    failed: bool = False
    structured: dict[str, Any] | None = None


def listed(session: McpSession) -> list[dict[str, Any]]:
    """The tools that may be called from here, as MCP writes them; what policy denies is not shown."""
    found = [_described(session, tool) for tool in allowed(session)]
    own = [name for name in OWN if name != START or session.run_id is None]
    return [*found, *(_own(name) for name in own)]


def allowed(session: McpSession) -> list[dict[str, Any]]:
    run = sessions.current(session)
    decided = tools.decided(run) if run else tools.decided_for(*before_the_gate(session))
    return [
        tool
        for tool in decided
        if tool["decision"]["effect"] != "deny" and tool["name"] not in NOT_FOR_OUTSIDE
    ]


def exists(session: McpSession, name: str) -> bool:
    """Whether there is such a tool for outside agents here, allowed or not."""
    if name in OWN:
        return name != START or session.run_id is None
    known = toolbox.find(session.project.organization_id, name) is not None
    return known and name not in NOT_FOR_OUTSIDE


def asks_at_once(session: McpSession, name: str) -> bool:
    """Whether what the tool asks is known when it is called, and not only when a worker has begun it."""
    tool = toolbox.find(session.project.organization_id, name)
    return tool is not None and tool.transactional


def before_the_gate(session: McpSession) -> Any:
    """The gate and the agent as a run started now would have them."""
    agent, _ = personal_agent(session.user, session.project)
    gate = Gate.open(session.project.organization_id, session.project.pk, None, session.user.pk, None)
    return gate, gate.agent(agent["agent"], agent["role_id"])


def _described(session: McpSession, tool: dict[str, Any]) -> dict[str, Any]:
    registered = toolbox.find(session.project.organization_id, tool["name"])
    effect = tool["decision"]["effect"]
    asks = " It waits for somebody's approval first." if effect != "allow" else ""
    return {
        "name": tool["name"],
        "description": tool["description"] + asks,
        "inputSchema": tool["parameters"],
        "annotations": {
            "readOnlyHint": not tool["mutating"],
            "destructiveHint": tool["mutating"] and tool["risk_level"] == "high",
            "idempotentHint": tool["idempotent"] or not tool["mutating"],
            "openWorldHint": registered is None or not registered.transactional,
        },
        "_meta": {"deputy/effect": effect, "deputy/risk": tool["risk_level"]},
    }


def _own(name: str) -> dict[str, Any]:
    reads = OWN[name].get("reads", False)
    hints = {"readOnlyHint": reads, "destructiveHint": False, "idempotentHint": reads, "openWorldHint": False}
    return {
        "name": name,
        "description": OWN[name]["description"],
        "inputSchema": OWN[name]["parameters"],
        "annotations": hints,
    }


# Calls


def ask(session: McpSession, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> tuple[Run, str]:
    """Bring the call before the gate; returns its run and call id. Raises Refused.

    Where the address names no run and the open one has ended meanwhile, another is started.
    """
    arguments = given(session, name, arguments)
    for last in (False, True):
        run = _opened(session)
        try:
            call_id = call_id_of(meta)
            return run, outside_agents.request_call(run.pk, session.actor, call_id, name, arguments)
        except NotAllowed as refused:
            raise Refused(refused.code, refused.message) from None
        except OutsideRefused as refused:
            if session.run_id or last or refused.code not in GIVEN_UP:
                raise Refused(refused.code, refused.message) from None
    raise AssertionError


def given(session: McpSession, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments without those that are null, optional and of a type that null is not: many frameworks
    write null for what their model has left out.
    """
    tool = toolbox.find(session.project.organization_id, name)
    schema = tool.parameters if tool is not None else {}
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        key: value
        for key, value in arguments.items()
        if value is not None or key in required or _takes_null(properties.get(key, {}))
    }


def _takes_null(schema: Any) -> bool:
    kind = schema.get("type", "null") if isinstance(schema, dict) else "null"
    return "null" in ([kind] if isinstance(kind, str) else kind)


def _opened(session: McpSession) -> Run:
    try:
        return sessions.opened(session)
    except (CannotStart, NotAllowed) as refused:
        raise Refused(refused.code, refused.message) from None


def call_id_of(meta: dict[str, Any]) -> str:
    """The client's id, or a new one, by which `request_call` knows that the client has named none."""
    given = meta.get(CALL_ID_KEY)
    if given is not None:
        if not isinstance(given, str) or not CALL_ID.fullmatch(given):
            raise Refused("BAD_CALL_ID", f"{CALL_ID_KEY} has 1 to 64 visible ASCII characters.")
        return given
    return f"{calls.NAMED_HERE}{secrets.token_hex(8)}"


def earlier(session: McpSession, arguments: dict[str, Any]) -> tuple[Run, str]:
    """The run and id of a call that was made before. Raises Refused."""
    wanted = arguments.get("run") or session.run_id
    found = own_calls(session).filter(call_id=str(arguments["call_id"]))
    call = (found.filter(run_id=wanted) if wanted else found).order_by("-id").first()
    if call is None:
        raise Refused("NOT_FOUND", "There is no such call.")
    return call.run, call.call_id


def own_calls(session: McpSession) -> QuerySet[ToolCall]:
    """The calls that outside agents made in the caller's own runs in the project, or in the run that the
    address names. What Deputy's agents did for the same person takes the scope that reads runs.
    """
    mine = access.runs(session.membership).filter(user=session.user, project=session.project)
    mine = mine.filter(driver=Driver.EXTERNAL)
    here = mine.filter(pk=session.run_id) if session.run_id else mine
    return ToolCall.objects.filter(run__in=here).select_related("run", "run__organization")


def started(session: McpSession, arguments: dict[str, Any]) -> Answer:
    """`deputy_start_run`. Raises Refused."""
    sessions.leave(session)
    try:
        run = sessions.begin(session, arguments["goal"], arguments.get("context", ""))
    except (CannotStart, NotAllowed) as refused:
        raise Refused(refused.code, refused.message) from None
    return Answer(f"The calls that follow belong to run {run.pk}.", structured={"run": run.pk})


def completed(session: McpSession, arguments: dict[str, Any]) -> Answer:
    """`deputy_complete_run`. Raises Refused."""
    run = sessions.current(session)
    if run is None:
        raise Refused("NO_RUN", "No run is open here: nothing has been called.")
    try:
        outside_agents.complete(run.pk, session.actor, arguments["output"])
    except (OutsideRefused, NotAllowed) as refused:
        raise Refused(refused.code, refused.message) from None
    return Answer(f"Run {run.pk} is complete.", structured={"run": run.pk})


def answer(run: Run, call_id: str) -> Answer:
    """The call as it stands, in words for a model and as data for a program."""
    look = calls.look(run, call_id)
    told = {"run": look.run, "call_id": look.call_id, "status": look.status}
    if look.open:
        return Answer(_waiting(look), structured={**told, **_waits_for(look)})
    if look.error is not None:
        code, message = look.error.get("code", ""), look.error.get("message", "")
        return Answer(f"{code}: {message}", failed=True, structured={**told, "error": look.error})
    return Answer(texts.of_result(look.result), structured={**told, "result": look.result})


def _waits_for(look: calls.Look) -> dict[str, Any]:
    if look.waits_for is None:
        return {}
    waits = look.waits_for
    expires = waits.expires_at.isoformat() if waits.expires_at else None
    kept = {"kind": waits.kind, "approval": waits.approval, "question": waits.question, "expires_at": expires}
    return {"waits_for": {name: value for name, value in kept.items() if value is not None}}


DOING = {  # without a stranger's words
    WaitKind.APPROVAL.value: "It waits for somebody's approval.",
    WaitKind.INPUT.value: "It waits for a person's answer.",
    WaitKind.CHILD.value: "A group is working on it.",
    WaitKind.REVIEW.value: "A person has to say what became of it.",
    WaitKind.SIGNAL.value: "It waits for a signal.",
}
WAITS = {
    "approval": "It waits for somebody's approval ({approval})",
    "input": "It waits for a person's answer: {question}",
    "child": "A group is working on it",
    "review": "A person has to say what became of it",
}


def _waiting(look: calls.Look) -> str:
    waits = look.waits_for
    words = WAITS.get(waits.kind, "It waits").format(**vars(waits)) if waits else "It is being executed"
    until = f", until {waits.expires_at:%Y-%m-%d %H:%M} UTC" if waits and waits.expires_at else ""
    return (
        f"There is no result yet. {words}{until}. Deputy runs the call by itself as soon as it may: do not "
        f'call the tool again, ask for the result with {RESULT} {{"call_id": "{look.call_id}", '
        f'"run": "{look.run}"}}.'
    )
