"""What a run may pass on, and what its child gets: rights only ever shrink on the way down (design 5)."""

from policy.terms import AgentContext, Boundary, DelegatedPermissions

Names = tuple[str, ...] | None
NOTHING = DelegatedPermissions(allowed_tools=())


def authority(
    agent: AgentContext, boundary: Boundary | None, delegable_tools: tuple[str, ...] | None = None
) -> DelegatedPermissions:
    """What the agent may pass on: what it holds ∩ its role's delegable set.

    A personal agent holds its user's boundary, a group's member what was delegated to its run. The role's
    `delegable_tools` may name rights it does not use itself; None stands for its own allowed tools. What no
    list of its role names it passes on unvouched: below, the risk default asks about it (ruling 38).
    """
    held = agent.delegated_permissions
    if held is None:
        held = _of(boundary)
    delegable = agent.allowed_tools if delegable_tools is None else delegable_tools
    named = tuple(dict.fromkeys((*(agent.allowed_tools or ()), *(delegable_tools or ()))))
    return narrowed(held, DelegatedPermissions(delegable, agent.denied_tools, named))


def delegate(
    parent: DelegatedPermissions, boundary: Boundary | None, asked_for: DelegatedPermissions | None = None
) -> DelegatedPermissions:
    """What the child is given: the parent's authority ∩ the user's live boundary ∩ what the call asked for.

    Asking for nothing in particular leaves the other two.
    """
    given = narrowed(parent, _of(boundary))
    return given if asked_for is None else narrowed(given, asked_for)


def narrowed(held: DelegatedPermissions, limit: DelegatedPermissions) -> DelegatedPermissions:
    """Allowed by both, vouched for by both, denied by either (seed 000 1.2). An empty intersection is (),
    never None.
    """
    denied = tuple(dict.fromkeys((*held.denied_tools, *limit.denied_tools)))
    allowed = _in_both(held.allowed_tools, limit.allowed_tools)
    return DelegatedPermissions(allowed, denied, _in_both(held.vouched_tools, limit.vouched_tools))


def _in_both(first: Names, second: Names) -> Names:
    """The names on both lists; None is every name."""
    if first is None or second is None:
        return second if first is None else first
    both = set(second)
    return tuple(name for name in first if name in both)


def _of(boundary: Boundary | None) -> DelegatedPermissions:
    """No active membership denies everything."""
    if boundary is None:
        return NOTHING
    return DelegatedPermissions(boundary.allowed_tools, boundary.denied_tools)
