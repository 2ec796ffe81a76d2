"""The Content-Security-Policy of every page: scripts come from this server's files, and from nowhere else.

No page has a script in it, so none is allowed there. `unsafe-eval` is for Alpine, with which the admin's
theme opens its menus: it makes functions of the attributes in the theme's own templates. Styles may stand in
a page.
"""

import re
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.utils.decorators import sync_and_async_middleware

HEADER = "Content-Security-Policy"
ORIGIN = re.compile(r"https?://[0-9A-Za-z.\[\]:-]+")
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-eval'",
        "script-src-attr 'none'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


def with_forms_to(origin: str) -> str:
    """The policy of a page whose form leads to another site, by way of Deputy's answer. What is no plain
    origin would write directives of its own: it is left out, and the form leads nowhere.
    """
    if not ORIGIN.fullmatch(origin):
        return POLICY
    return POLICY.replace("form-action 'self'", f"form-action 'self' {origin}")


@sync_and_async_middleware
def policy(get_response: Any) -> Any:
    """Adds the header to every response."""
    if iscoroutinefunction(get_response):

        async def later(request: Any) -> Any:
            return _with_policy(await get_response(request))

        return later
    return lambda request: _with_policy(get_response(request))


def _with_policy(response: Any) -> Any:
    response.headers.setdefault(HEADER, POLICY)
    return response
