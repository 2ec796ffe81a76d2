"""Where a memory belongs, and the one key that says so."""

import hashlib
from dataclasses import dataclass
from uuid import UUID

PREFERENCE = "preference"  # a core memory with pa_preference: true has a key of its own


@dataclass(frozen=True)
class Scope:
    """Whose memory it is. A field left out means that it is NULL, never "any" (ruling 22)."""

    organization_id: str
    user_id: int | None = None
    project_id: str | None = None
    group_id: str | None = None
    agent_instance_id: str | None = None

    def key(self, kind: str) -> UUID:
        """The scope_key of memories of `kind` (a memory type, or PREFERENCE) in exactly this scope.

        The database computes the same from a row's columns (memory.models.columns.ScopeKey); a test
        holds the two together.
        """
        user = "" if self.user_id is None else str(self.user_id)
        parts = (self.organization_id, user, self.project_id, self.group_id, self.agent_instance_id, kind)
        text = "/".join(part or "" for part in parts)
        return UUID(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())
