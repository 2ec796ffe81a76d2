"""What Deputy refuses, as exceptions: one class for each kind of status, and the problem's `code` in it."""

from typing import Any

import httpx


class DeputyError(Exception):
    """A problem (RFC 9457). Programs go by `code`: `RUN_ENDED`, `HUMAN_ONLY` and so on, each with a page."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code: str = problem.get("code", "")
        self.detail: str = problem.get("detail", "")
        self.errors: list[dict[str, str]] = problem.get("errors", [])
        self.problem = problem
        super().__init__(f"{status} {self.code}: {self.detail}")


class NotAllowed(DeputyError):
    """401 and 403: nobody is known by the token, or policy or a missing right forbids it."""


class NotFound(DeputyError):
    """404: there is no such thing, or it is not yours to see."""


class Conflict(DeputyError):
    """409 and 428: it collides with what has already happened, or does not say what it is about."""


class Invalid(DeputyError):
    """400, 413, 415 and 422: the request does not fit; `errors` says where."""


class TooMany(DeputyError):
    """429, also after the client has waited and asked again."""


class Unavailable(DeputyError):
    """503, also after the client has waited and asked again."""


class TimedOut(Exception):
    """What was waited for did not come in the time that the caller gave it. Nothing was cancelled."""


KINDS: dict[int, type[DeputyError]] = {
    **dict.fromkeys((401, 403), NotAllowed),
    404: NotFound,
    **dict.fromkeys((409, 428), Conflict),
    **dict.fromkeys((400, 413, 415, 422), Invalid),
    429: TooMany,
    503: Unavailable,
}


def raise_problem(response: httpx.Response) -> None:
    """A hook of httpx's: raises DeputyError for every answer that is one."""
    if response.status_code < 400:
        return
    response.read()
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict) or "code" not in problem:
        problem = {"code": "", "detail": response.text[:300]}
    raise KINDS.get(response.status_code, DeputyError)(response.status_code, problem)
