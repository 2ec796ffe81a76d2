"""An A2A client for tests: plain HTTP, and every body that it sends or gets held against the schema."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from django.test import Client

from groups.models import Token
from groups.scopes import SCOPES

SCHEMA = Path(__file__).resolve().parents[2] / "shared/data/standards/a2a/a2a-1.0.schema.json"
RESULTS = {
    "SendMessage": "SendMessageResponse",
    "GetTask": "Task",
    "ListTasks": "ListTasksResponse",
    "CancelTask": "Task",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "GetTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs": "ListTaskPushNotificationConfigsResponse",
}


@cache
def definitions() -> Any:
    return json.loads(SCHEMA.read_text()) if SCHEMA.exists() else None


def fits(type: str, value: Any) -> Any:
    """The value, once it is known to be one of A2A's `type`; unchecked where the schema is not at hand."""
    if (known := definitions()) is not None:
        schema = {**known, "$ref": f"#/$defs/{type}"}
        jsonschema.Draft202012Validator(schema).validate(value)
    return value


def message(text: str, id: str = "m-1", **fields: Any) -> dict[str, Any]:
    found = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}], **fields}
    fits("Message", found)
    return found


class A2A:
    """One token at one agent's address."""

    def __init__(self, user: Any, organization: Any, path: str, scopes: Any = None) -> None:
        reach = sorted(set(SCOPES) - {"speak_as_person"}) if scopes is None else list(scopes)
        self.token, self.secret = Token.objects.issue(organization, user, scopes=reach)
        self.path, self.client = path, Client(raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {self.secret}", "A2A-Version": "1.0"}

    def rpc(self, method: str, params: Any = None, **headers: str) -> Any:
        """The result, or the error."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}}
        answer = self.post("", body, **headers)
        told = answer.json()
        assert (told["jsonrpc"], told["id"]) == ("2.0", 7), told
        if "error" in told:
            return told["error"]
        return fits(RESULTS[method], told["result"]) if method in RESULTS else told["result"]

    def post(self, below: str, body: Any, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            self.path + below, json.dumps(body), "application/json", headers={**self.headers, **named}
        )

    def get(self, below: str, **query: Any) -> Any:
        return self.client.get(self.path + below, query, headers=self.headers)

    def delete(self, below: str) -> Any:
        return self.client.delete(self.path + below, headers=self.headers)

    def send(self, text: str, id: str = "m-1", **fields: Any) -> Any:
        """The task, or the error."""
        told = self.rpc("SendMessage", {"message": message(text, id, **fields)})
        return told.get("task", told)
