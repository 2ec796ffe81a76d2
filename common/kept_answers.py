"""Who may keep an answer: of what was made for somebody nobody but them, and they ask again.

Views that know better say so themselves: what is secret or at once old (`no-store`), what is everybody's
(`public`).
"""

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.utils.decorators import sync_and_async_middleware

HEADER = "Cache-Control"
KNOWN = ("public", "private", "no-store")


@sync_and_async_middleware
def private(get_response: Any) -> Any:
    """Adds to every answer that no proxy between keeps it, but to files, which come before it."""
    if iscoroutinefunction(get_response):

        async def later(request: Any) -> Any:
            return _private(await get_response(request))

        return later
    return lambda request: _private(get_response(request))


def _private(answer: Any) -> Any:
    said = answer.headers.get(HEADER, "no-cache")
    if not any(word in said for word in KNOWN):
        answer.headers[HEADER] = f"private, {said}"
    return answer
