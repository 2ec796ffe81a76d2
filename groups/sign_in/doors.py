"""What the answer of a door says besides its page: 429 where an attempt was refused; and the browser in which
somebody has signed in is known from then on.
"""

from collections.abc import Callable
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.reauthentication import STATE_SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest
from django.shortcuts import render
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from rest_framework.throttling import BaseThrottle

from groups.sign_in import pace, sessions

ACCOUNT = "account/"  # where these pages are
CONFIRMING = {"account_reauthenticate", "mfa_reauthenticate", "mfa_reauthenticate_webauthn"}
OPEN = {  # of them, what does not change the account
    *CONFIRMING,
    *(
        "mfa_authenticate",
        "mfa_login_webauthn",
        "oidc_begin",
        "oidc_confirm",
        "oidc_callback",
        "oidc_logout",
        "account_inactive",
    ),
}
SIGNED_IN = "_deputy_signed_in"  # on a request: the name of who signed in by it


class PacedDoors(MiddlewareMixin):
    get_response: Callable[[HttpRequest], Any]

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> Any:
        """Whom an organization's provider vouches for changes nothing about how the account signs in: what
        that organization's administrators can have said would open other organizations, too.
        """
        match = request.resolver_match
        if match is not None and match.url_name in CONFIRMING:
            drop_suspended(request)
        if match is None or not match.route.startswith(ACCOUNT) or match.url_name in OPEN:
            return None
        how = sessions.through(request.session, request.user) if request.user.is_authenticated else None
        if how is None or how.organization is None:
            return None
        return render(request, "account/managed.html", status=403)

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        sessions.note(request)
        if wait := getattr(request, pace.WAIT, 0):
            response.status_code = 429
            response.headers["Retry-After"] = str(pace.whole(wait))
        elif name := getattr(request, SIGNED_IN, ""):
            pace.remember(request, response, name)
        return response


def drop_suspended(request: HttpRequest) -> None:
    """allauth carries out, once somebody confirms that it is them, what was asked in their browser before:
    whoever confirms has not seen what that was, and it may be another's.
    """
    kept = request.session.get(STATE_SESSION_KEY)
    if kept is not None and "request" in kept:
        del request.session[STATE_SESSION_KEY]


def note(sender: Any, request: Any, user: Any, **more: Any) -> None:
    """Remember who signed in; from a browser in which they never have, tell them by mail."""
    if request is None or "REMOTE_ADDR" not in request.META:
        return
    name = user.get_username()
    setattr(request, SIGNED_IN, name)
    if user.email and not pace.is_known(request, pace.account(name)):
        about = {"user": user, "ip": BaseThrottle().get_ident(request), "at": timezone.now()}
        about["user_agent"] = request.headers.get("User-Agent", "")[:200]
        get_adapter(request).send_mail("account/email/new_device", user.email, about)


user_logged_in.connect(note, dispatch_uid="deputy.known_browser")
