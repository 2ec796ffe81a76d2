"""Signing in: how many may try, how often, and at what pace; the same for names that nobody has.

Every attempt takes from three allowances before any password is looked at: of the address, of the account
from this address, and of the account from everywhere. The last one is what a guess from many addresses meets.
It does not hold for a browser in which the person has signed in before, and all of them refill steadily:
whoever uses up an account's attempts locks its owner out neither for good nor for long. A success gives back
what the account has lost.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from threading import BoundedSemaphore
from typing import Any
from unicodedata import normalize

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from rest_framework.throttling import BaseThrottle
from unfold import forms as unfold

from common.api import throttles

AT_ONCE = 4  # passwords that one process looks at side by side; each keeps a core busy
KNOWN = "deputy_known"  # the cookie of a browser in which somebody has signed in
KNOWN_SECONDS = 180 * 24 * 3600
SALT = "deputy.sign_in"
BUSY_SECONDS = 2

_hashing = BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True)
class Bucket:
    """An allowance of `most` attempts in SIGN_IN_SECONDS."""

    key: str
    most: int

    def take(self) -> float:
        """0 where an attempt was left, else the seconds until one is."""
        return throttles.take(self.key, self.most, settings.SIGN_IN_SECONDS)


def account(name: str) -> str:
    """What stands for an account's name: nothing that was typed is kept, nor how it was typed."""
    typed = normalize("NFKC", name).casefold().strip()
    return sha256(f"{settings.SECRET_KEY} {typed}".encode()).hexdigest()[:32]


def buckets(request: HttpRequest, name: str) -> list[Bucket]:
    address = throttles.network_of(BaseThrottle().get_ident(request))
    of = account(name)
    found = [
        Bucket(f"sign-in {address}", settings.SIGN_INS_ADDRESS),
        Bucket(f"sign-in {of} {address}", settings.SIGN_INS),
    ]
    return found if is_known(request, of) else [*found, Bucket(f"sign-in {of}", settings.SIGN_INS_ACCOUNT)]


def wait(request: HttpRequest, name: str) -> float:
    """Take an attempt; 0, or the seconds until the next is allowed."""
    return next((left for bucket in buckets(request, name) if (left := bucket.take())), 0.0)


def forgive(request: HttpRequest, name: str) -> None:
    """After a success: what was used up of the account's allowances from here is given back."""
    for bucket in buckets(request, name)[1:]:
        throttles.give_back(bucket.key)


def is_known(request: HttpRequest, of: str) -> bool:
    """Whether this account has signed in from this browser before."""
    with suppress(signing.BadSignature):
        names = signing.loads(request.COOKIES.get(KNOWN, ""), salt=SALT, max_age=KNOWN_SECONDS)
        return of in names
    return False


def remember(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """Let this browser be known as one of the account's."""
    value = signing.dumps([account(name)], salt=SALT)
    response.set_cookie(
        KNOWN,
        value,
        max_age=KNOWN_SECONDS,
        httponly=True,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )


class TooMany(ValidationError):
    """An attempt that was refused before a password was looked at. `wait`: seconds until the next."""

    def __init__(self, wait: float) -> None:
        words = _("Too many attempts to sign in. Try again in {seconds} seconds.")
        super().__init__(words.format(seconds=whole(wait)), code="throttled")
        self.wait = wait


def paced(request: HttpRequest, name: str, look: Callable[[], Any]) -> Any:
    """What `look` finds, which looks at a password of the account. Raises TooMany, and what it raises."""
    if left := wait(request, name):
        raise TooMany(left)
    if not _hashing.acquire(blocking=False):
        raise TooMany(BUSY_SECONDS)
    try:
        found = look()
    finally:
        _hashing.release()
    forgive(request, name)
    return found


class Paced:
    """A form that looks at a password. `wait`: seconds until the next attempt, where one was refused."""

    wait: float = 0.0

    def clean(self) -> Any:
        own: Any = self
        try:
            return paced(own.request, own.cleaned_data.get("username") or "", super().clean)  # type: ignore[misc]
        except TooMany as refused:
            self.wait = refused.wait
            raise


class SignInForm(Paced, unfold.AuthenticationForm):  # type: ignore[misc]
    """The admin's."""


class MemberSignInForm(Paced, AuthenticationForm):
    """That of people's own pages."""


def whole(seconds: float) -> int:
    return max(1, int(-(-seconds // 1)))


def answered(request: HttpRequest, response: Any) -> Any:
    """The sign-in page's answer: 429 where an attempt was refused; the browser is known after a success."""
    form: Any = getattr(response, "context_data", None) or {}
    form = form.get("form")
    if isinstance(form, Paced) and form.wait:
        response.status_code = 429
        response.headers["Retry-After"] = str(whole(form.wait))
    elif request.method == "POST" and request.user.is_authenticated:
        remember(request, response, request.user.get_username())
    return response
