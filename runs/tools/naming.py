"""Rules, standing approvals and roles name tools. What a name that they speak of stands for takes a second
person: otherwise one administrator could have its calls go to a server of their own.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from policy import weakening
from runs.models import McpServer, McpTool
from runs.models.mcp import WHOM
from runs.models.remote_agents import SEND
from runs.tools.a2a.registry import CAPABILITIES

Row = Mapping[str, Any] | None
ANOTHER = gettext_noop("calls that rules speak of go to somebody else")


def register() -> None:
    weakening.JUDGES["runs.mcptool"] = _tool
    weakening.JUDGES["runs.remoteagent"] = _agent
    of_servers = weakening.JUDGES["runs.mcpserver"]
    weakening.JUDGES["runs.mcpserver"] = lambda before, after: (
        of_servers(before, after) or _server(before, after)
    )


def _tool(before: Row, after: Row) -> str:
    """One that is accepted, for the first time or with other words."""
    if after is None or not _accepted_anew(before, after):
        return ""
    server = McpServer.objects.filter(pk=after["server_id"]).values_list("name", flat=True).first()
    return _goes_elsewhere(after, f"{server}.{after['name']}")


def _agent(before: Row, after: Row) -> str:
    if after is None or not after["accepted_digest"]:
        return ""
    moved = before is not None and _moved(before, after)
    if not moved and not _accepted_anew(before, after):
        return ""
    return _goes_elsewhere(after, f"{after['name']}.{SEND}", CAPABILITIES)


def _server(before: Row, after: Row) -> str:
    if before is None or after is None or not _moved(before, after):
        return ""
    names = (
        McpTool.objects.filter(server=after["id"]).exclude(accepted_digest="").values_list("name", flat=True)
    )
    return next(filter(None, (_goes_elsewhere(after, f"{after['name']}.{name}") for name in names)), "")


def _accepted_anew(before: Row, after: Mapping[str, Any]) -> bool:
    was = before["accepted_digest"] if before is not None else ""
    return bool(after["accepted_digest"]) and after["accepted_digest"] != was


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return any(before.get(name) != after.get(name) for name in WHOM)


def _goes_elsewhere(row: Mapping[str, Any], tool: str, capabilities: tuple[str, ...] = ()) -> str:
    return ANOTHER if weakening.spoken_of(row["organization_id"], tool, capabilities) else ""
