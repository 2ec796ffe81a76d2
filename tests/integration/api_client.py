"""How the tests speak to the REST API: over Django's own client, with a token."""

import json
import re
from typing import Any

from django.test import Client

from groups.member_permissions import LOOKS, STARTS
from groups.models import CustomRole, Token
from groups.scopes import SCOPES
from runs.models import Approval
from tests.factories import permit as only

DECISION = re.compile(r"approvals/(apr_[0-9a-z]+)/(?:approve|reject)/")
PROBLEM = "application/problem+json"


class Api:
    """The API as one user of one organization meets it."""

    def __init__(self, user: Any, organization: Any, **fields: Any) -> None:
        self.user, self.organization = user, organization
        fields.setdefault("scopes", list(SCOPES))  # its user's voice, unless a test says otherwise
        self.token, self.secret = Token.objects.issue(organization, user, **fields)
        self.client = Client(raise_request_exception=False)
        self.headers = {"Authorization": f"Token {self.secret}"}

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/{path}", query, headers=self.headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """Decisions are about what stands there now, unless the body or a header says otherwise."""
        if (about := DECISION.fullmatch(path)) and "If_Match" not in headers:
            approval = Approval.objects.filter(pk=about[1]).first()
            if approval is not None and "arguments_digest" not in (body or {}):
                headers["If_Match"] = f'"{approval.arguments_digest}"'
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        raw = json.dumps({} if body is None else body)
        return self.raw(path, raw, headers=named)

    def raw(self, path: str, body: Any, content_type: str = "application/json", headers: Any = None) -> Any:
        return self.client.post(
            f"/api/{path}", body, content_type=content_type, headers={**self.headers, **(headers or {})}
        )


def permit(user: Any, *names: str) -> Any:
    """The user with these permissions (`decide_approval`) too, freshly loaded."""
    own = CustomRole.objects.filter(memberships__user=user).first()
    return only(user, *names, *(own.permissions if own else LOOKS + STARTS))


def problem(response: Any) -> tuple[int, str]:
    """Status and code, after checking that it is a whole problem."""
    assert response.headers["Content-Type"] == PROBLEM, response.content[:300]
    body = response.json()
    assert body.keys() >= {"type", "title", "status", "code", "detail"}
    assert body["status"] == response.status_code
    return response.status_code, body["code"]
