"""Which e-mail addresses are one and the same: those that mail delivers to one mailbox.

A database that ignores case takes letters for the same that stand in different addresses: `ı` and `i`, or
`ſ` and `s`, have the same capital, and `ß` is `ss` where case is folded.
"""

import re
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth import get_user_model

PLAIN = re.compile(r"[^\s@,;<>\"]+@[^\s@,;<>\"]+")
ASCII_LETTERS = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


def is_plain(address: str) -> bool:
    """Whether it is one address and nothing else."""
    return bool(PLAIN.fullmatch(address))


def lowered(address: str) -> str:
    """In small letters, of ASCII alone: what two addresses are compared by."""
    return address.translate(ASCII_LETTERS)


def is_same(one: str, other: str) -> bool:
    return lowered(one) == lowered(other)


def entered(user: Any, address: str) -> list[EmailAddress]:
    """The account's own rows of the address: whoever has typed it in, or has shown that it is theirs."""
    return [one for one in EmailAddress.objects.filter(user=user) if is_same(one.email, address)]


def called(address: str) -> list[Any]:
    """The active accounts that Deputy writes to at the address."""
    alike = get_user_model().objects.filter(email__iexact=address, is_active=True).order_by("pk")
    return [user for user in alike if is_same(user.email, address)]


def holders(address: str) -> list[Any]:
    """The active accounts whose address it is: those that have shown it, or else those made with it.
    What somebody has merely typed in for their own is not theirs.
    """
    shown = EmailAddress.objects.filter(email__iexact=address, verified=True).select_related("user")
    found = [one.user for one in shown if is_same(one.email, address)]
    return [user for user in found if user.is_active] if found else called(address)
