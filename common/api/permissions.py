"""How far a token reaches."""

from typing import Any

from rest_framework import permissions

from common.api.errors import Problem


class InScope(permissions.BasePermission):
    """A token reaches as far as its scopes; what an address asks for stands at its view."""

    def has_permission(self, request: Any, view: Any) -> bool:
        if view.action is not None:  # a method that is not there is answered as such
            require_scope(request, needed_scope(view, request.method))
        return True


def needed_scope(view: Any, method: str) -> str:
    """`scope` where the view names one, else reading or writing in its `area`."""
    kind = "read" if method in permissions.SAFE_METHODS else "write"
    return str(view.scope or f"{view.area}:{kind}")


def require_scope(request: Any, needed: str) -> None:
    """For a request that turns out to need more than its address says. Raises Problem."""
    actor = getattr(request, "actor", None)
    if actor is not None and not actor.has_scope(needed):
        raise Problem(403, "SCOPE_MISSING", f"This token does not have the scope '{needed}'.")
