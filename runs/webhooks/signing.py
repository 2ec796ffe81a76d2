"""Secrets and signatures of the Standard Webhooks scheme (standardwebhooks.com): `v1`, HMAC-SHA256."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """`whsec_` and 32 random bytes in base 64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers(message_id: str, timestamp: int, body: bytes, keys: Iterable[str]) -> dict[str, str]:
    """The scheme's three headers; one signature for each secret. `timestamp` in seconds."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{_signature(key, signed)}" for key in keys),
    }


def _signature(key: str, signed: bytes) -> str:
    raw = base64.b64decode(key.removeprefix(PREFIX))
    return base64.b64encode(hmac.new(raw, signed, hashlib.sha256).digest()).decode()
