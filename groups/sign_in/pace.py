"""Signing in: how many may try, how often, and at what pace; the same for names that nobody has.

Every attempt takes from three allowances before any password is looked at: of the address, of the account
from this address, and of the account from everywhere. The last one is what a guess from many addresses meets.
It does not hold for a browser in which the person has signed in before, and all of them refill steadily:
whoever uses up an account's attempts locks its owner out neither for good nor for long. A success gives back
what the account has lost.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from threading import BoundedSemaphore
from typing import TypeVar

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from rest_framework.throttling import BaseThrottle

from common.api import throttles
from common.normal_forms import normalized

AT_ONCE = 4  # attempts that one process lets in; those beyond it are told to come back
HASHES = max(1, (os.cpu_count() or 1) // 2)  # passwords it looks at side by side: each keeps a core busy
KNOWN = ("__Host-" if settings.SESSION_COOKIE_SECURE else "") + "deputy_known"  # cookie: who signed in here
KNOWN_SECONDS = 180 * 24 * 3600
SALT = "deputy.sign_in"
BUSY_SECONDS = 2
FACTORS = 5  # codes of a second factor in SIGN_IN_SECONDS
USED_SECONDS = 120  # for which a code that was used is refused: a clock's code counts for half a minute

_let_in = BoundedSemaphore(AT_ONCE)
_hashing = BoundedSemaphore(HASHES)
WAIT = "_deputy_sign_in_wait"  # on a request: seconds until the next attempt, where one was refused
Found = TypeVar("Found")


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
    typed = normalized("NFKC", name).casefold().strip()
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


def of_factor(name: str) -> Bucket:
    """Codes of a second factor: few for the account, wherever they come from. Only who has the password gets
    as far as this, so the allowance locks out nobody whose password is their own.
    """
    return Bucket(f"factor {account(name)}", FACTORS)


def of_mail(address: str) -> Bucket:
    """Links and codes sent to an address, whether an account has it or not."""
    return Bucket(f"mail {account(address)}", settings.SIGN_IN_MAILS)


def of_logout(request: HttpRequest) -> Bucket:
    """What an address may send as a provider's logout and is none."""
    address = throttles.network_of(BaseThrottle().get_ident(request))
    return Bucket(f"logout {address}", settings.SIGN_INS_ADDRESS)


def forgive_logout(request: HttpRequest) -> None:
    """A provider that ends a whole company's sessions in the evening is refused none of them."""
    throttles.give_back(of_logout(request).key)


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


def refuse(request: HttpRequest, wait: float) -> TooMany:
    """What to raise; the answer to the request then says 429 and when to come back."""
    setattr(request, WAIT, wait)
    return TooMany(wait)


def paced(request: HttpRequest, name: str, look: Callable[[], Found]) -> Found:
    """What `look` finds, which looks at a password of the account; something true is a success.

    Raises TooMany before it looks, and what it raises.
    """
    if left := wait(request, name):
        raise refuse(request, left)
    if not _let_in.acquire(blocking=False):
        raise refuse(request, BUSY_SECONDS)
    try:
        with _hashing:
            found = look()
    finally:
        _let_in.release()
    if found:
        forgive(request, name)
    return found


def paced_factor(request: HttpRequest, name: str, look: Callable[[], Found]) -> Found:
    """What `look` finds, which looks at a code of the account's second factor and raises where it is wrong.
    Raises TooMany before it looks.
    """
    bucket = of_factor(name)
    if left := bucket.take():
        raise refuse(request, left)
    found = look()
    throttles.give_back(bucket.key)
    return found


def is_first_use(name: str, code: str) -> bool:
    """Whether this account has not used the code lately, in whichever process: a code of a second factor is
    good for one use (RFC 6238, 5.2), and allauth remembers its codes in the memory of each process.
    """
    plain = "".join(filter(str.isalnum, code))
    return not throttles.take(f"factor used {account(f'{name} {plain}')}", 1, USED_SECONDS)


def paced_mail(request: HttpRequest, address: str) -> None:
    """Take one of the mails to this address. Raises TooMany."""
    from_here = buckets(request, address)[0]
    if left := from_here.take() or of_mail(address).take():
        raise refuse(request, left)


def paced_own_mail(request: HttpRequest, address: str) -> None:
    """The same for an address that somebody who is signed in names: strangers' addresses are many, and so
    are the ways to write one. Raises TooMany.
    """
    if left := Bucket(f"mails of {request.user.pk}", settings.SIGN_IN_MAILS).take():
        raise refuse(request, left)
    paced_mail(request, address)


def whole(seconds: float) -> int:
    return max(1, int(-(-seconds // 1)))
