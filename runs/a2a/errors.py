"""A2A's errors: a reason, with its JSON-RPC code, HTTP status and the status of google.rpc."""

from dataclasses import dataclass
from typing import Any

DOMAIN = "a2a-protocol.org"
OWN_DOMAIN = "deputy"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


@dataclass(frozen=True)
class Kind:
    code: int
    http: int
    status: str


KINDS = {
    "TASK_NOT_FOUND": Kind(-32001, 404, "NOT_FOUND"),
    "TASK_NOT_CANCELABLE": Kind(-32002, 400, "FAILED_PRECONDITION"),
    "UNSUPPORTED_OPERATION": Kind(-32004, 400, "FAILED_PRECONDITION"),
    "CONTENT_TYPE_NOT_SUPPORTED": Kind(-32005, 400, "INVALID_ARGUMENT"),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": Kind(-32007, 400, "FAILED_PRECONDITION"),
    "VERSION_NOT_SUPPORTED": Kind(-32009, 400, "FAILED_PRECONDITION"),
    "INVALID_PARAMS": Kind(-32602, 400, "INVALID_ARGUMENT"),
    "INVALID_REQUEST": Kind(-32600, 400, "INVALID_ARGUMENT"),
    "METHOD_NOT_FOUND": Kind(-32601, 404, "NOT_FOUND"),
    "PARSE_ERROR": Kind(-32700, 400, "INVALID_ARGUMENT"),
}


class A2AError(Exception):
    """A refusal in A2A's words. `reason` is one of KINDS, or a code of Deputy's own with `kind`."""

    def __init__(self, reason: str, message: str, kind: Kind | None = None) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message
        self.kind = kind or KINDS[reason]

    @property
    def details(self) -> list[dict[str, Any]]:
        domain = DOMAIN if self.reason in KINDS else OWN_DOMAIN
        return [{"@type": ERROR_INFO, "reason": self.reason, "domain": domain}]

    def rpc(self) -> dict[str, Any]:
        """As JSON-RPC's `error`."""
        return {"code": self.kind.code, "message": self.message, "data": self.details}

    def http(self) -> dict[str, Any]:
        """As the body of HTTP+JSON."""
        said = {"code": self.kind.http, "status": self.kind.status, "message": self.message}
        return {"error": {**said, "details": self.details}}


def invalid(message: str) -> A2AError:
    return A2AError("INVALID_PARAMS", message)


def no_task() -> A2AError:
    """The same for what does not exist and for what the asker does not see."""
    return A2AError("TASK_NOT_FOUND", "There is no such task.")


def refused(code: str, message: str, http: int = 403) -> A2AError:
    """What Deputy's own rules refuse, with Deputy's code as the reason."""
    status = {403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}.get(http, "FAILED_PRECONDITION")
    return A2AError(code, message, Kind(-32603 if http == 429 else -32600, http, status))
