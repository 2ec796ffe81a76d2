"""How far a token reaches."""

from typing import Any

from rest_framework import permissions

from config.api.errors import Problem

SCOPES = ("read", "run", "decide")  # what a token may be narrowed to; an empty list is all of them


class InScope(permissions.BasePermission):
    """A token reaches as far as its scopes. Reading takes `read`, the rest what the view says."""

    def has_permission(self, request: Any, view: Any) -> bool:
        safe = request.method in permissions.SAFE_METHODS
        require_scope(request, "read" if safe else str(getattr(view, "scope", "run")))
        return True


def require_scope(request: Any, needed: str) -> None:
    """For a request that turns out to need more than its address says. Raises Problem."""
    scopes = getattr(request.auth, "scopes", None)
    if scopes and needed not in scopes:
        raise Problem(403, "SCOPE_MISSING", f"This token does not have the scope '{needed}'.")
