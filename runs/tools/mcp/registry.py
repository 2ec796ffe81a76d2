"""The tools of an organization's MCP servers, as agents may call them."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from common.canonical import digest
from policy.provenance.infer import EVERYTHING, Declaration
from runs.models import Carrier, McpServer, McpTask, McpTool, ToolState, WorkerGroup
from runs.models.choices import WaitKind
from runs.models.operations import TASKS_OF_SERVERS
from runs.tools import forms, leaving
from runs.tools.base import NoAnswer, Tool, ToolContext, ToolError, WaitFor
from runs.tools.mcp import accounts, definitions, tasks
from runs.tools.mcp.client import LEAST_PAUSE, Asked, McpError, Task, Unauthorized, call_tool, read_resource

FORM_WAITS = timedelta(days=7)  # for the person to answer what a server asks
TASK_WAITS = timedelta(days=7)  # for a server to finish its task
MAX_TASKS = 1000  # open at one server; beyond, Deputy does not say that calls may become tasks
READING = Declaration(  # what its server reads is somebody else's words, and its address says where from
    fields={EVERYTHING: "outside"}, steering=frozenset({"uri"}), effect=False, deeds=frozenset({"read"})
)
SUSPENDED = {
    ToolState.NEW: "'{name}' is new: an administrator has to accept it first.",
    ToolState.CHANGED: "'{name}' has changed at its server: an administrator has to look at it first.",
    ToolState.GONE: "'{name}' is no longer listed by its server.",
}


def tools_of(organization_id: str) -> dict[str, Tool]:
    """By name, also those that are suspended; without those that cannot be used."""
    return {tool.call_name: made(tool) for tool in rows([organization_id])}


def names_of(organizations: Iterable[str] | None) -> set[str]:
    """The names of the tools of these organizations, or of all there are."""
    return {tool.call_name for tool in rows(organizations)}


def rows(organizations: Iterable[str] | None) -> Iterable[McpTool]:
    found = McpTool.objects.exclude(state=ToolState.UNUSABLE).select_related("server").order_by("id")
    return found if organizations is None else found.filter(organization_id__in=list(organizations))


def made(row: McpTool) -> Tool:
    """The tool as its accepted definition says; hints only tighten (runs/tools/mcp/definitions.py)."""
    definition = row.offered()
    mutating = definitions.mutating(row.name, definition)
    reads = definitions.reads_resources(definition)
    as_person = row.server.as_person
    whom = reaches(row)
    runs = reader(row.server_id, whom) if reads else function(row.server_id, row.name, whom)
    return Tool(
        name=row.call_name,
        description=definition["description"] or definition["title"],
        parameters=definition["input_schema"],
        function=runs,
        risk_level=definitions.risk(row.name, definition),
        mutating=mutating,
        supports_parallel=not mutating,
        idempotent=definitions.idempotent(definition),
        provenance="outside",
        suspended=suspended(row),
        checker=definitions.checker,
        as_person=row.server.name if as_person else "",
        exchanged_at=row.server.exchange_at if as_person else "",
        declared=READING if reads else None,
        reaches=whom,
        address=row.server.url,
    )


def suspended(row: McpTool) -> str:
    """Why it cannot be called now; empty where it can."""
    if not row.server.enabled:
        return f"The MCP server '{row.server}' is switched off."
    return SUSPENDED.get(ToolState(row.state), "").format(name=row.call_name)


def reaches(tool: McpTool) -> str:
    """Whom a call goes to, and as what: what an approval of it holds for."""
    server = tool.server
    as_whom = "the run's person" if server.as_person else server.sealed_headers
    return digest(server.pk, server.url, as_whom, tool.name, tool.accepted_digest)


def function(server_id: str, name: str, whom: str) -> Callable[..., Any]:
    """What runs a call, if it still reaches `whom`: the server's address and headers are read anew each
    time, or its person's own authorization, without which the call waits for it.
    """

    def call(run: ToolContext, /, **arguments: Any) -> Any:
        tool = current(server_id, name, whom, run)
        server, as_person = tool.server, tool.server.as_person
        task = McpTask.objects.filter(run_id=run.run_id, call_id=run.call_id).first()
        asked_by = task.url if task else run.filled["url"] if run.filled else server.url
        if asked_by != server.url:
            raise ToolError(f"'{server.name}' has moved since it asked.", "MCP_SERVER_MOVED")
        if task is not None:
            ask: Callable[..., Any] = partial(resumed, server, task, run.filled)
        else:
            told = (server, name, arguments, run.idempotency_key, tool.offered()["input_schema"])
            room = server.tasks.count() < MAX_TASKS and understood(TASKS_OF_SERVERS)
            ask = partial(call_tool, *told, filled=run.filled, tasks=room)
        try:
            answer = accounts.calling(server, run.user_id, ask) if as_person else ask()
        except accounts.NotConnected:
            return accounts.wanted(server, tool.call_name, run.run_id)
        except McpError as error:
            raise (NoAnswer if error.silent else ToolError)(error.message, error.code) from None
        if isinstance(answer, Task):
            return waiting(server, answer)
        return wanted(server, tool.call_name, answer) if isinstance(answer, Asked) else answer

    return call


def understood(level: int) -> bool:
    """Whether nobody at work is of a release that does not understand it yet, while Deputy is upgraded."""
    return not any(table.objects.filter(level__lt=level).exists() for table in (WorkerGroup, Carrier))


def current(server_id: str, name: str, whom: str, run: ToolContext) -> McpTool:
    """The tool and its server as they are now. Raises ToolError where it cannot be called as the gate let
    it be.
    """
    server = McpServer.objects.filter(pk=server_id, organization_id=run.organization_id).first()
    if server is None or not server.enabled:
        raise ToolError("The MCP server is gone or switched off.", "MCP_SERVER_OFF")
    tool = server.tools.filter(name=name, state=ToolState.ACCEPTED).select_related("server").first()
    if tool is None:  # its server has moved, or its words have changed, since the gate let it pass
        raise ToolError(f"'{server.name}.{name}' has to be accepted anew.", "TOOL_SUSPENDED")
    if reaches(tool) != whom:  # the log says whose authorization goes, and an approval is for one server
        raise ToolError(f"How '{server.name}' is asked has just changed: ask again.", "TOOL_SUSPENDED")
    return tool


def reader(server_id: str, whom: str) -> Callable[..., Any]:
    """What reads a server's resources: those that were accepted, by the server alone. Deputy opens none of
    their addresses itself.
    """

    def read(run: ToolContext, /, uri: str = "") -> Any:
        tool = current(server_id, definitions.READ_RESOURCE, whom, run)
        server, as_person, listed = tool.server, tool.server.as_person, tool.accepted
        if not listed or not definitions.reads_resources(listed):
            raise ToolError(f"The resources of '{server.name}' have to be accepted anew.", "TOOL_SUSPENDED")
        if not uri:
            return {name: listed[name] for name in ("resources", "templates")}
        if not definitions.may_read(listed, uri):
            said = f"'{server.name}' lists no such resource: call this without uri to see which there are."
            raise ToolError(said, "UNKNOWN_RESOURCE")
        ask = partial(read_resource, server, uri)
        try:
            return accounts.calling(server, run.user_id, ask) if as_person else ask()
        except accounts.NotConnected:
            return accounts.wanted(server, f"{server.name}.{definitions.READ_RESOURCE}", run.run_id)
        except McpError as error:
            raise ToolError(error.message, error.code) from None

    return read


def resumed(server: McpServer, task: McpTask, filled: dict[str, Any] | None, token: str = "") -> Task:
    """The call is a task at its server already: it is given the form that it asked for, and goes on. Where
    that is not known to have come, neither is what the server does: it may have been carried out.
    """
    if filled is None or filled.get("task") != task.pk:
        return Task(task.task_id, LEAST_PAUSE)
    try:
        return tasks.update(server, task.task_id, filled["responses"], token)
    except Unauthorized:
        raise
    except McpError as error:
        error.silent = error.code != leaving.HELD_BACK
        raise


def waiting(server: McpServer, task: Task) -> WaitFor:
    """The call waits for its task, about which carriers ask (runs/actions/mcp_tasks.py)."""
    told = {
        "server": server.pk,
        "name": server.name,
        "url": server.url,
        "id": task.id,
        "seconds": task.seconds,
    }
    return WaitFor(WaitKind.SIGNAL.value, expires_in=TASK_WAITS, task=told)


def wanted(server: McpServer, tool: str, asked: Asked, task: str = "") -> WaitFor:
    """The call waits until its person has answered the server, which gets the answer with the same call, or
    for the `task` that it has become.
    """
    try:
        form = forms.form(server.name, server.url, asked.requests, asked.token)
        form |= {"task": task} if task else {}
    except forms.NoForm as no:
        said = f"What '{server.name}' asks cannot be put to anybody: {no}."
        raise ToolError(said, "MCP_INPUT_REQUIRED") from None
    messages = [message for message, _ in asked.requests.values()]
    return WaitFor("input", forms.question(tool, form, messages), FORM_WAITS, form=form)
