"""An organization's tools: the registered ones, which all have, and those of its own MCP servers and remote
agents.
"""

from collections import ChainMap, OrderedDict
from collections.abc import Iterable, Mapping

from policy.models import PolicyVersion
from runs.tools import registry
from runs.tools.a2a import registry as remote_agents
from runs.tools.base import Tool
from runs.tools.mcp import registry as mcp_registry

KEPT_ORGANIZATIONS = 200

_kept: OrderedDict[str, tuple[int, dict[str, Tool]]] = OrderedDict()


def of(organization_id: str, version: int) -> tuple[int, Mapping[str, Tool]]:
    """Its tools by name as of this version of its policy, or as they are since, and the version they are of;
    read once a process and version.
    """
    kept = _kept.get(organization_id)
    if kept is None or kept[0] != version:
        kept = PolicyVersion.objects.steady(organization_id, version, lambda: _own(organization_id))
        _kept[organization_id] = kept
        while len(_kept) > KEPT_ORGANIZATIONS:
            _kept.popitem(last=False)
    registered = registry.all_tools()
    return kept[0], ChainMap(registered, kept[1]) if kept[1] else registered


def _own(organization_id: str) -> dict[str, Tool]:
    """A remote agent's tool goes before one of an MCP server that is called alike: it asks for more."""
    return mcp_registry.tools_of(organization_id) | remote_agents.tools_of(organization_id)


def current(organization_id: str) -> Mapping[str, Tool]:
    """Its tools by name as they are now."""
    return of(organization_id, PolicyVersion.objects.of(organization_id))[1]


def find(organization_id: str, name: str) -> Tool | None:
    """The organization's tool of this name as it is now, or None. Asks no database about a registered one."""
    return registry.get(name) or (current(organization_id).get(name) if "." in name else None)


def names(organizations: Iterable[str] | None) -> set[str]:
    """The names of the tools of these organizations, or of all there are."""
    own = mcp_registry.names_of(organizations) | remote_agents.names_of(organizations)
    return {*registry.all_tools(), *own}
