"""Errors as RFC 9457 problems: one shape, a stable `code`, and a pointer to each field that is wrong."""

import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response

from common.db import LOCKED, MOVING, state_of

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"

CODES = {
    400: "BAD_REQUEST",
    401: "UNAUTHENTICATED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    406: "NOT_ACCEPTABLE",
    413: "BODY_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    421: "MOVED",
    422: "INVALID",
    429: "TOO_MANY_REQUESTS",
    500: "INTERNAL_ERROR",
    503: "UNAVAILABLE",
}

# RFC 9110's names, where Python's before 3.13 are older.
TITLES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}

# What PostgreSQL may be unable to do for a while, by its SQLSTATE.
TROUBLE = {
    "25006": ("READ_ONLY", "The database takes no changes at the moment."),
    MOVING: ("MOVING", "The organization moves to another cell; nothing was changed. Ask again soon."),
    LOCKED: ("LOCKED", "Somebody else is at this at the moment; nothing was changed. Ask again soon."),
    "53100": ("DISK_FULL", "The database's disk is full: nothing can be kept until there is room."),
}


class Problem(exceptions.APIException):
    """An error with its status and code. `errors` are {pointer, code, detail}; `more` joins the body."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        errors: Iterable[dict[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail, code)
        self.status_code = status
        self.problem = body(status, code, detail, list(errors), **more)
        self.headers = dict(headers or {})


def body(
    status: int, code: str, detail: str, errors: list[dict[str, str]] | None = None, **more: Any
) -> dict[str, Any]:
    """The problem as JSON. `errors` is there only where fields are to blame."""
    problem: dict[str, Any] = {
        "type": f"/problems/{slug(code)}/",
        "title": TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    return {**problem, **({"errors": errors} if errors else {}), **more}


def slug(code: str) -> str:
    """The code as the address of its page has it: `run-ended` (config/problems.py)."""
    return code.lower().replace("_", "-")


def invalid(pointer: str, code: str, detail: str) -> Problem:
    """422 about one field of the body."""
    return Problem(422, "INVALID", detail, [{"pointer": pointer, "code": code, "detail": detail}])


def bad_query(name: str, detail: str) -> Problem:
    """400 about one parameter of the query."""
    error = {"parameter": name, "code": "invalid", "detail": detail}
    return Problem(400, "BAD_QUERY", f"{name}: {detail}", [error])


def unavailable(exc: DatabaseError) -> Problem | None:
    """503 when it is the database that cannot at the moment; None when the statement was wrong."""
    state = state_of(exc)
    if state not in TROUBLE and not isinstance(exc, OperationalError):
        return None
    code, detail = TROUBLE.get(str(state), (CODES[503], "The database cannot be reached."))
    return Problem(503, code, detail, headers={"Retry-After": "1"})


def handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler; None leaves what is nobody's fault but ours to handler500."""
    if isinstance(exc, Http404):
        exc = exceptions.NotFound()
    elif isinstance(exc, PermissionDenied):
        exc = exceptions.PermissionDenied(str(exc) or None)
    elif isinstance(exc, DatabaseError):
        exc = unavailable(exc) or exc
    if not isinstance(exc, exceptions.APIException):
        return None
    problem = described(exc)
    return Response(problem, problem["status"], headers=headers_of(exc), content_type=CONTENT_TYPE)


def described(exc: exceptions.APIException) -> dict[str, Any]:
    if isinstance(exc, Problem):
        return exc.problem
    if isinstance(exc, exceptions.ValidationError):
        errors = list(flattened(exc.get_full_details()))
        first = errors[0]
        detail = f"{first['pointer'] or 'The body'}: {first['detail']}"
        return body(422, CODES[422], detail, errors)
    return body(exc.status_code, CODES.get(exc.status_code, "ERROR"), str(exc.detail))


def headers_of(exc: exceptions.APIException) -> dict[str, str]:
    headers = dict(getattr(exc, "headers", {}))
    if getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = exc.auth_header
    if getattr(exc, "wait", None) is not None:
        headers["Retry-After"] = str(max(1, exc.wait))
        headers |= getattr(exc, "rate_limit", {})
    return headers


def flattened(details: Any, pointer: str = "") -> Iterable[dict[str, str]]:
    """DRF's tree of errors as a list, each with its JSON Pointer (RFC 6901)."""
    if isinstance(details, dict) and {"message", "code"} == details.keys():
        yield {"pointer": pointer, "code": str(details["code"]), "detail": str(details["message"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            whole = name == "non_field_errors"
            yield from flattened(inner, pointer if whole else f"{pointer}/{_escaped(name)}")
    else:
        for i, inner in enumerate(details):
            item = isinstance(inner, dict) and "message" not in inner
            yield from flattened(inner, f"{pointer}/{i}" if item else pointer)


def _escaped(name: Any) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


def response(status: int, detail: str, code: str = "") -> JsonResponse:
    """A problem outside DRF."""
    problem = body(status, code or CODES[status], detail)
    return JsonResponse(problem, status=status, content_type=CONTENT_TYPE)


def not_found(request: HttpRequest) -> HttpResponse:
    """Whatever stands nowhere below /api/."""
    return response(404, "Nothing is here." + _slash_missing(request.path_info))


def _slash_missing(path: str) -> str:
    if path.endswith("/"):
        return ""
    try:
        found = resolve(f"{path}/").func
    except Resolver404:
        return ""
    return "" if found is not_found else f" Addresses end with a slash: {path}/"


class Unavailable(MiddlewareMixin):
    """Middleware: what the database cannot do at the moment is said on pages, too, as 503 and not as an error
    of ours. (The API's own views have said it before: `handler`.)
    """

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        problem = unavailable(exception) if isinstance(exception, DatabaseError) else None
        if problem is None:
            return None
        logger.warning("%s: %s", problem.problem["code"], request.path)
        if request.path_info.startswith("/api/"):
            answer: HttpResponse = JsonResponse(problem.problem, status=503, content_type=CONTENT_TYPE)
        else:
            answer = render(request, "503.html", {"locked": problem.problem["code"] == "LOCKED"}, status=503)
        for name, value in problem.headers.items():
            answer[name] = value
        return answer


def _handler(status: int, html: Callable[..., HttpResponse], detail: str) -> Callable[..., HttpResponse]:
    def handle(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
        if request.path_info.startswith("/api/"):
            return response(status, detail)
        return html(request) if exception is None else html(request, exception)

    return handle


handler400 = _handler(400, defaults.bad_request, "The request cannot be read.")
handler403 = _handler(403, defaults.permission_denied, "You may not do this.")
handler404 = _handler(404, defaults.page_not_found, "Nothing is here.")
handler500 = _handler(500, defaults.server_error, "Something went wrong on our side; it has been logged.")
