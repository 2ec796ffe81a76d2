"""Which e-mail addresses are one and the same: those that mail delivers to one mailbox.

A database that ignores case takes letters for the same that stand in different addresses: `ı` and `i`, or
`ſ` and `s`, have the same capital, and `ß` is `ss` where case is folded.
"""

import re
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth import get_user_model
from django.db.models import Q

from groups.models import Change

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
    return [user for user in _called(address) if user.is_active]


def _called(address: str) -> list[Any]:
    alike = get_user_model().objects.filter(email__iexact=address).order_by("pk")
    return [user for user in alike if is_same(user.email, address)]


def holders(address: str) -> list[Any]:
    """The active accounts whose address it is: those that have shown it, or else those made with it.
    What somebody has merely typed in for their own is not theirs.
    """
    found = _shown(address)
    return [user for user in found if user.is_active] if found else called(address)


def _shown(address: str) -> list[Any]:
    alike = EmailAddress.objects.filter(email__iexact=address, verified=True).select_related("user")
    return [one.user for one in alike if is_same(one.email, address)]


def owners(address: str) -> list[Any]:
    """The accounts that have shown the address or were made with it, closed ones as well."""
    made_with = [user for user in _called(address) if not _only_says(user, address)]
    return list({user.pk: user for user in (*_shown(address), *made_with)}.values())


def only_saying(address: str) -> list[Any]:
    """The accounts that Deputy writes to at the address, and that have never shown it."""
    return [user for user in _called(address) if _only_says(user, address)]


def _only_says(user: Any, address: str) -> bool:
    """Whether the account's own person entered the address, which versions before took for theirs, and has
    not shown that it is.
    """
    rows = entered(user, address)
    if not rows or any(one.verified for one in rows):
        return False
    changed = Change.objects.filter(model=user._meta.label_lower, object_id=user.pk, after__has_key="email")
    last = changed.order_by("-id").first()
    return any(one.primary for one in rows) or (last is not None and last.user_id == user.pk)


def had(address: str) -> list[str]:
    """The ids of accounts that Deputy has written to at the address, or that had shown it, by the record of
    changes.
    """
    mine = Q(model=get_user_model()._meta.label_lower) | Q(
        model=EmailAddress._meta.label_lower, before__verified=True
    )
    found = Change.objects.filter(mine, before__email__iexact=address)
    return [
        one.object_id if one.model != EmailAddress._meta.label_lower else str(one.before.get("user_id"))
        for one in found
        if is_same(one.before["email"], address)
    ]
