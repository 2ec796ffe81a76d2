"""What the answer of a door says besides its page: 429 where an attempt was refused; and the browser in which
somebody has signed in is known from then on.
"""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from groups.sign_in import pace

SIGNED_IN = "_deputy_signed_in"  # on a request: the name of who signed in by it


class PacedDoors(MiddlewareMixin):
    get_response: Callable[[HttpRequest], Any]

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        if wait := getattr(request, pace.WAIT, 0):
            response.status_code = 429
            response.headers["Retry-After"] = str(pace.whole(wait))
        elif name := getattr(request, SIGNED_IN, ""):
            pace.remember(request, response, name)
        return response


def note(sender: Any, request: Any, user: Any, **more: Any) -> None:
    if request is not None:
        setattr(request, SIGNED_IN, user.get_username())


user_logged_in.connect(note, dispatch_uid="deputy.known_browser")
