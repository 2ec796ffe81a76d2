"""Text that no database keeps, or that Python reads for minutes, in what a browser sends: refused before a
page asks for it. And JSON in a form that is nested deeper than it can be read.

The API says for itself what is wrong with a query (common/api/views.py) or a body (common/api/parsers.py).
"""

from collections.abc import Iterator
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.request import QueryDict

from common.api import errors
from common.normal_forms import is_endless

DEEPEST = 200  # brackets; what is readable never comes here


class Characters:
    """Middleware: 400 for a NUL, a lone surrogate or marks without end in the address, a parameter, a form or
    a cookie.
    """

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        if request.path_info.startswith("/api/") or all(map(_acceptable, said(request))):
            return None
        return errors.handler400(request, ValueError("characters that cannot be kept or read"))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, RecursionError) and any(map(_is_deep, said(request))):
            return errors.handler400(request, exception)
        return None


def _is_deep(text: str) -> bool:
    return text.count("[") + text.count("{") > DEEPEST


def said(request: HttpRequest) -> Iterator[str]:
    """Every text of the request that a page may look for, or keep."""
    yield request.path_info
    yield from request.COOKIES.values()
    for parameters in (request.GET, request.POST):
        yield from _texts(parameters)


def _texts(parameters: QueryDict) -> Iterator[str]:
    for name, values in parameters.lists():
        yield name
        yield from (value for value in values if isinstance(value, str))


def _acceptable(text: str) -> bool:
    return possible(text) and not is_endless(text)


def possible(text: str) -> bool:
    """Whether PostgreSQL could keep it."""
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
