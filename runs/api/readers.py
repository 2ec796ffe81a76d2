"""Who follows a stream, and whether they still may: asked again and again while the stream is open."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.http import HttpRequest

from common.db import row
from runs.api.feed import Feed
from runs.models import Run

SCOPE = "runs:read"  # which a token must have to hear of runs

# A person who is active and a member who sees the project (or operates the installation), whose token, with
# its scope, or session has neither ended nor been taken away. A new password ends the sessions there were:
# Django finds that out at each one's next request, for which a stream does not wait.
STILL = """
SELECT EXISTS (
    SELECT FROM auth_user u WHERE u.id = %s AND u.is_active
    AND (%s::text IS NULL OR encode(sha256(convert_to(u.password, 'UTF8')), 'hex') = %s)
    AND (u.is_superuser AND %s OR EXISTS (
        SELECT FROM groups_membership m WHERE m.user_id = u.id AND m.organization_id = %s AND m.active
            AND (%s::text IS NULL OR m.projects IS NULL OR %s = ANY (m.projects))))
) AND (%s::text IS NULL OR EXISTS (
    SELECT FROM groups_token t WHERE t.id = %s AND t.revoked_at IS NULL AND %s = ANY (t.scopes)
        AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp()))
) AND (%s::text IS NULL OR EXISTS (
    SELECT FROM django_session s WHERE s.session_key = %s AND s.expire_date > clock_timestamp()))
"""


@dataclass(frozen=True)
class Reader:
    """Somebody who reads a run: by a token, or in a browser's session. `operator`: superusers see all.
    Without a project the reader only has to be a member. `scope`: what the token must have, as it is now.
    """

    user_id: int
    organization_id: str
    project_id: str | None
    token_id: str | None = None
    session_key: str | None = None
    operator: bool = False
    password: str | None = None  # SHA-256 of what the account keeps of it; for a session
    scope: str = SCOPE

    @classmethod
    def of_api(cls, request: Any, run: Run) -> "Reader":
        if request.auth is None:
            return cls.of_session(request, run)
        return cls(request.user.pk, run.organization_id, run.project_id, request.auth.pk)

    @classmethod
    def of_session(cls, request: Any, run: Run) -> "Reader":
        """Somebody on their own pages."""
        return cls.of_browser(request, run.organization_id, run.project_id)

    @classmethod
    def of_admin(cls, request: HttpRequest, run: Run) -> "Reader":
        return cls.of_browser(request, run.organization_id, run.project_id, operator=True)

    @classmethod
    def of_browser(
        cls, request: Any, organization_id: str, project_id: str | None, operator: bool = False
    ) -> "Reader":
        user, session = request.user, request.session.session_key
        password = sha256(user.password.encode()).hexdigest()
        return cls(user.pk, organization_id, project_id, None, session, operator, password)

    def may_now(self) -> bool:
        """The same, looked at in the database now."""
        return bool(row(STILL, self._asked())[0])

    async def may_still(self, source: Feed, seconds: float) -> bool:
        """Whether the stream may go on, as of at most `seconds` ago. A reader's streams share the look."""
        ((still,),) = await source.recent(STILL, self._asked(), seconds)
        return bool(still)

    def _asked(self) -> list[Any]:
        token, session = (self.token_id, self.token_id, self.scope), (self.session_key,) * 2
        place = (self.operator, self.organization_id, self.project_id, self.project_id)
        return [self.user_id, self.password, self.password, *place, *token, *session]
