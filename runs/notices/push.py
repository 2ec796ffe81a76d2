"""Web Push: to a browser that its person has let tell them. Messages are encrypted for that browser alone,
and signed with a key that the installation made for itself (VAPID, RFC 8292).
"""

import base64
import json
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from django.conf import settings
from django.utils.translation import gettext_lazy

from common import sealed
from common.outbound import OutboundError, fetch
from runs.models import InstallationKey
from runs.notices.base import BadAddress, Message, NotSent, Sender, cut, judge, unsent

NAME = "vapid"
SECONDS = 10.0
TTL = 24 * 3600  # seconds a push service keeps a message for a browser that is away
MOST_BODY = 300  # characters
KEY_BYTES = {"p256dh": 65, "auth": 16}


def key() -> Any:
    """The installation's pair of keys, made on first use; every process has the same."""
    from py_vapid import Vapid02

    if found := InstallationKey.objects.filter(pk=NAME).first():
        return Vapid02.from_pem(sealed.unseal(found.sealed).encode())
    made = Vapid02()
    made.generate_keys()
    InstallationKey.objects.bulk_create(
        [InstallationKey(name=NAME, sealed=sealed.seal(made.private_pem().decode()))], ignore_conflicts=True
    )
    return key()


def public_key() -> str:
    """As browsers take it: an uncompressed point, base64url."""
    form = serialization.PublicFormat.UncompressedPoint
    point = key().public_key.public_bytes(serialization.Encoding.X962, form)
    return base64.urlsafe_b64encode(point).rstrip(b"=").decode()


def check(address: str) -> str:
    """The subscription as a browser gives it: {endpoint, keys: {p256dh, auth}}."""
    subscription = _read(address)
    return f"push: {urlsplit(subscription['endpoint']).hostname}"


def _read(address: str) -> dict[str, Any]:
    try:
        said = json.loads(address)
        endpoint, keys = said["endpoint"], {name: said["keys"][name] for name in KEY_BYTES}
        parts = urlsplit(endpoint)
        fits = all(len(_bytes(keys[name])) == length for name, length in KEY_BYTES.items())
        private = f"{parts.hostname}:{parts.port}" in settings.NOTIFY_ALLOW
        fits = fits and bool(parts.hostname) and (parts.scheme == "https" or private) and len(endpoint) < 1500
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fits = False
    if not fits:
        raise BadAddress("This is no subscription of a browser.")
    return {"endpoint": endpoint, "keys": keys}


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def send(address: str, message: Message, channel: str) -> None:
    from py_vapid import VapidException
    from pywebpush import WebPusher

    try:
        subscription = _read(address)
        parts = urlsplit(subscription["endpoint"])
        told = {"title": message.subject, "body": cut(message.text, MOST_BODY), "url": _where(message)}
        body = WebPusher(subscription).encode(json.dumps(told).encode(), "aes128gcm")["body"]
        claims = {"aud": f"{parts.scheme}://{parts.netloc}", "sub": contact()}
        signed = key().sign(claims)
    except (BadAddress, sealed.Unreadable, VapidException, ValueError) as error:
        raise NotSent(f"The subscription cannot be used: {type(error).__name__}", lasting=True) from None
    try:
        answer = fetch(
            subscription["endpoint"],
            method="POST",
            headers={**signed, "ttl": str(TTL), "urgency": "high", "content-encoding": "aes128gcm",
                     "content-type": "application/octet-stream"},
            content=bytes(body),
            timeout=SECONDS,
            max_bytes=2000,
            max_redirects=0,
            allow_private=frozenset(settings.NOTIFY_ALLOW),
        )  # fmt: skip
    except OutboundError as error:
        raise unsent(error) from None
    if answer.status in (404, 410):
        raise NotSent("The browser has ended its subscription.", lasting=True, gone=True)
    judge(answer)


def contact() -> str:
    """Whom a push service may turn to about us: an https address or a mailbox, nothing else (RFC 8292, 2.1);
    the library takes no port, and no name without a dot.
    """
    parts = urlsplit(settings.PUBLIC_URL)
    if parts.scheme == "https" and "." in (parts.hostname or ""):
        return f"https://{parts.hostname}"
    return f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}"


def _where(message: Message) -> str:
    return message.items[0].link if len(message.items) == 1 else f"{settings.PUBLIC_URL}/waiting/"


SENDER = Sender("push", gettext_lazy("A browser"), check, send)
