"""Slack with buttons: messages in Block Kit to an app's webhook, and its signature of what comes back.

The address is JSON: the webhook and the app's signing secret. Only what any one decider
may decide has buttons; the rest has its link.
"""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from common.canonical import canonical
from common.outbound import OutboundError, fetch
from runs.notices.base import BadAddress, Item, Message, NotSent, Sender, cut, judge, unsent

SECONDS = 10.0
HOST = "hooks.slack.com"
FRESH_SECONDS = 300  # by Slack's own advice: an older request is somebody's copy
MOST_TEXT = 2900  # characters; Slack takes 3000 in a section
MOST_HEADER = 150
APPROVE, REJECT = "deputy_approve", "deputy_reject"


def check(address: str) -> str:
    _read(address)
    return "Slack"


def _read(address: str) -> dict[str, str]:
    try:
        said = json.loads(address)
        webhook, secret = said["webhook"].strip(), said["signing_secret"].strip()
        fits = may_ask(webhook) and len(webhook) < 500 and 16 <= len(secret) < 200
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fits = False
    if not fits:
        raise BadAddress(
            "This takes the app's incoming webhook (https://hooks.slack.com/…) and its signing secret."
        )
    return {"webhook": webhook, "signing_secret": secret}


def may_ask(address: str) -> bool:
    """Whether messages and answers may be sent there: Slack itself, or what the operator allows."""
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname == HOST and parts.port in (None, 443):
        return True
    return f"{parts.hostname}:{parts.port}" in settings.NOTIFY_ALLOW


def send(address: str, message: Message, channel: str) -> None:
    try:
        to = _read(address)["webhook"]
    except BadAddress as error:
        raise NotSent(str(error), lasting=True) from None
    post(to, blocks(message))


def post(to: str, body: dict[str, Any]) -> None:
    """Raises NotSent."""
    if not may_ask(to):
        raise NotSent("This is no address of Slack's.", lasting=True)
    try:
        answer = fetch(
            to,
            method="POST",
            headers={"content-type": "application/json"},
            content=canonical(body).encode(),
            timeout=SECONDS,
            max_bytes=2000,
            max_redirects=0,
            allow_private=frozenset(settings.NOTIFY_ALLOW),
        )
    except OutboundError as error:
        raise unsent(error) from None
    judge(answer)


def blocks(message: Message) -> dict[str, Any]:
    """The message in Block Kit; `text` is for notifications."""
    found: list[dict[str, Any]] = [{"type": "header", "text": _plain(message.subject, MOST_HEADER)}]
    for item in message.items:
        found += _item(item)
    if message.more:
        found.append({"type": "context", "elements": [_plain(message.more, MOST_TEXT)]})
    return {"text": cut(message.subject, MOST_TEXT), "blocks": found}


def _item(item: Item) -> list[dict[str, Any]]:
    text = cut("\n".join((f"*{_escaped(item.title)}*", *map(_escaped, item.lines))), MOST_TEXT)
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    buttons = []
    if item.approval:
        value = canonical({"approval": item.approval, "digest": item.digest})
        buttons = [
            _button(_("Approve"), APPROVE, "primary", value),
            _button(_("Reject"), REJECT, "danger", value),
        ]
    if item.link:
        look = {"type": "button", "text": _plain(_("Open"), 75), "action_id": "open", "url": item.link}
        buttons.append(look)
    return [section, {"type": "actions", "elements": buttons}] if buttons else [section]


def _button(words: str, action: str, style: str, value: str) -> dict[str, Any]:
    return {"type": "button", "text": _plain(words, 75), "action_id": action, "style": style, "value": value}


def _plain(words: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": cut(words, most)}


def _escaped(words: str) -> str:
    """Slack's own markup is not for names and reasons that others chose."""
    for mark, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("*", "∗"), ("`", "'")):
        words = words.replace(mark, written)
    return words


def signed_by(address: str, headers: Any, body: bytes, now: float) -> bool:
    """Whether Slack signed this request with the app's secret, lately. `now`: seconds since 1970."""
    stamp, signature = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
    try:
        secret = _read(address)["signing_secret"]
    except BadAddress:
        return False
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12) or abs(now - int(stamp)) > FRESH_SECONDS:
        return False
    made = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"v0={made}".encode(), signature.encode("utf-8", "replace"))


SENDER = Sender("slack", gettext_lazy("Slack, with buttons"), check, send)
