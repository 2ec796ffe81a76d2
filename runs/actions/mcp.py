"""List an MCP server's tools again, and accept what it lists."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from django.db import transaction
from django.db.models.functions import Now

from groups import changes
from runs.actions import repeat
from runs.models import McpServer, McpTool, ToolState
from runs.models.mcp import MAX_TOOL_NAME
from runs.tools.mcp import accounts, client, definitions, discovery
from runs.tools.mcp.definitions import Listed

logger = logging.getLogger(__name__)

T = TypeVar("T")


def refresh(server: McpServer, by: Any = None) -> str:
    """Read the server's list and keep what is new in it; returns what went wrong, empty for nothing.

    A tool whose definition is no longer the accepted one is suspended, until `accept`. A server that tells
    its tools to people only is asked in the name of `by`, or else of who asked for the list last.
    """
    try:
        server = _with_endpoints(server)
        listed = [definitions.read(tool) for tool in _ask(server, by, client.list_tools)]
        reading, problem = _reading(server, by)
    except client.McpError as error:
        listed, reading, problem = None, None, error.message
    with transaction.atomic():
        McpServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        if listed is not None:
            _keep(server, listed, reading, bool(problem))
        McpServer.objects.filter(pk=server.pk).update(checked_at=Now(), problem=problem)
    if not server.as_person:  # what waited for an account while it still did goes on
        repeat.met(server.organization_id, None, accounts.need(server.pk))
    return problem


def _with_endpoints(server: McpServer) -> McpServer:
    """The server, with where people authorize Deputy there, asked for where nobody has entered it."""
    if not server.as_person or server.issuer or server.exchange_at:
        return server
    found = discovery.discover(server)
    same = McpServer.objects.filter(pk=server.pk, url=server.url, issuer="", as_person=True)
    with changes.settled():
        changes.update(same, **found)
    return McpServer.objects.get(pk=server.pk)


def _reading(server: McpServer, by: Any) -> tuple[Listed | None, str]:
    """The tool that reads the server's resources, if it has any; or why they cannot be listed."""
    try:
        return definitions.of_resources(*_ask(server, by, client.list_resources)), ""
    except client.McpError as error:
        return None, error.message


def _ask(server: McpServer, by: Any, ask: Callable[..., T]) -> T:
    """What the server lists. Raises McpError."""
    try:
        return ask(server)
    except client.Unauthorized:
        user_id = getattr(by, "pk", None) or server.listed_by_id
        try:
            if user_id is None:
                raise accounts.NotConnected
            found = accounts.calling(server, user_id, partial(ask, server))
        except accounts.NotConnected:
            raise client.McpError(
                "MCP_UNAUTHORIZED",
                f"The MCP server '{server}' lists its tools to people only: connect your own account there "
                "(My access), then refresh.",
            ) from None
        McpServer.objects.filter(pk=server.pk).update(listed_by=user_id)
        return found


def accept(tools: Iterable[McpTool], by: Any) -> list[McpTool]:
    """Let agents call these tools as they are listed now; returns those for which that could be said.

    Each must still be what the person saw: its digest is compared under the lock.
    """
    accepted = []
    with transaction.atomic():
        for seen in tools:
            tool = McpTool.objects.select_for_update(no_key=True).get(pk=seen.pk)
            if tool.digest != seen.digest or tool.state not in (ToolState.NEW, ToolState.CHANGED):
                continue
            tool.accepted, tool.accepted_digest = tool.definition, tool.digest
            tool.state, tool.accepted_by, tool.accepted_at = ToolState.ACCEPTED, by, Now()
            tool.save()
            accepted.append(tool)
    return accepted


def _keep(server: McpServer, listed: list[Listed], reading: Listed | None, unheard: bool) -> None:
    """Write down what has changed, and nothing where nothing has. A tool of the server's own goes before the
    one that is `reading` its resources; what becomes of that one is left open where they were `unheard` of.
    """
    known = {tool.name: tool for tool in server.tools.all()}
    found = {one.name: one for one in [*filter(None, [reading]), *listed]}
    if unheard and definitions.READ_RESOURCE not in found:
        known.pop(definitions.READ_RESOURCE, None)
    for one in found.values():
        tool = known.pop(one.name, None) or McpTool(
            organization_id=server.organization_id, server=server, name=one.name
        )
        _take_in(tool, one)
    for gone in known.values():
        if gone.state != ToolState.GONE:
            gone.state, gone.changed_at = ToolState.GONE, Now()
            gone.save()


def _take_in(tool: McpTool, one: Listed) -> None:
    problem = one.problem
    if not problem and len(tool.call_name) > MAX_TOOL_NAME:
        problem = f"'{tool.call_name}' is longer than {MAX_TOOL_NAME} characters."
    state = _state(tool, one, problem)
    if (tool.digest, tool.state, tool.problem) == (one.digest, state, problem) and not tool._state.adding:
        return
    tool.definition, tool.digest, tool.problem = one.definition, one.digest, problem
    tool.state, tool.changed_at = state, Now()
    tool.save()


def _state(tool: McpTool, one: Listed, problem: str) -> ToolState:
    if problem:
        return ToolState.UNUSABLE
    if not tool.accepted_digest:
        return ToolState.NEW
    return ToolState.ACCEPTED if one.digest == tool.accepted_digest else ToolState.CHANGED
