"""What the benchmark of the API needs: a database with a run in it, a token, and the statements of a request.

python -m benchmarks.requests_prepare DATABASE_URL FILE     (prints one JSON line)

A request is made in this process, and what it asks of the database is written to FILE (pickled): for each
request the statements with their parameters, and whether each is part of a transaction.
"""

import json
import pickle
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from benchmarks import deputy

WARM_UP = 3  # requests: caches are warm, as in a process that has served some
Recorded = list[tuple[str, Any, bool]]


def recorded(ask: Any) -> tuple[Recorded, Any]:
    """The statements of one request, and its answer."""
    from django.db import connection

    found: Recorded = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        found.append((sql, plain(parameters), connection.in_atomic_block))
        return execute(sql, parameters, many, context)

    for _ in range(WARM_UP):
        ask()
    with connection.execute_wrapper(note):
        answer = ask()
    assert answer.status_code < 300, answer.content
    return found, answer


def plain(value: Any) -> Any:
    """The same without Deputy's own types, which the floor does not know."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def main() -> None:
    url, file = sys.argv[1:]
    deputy.prepare(url)
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    from groups.models import Organization, Token

    settings.ALLOWED_HOSTS = ["*"]
    user = get_user_model().objects.get(username="mia")
    organization = Organization.objects.get(slug="acme")
    _, secret = Token.objects.issue(organization, user, scopes=["runs:read", "runs:write"])
    client = Client(headers={"authorization": f"Bearer {secret}"})
    body = {"project": "supply", "goal": deputy.GOAL}

    def start() -> Any:
        return client.post("/api/runs/", body, content_type="application/json")

    run_id = start().json()["id"]
    posted, started = recorded(start)
    got, shown = recorded(lambda: client.get(f"/api/runs/{run_id}/"))
    told = {
        "get": got,
        "post": posted,
        "run": started.json()["id"],
        "get_body": shown.content,
        "post_body": started.content,
    }
    Path(file).write_bytes(pickle.dumps(told))
    print(json.dumps({"token": secret, "run": run_id, "statements": {"get": len(got), "post": len(posted)}}))


if __name__ == "__main__":
    main()
