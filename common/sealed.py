"""Secrets that have to be read again: encrypted with a key made of SECRET_KEY.

Whoever has the database alone cannot read them. A changed SECRET_KEY makes them unreadable, unless the old
one stands in SECRET_KEY_FALLBACKS.
"""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes


class Unreadable(Exception):
    """The secret was sealed with a key that is not known here."""


def seal(text: str) -> str:
    """`text`, encrypted; as ASCII."""
    return _keys().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """What was sealed. Raises Unreadable."""
    try:
        return _keys().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable("The secret was kept with another SECRET_KEY; enter it again.") from None


def _keys() -> MultiFernet:
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(_key(secret)) for secret in secrets])


def _key(secret: str | bytes) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(b"deputy.sealed:" + force_bytes(secret)).digest())
