"""Chats and phones, by the apprise library, which knows what each of them wants to be sent.

The library only writes the requests. Its plugins send with `requests`; the name means `Guarded` in their
modules here, so that every request goes through Deputy's guarded client, to hosts that the plugin's service
has, or that the operator allows (NOTIFY_ALLOW). Options of an address that would have a plugin read files
or other addresses are refused, as is every plugin that is not listed.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.utils.translation import gettext_lazy

from common.failures import FAILURES
from common.outbound import OutboundError, fetch
from runs.notices.base import BadAddress, Message, NotSent, Sender

SECONDS = 10.0
MOST = 2000
# The plugins whose service has hosts of its own, and those. A name with a dot in front: and all below it.
FIXED: dict[str, tuple[str, ...]] = {
    "NotifySlack": ("hooks.slack.com", "slack.com"),
    "NotifyWorkflows": (".logic.azure.com", ".api.powerplatform.com"),
    "NotifyDiscord": ("discord.com",),
    "NotifyTelegram": ("api.telegram.org",),
    "NotifyGoogleChat": ("chat.googleapis.com",),
    "NotifyPushover": ("api.pushover.net",),
    "NotifyPushBullet": ("api.pushbullet.com",),
    "NotifyZulip": (".zulipchat.com",),
    "NotifyNtfy": ("ntfy.sh",),
}
# Those of services that people run themselves: at hosts that the operator allows.
ANYWHERE = frozenset({"NotifyNtfy", "NotifyMattermost", "NotifyGotify", "NotifyRocketChat"})
OPTIONS = frozenset({"channel", "mode", "priority", "tags", "to", "id", "ver", "group"})
LISTED = "slack, workflows (Teams), discord, tgram, gchat, pover, pbul, zulip, ntfy, mmost, gotify, rocket"

_now = threading.local()


def check(address: str) -> str:
    """What may be seen of it: the scheme, and the host where that is no secret."""
    plugin = _plugin(address)
    name = type(plugin).__name__
    host = str(getattr(plugin, "host", "") or "")
    if name not in FIXED or (name == "NotifyNtfy" and str(plugin.mode) != "cloud"):
        port = plugin.port or (443 if plugin.secure else 80)
        if not _allowed_by_operator(host, port):
            raise BadAddress(f"The host {host} is not among those that the operator allows (NOTIFY_ALLOW).")
        return f"{urlsplit(address).scheme}://{host}"
    return f"{urlsplit(address).scheme}://…"


def send(address: str, message: Message, channel: str) -> None:
    try:
        plugin = _plugin(address)
    except BadAddress as error:
        raise NotSent(str(error), lasting=True) from None
    plugin.overflow_mode = _library().OverflowMode.SPLIT  # where a service takes less than a digest may have
    with _sending(type(plugin).__name__) as outcome:
        try:
            taken = plugin.notify(body=message.text, title=message.subject)
        except FAILURES as error:  # of the library: whatever it is, the message did not leave
            raise NotSent(f"{type(error).__name__} in {type(plugin).__name__}") from None
    if not taken or outcome.refused:
        raise outcome.refused or NotSent(f"{type(plugin).__name__} was not answered as it should be.")


def _plugin(address: str) -> Any:
    """The library's object for the address. Raises BadAddress."""
    address = address.strip()
    if len(address) > MOST or not address.isprintable() or "://" not in address:
        raise BadAddress(f"An address starts with a service's name and ://: {LISTED}.")
    try:
        asked = {name.lower().lstrip("+-:") for name, _ in parse_qsl(urlsplit(address).query, True)}
    except ValueError:
        raise BadAddress("The address cannot be read.") from None
    if refused := sorted(asked - OPTIONS):
        raise BadAddress(f"An address takes no option {refused[0][:40]!r} here.")
    if urlsplit(address).scheme.lower() in ("http", "https"):
        raise BadAddress(f"An address starts with a service's name and ://: {LISTED}.")
    plugin = _library().Apprise.instantiate(address, asset=_asset(), suppress_exceptions=True)
    ours = plugin is not None and type(plugin).__module__.startswith("apprise.plugins.")
    if not ours or type(plugin).__name__ not in {*FIXED, *ANYWHERE}:
        raise BadAddress(f"This is no address of one of: {LISTED}.")
    _guard(type(plugin).__module__)
    return plugin


@cache
def _library() -> Any:
    import logging

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it writes addresses into its warnings
    return import_module("apprise")


def _asset() -> Any:
    """Keeps nothing on disk, loads no plugin of anybody else, names no picture on another server."""
    library = _library()
    return library.AppriseAsset(
        app_id="Deputy",
        app_desc="Deputy",
        app_url=settings.PUBLIC_URL,
        image_url_mask="",
        image_url_logo="",
        plugin_paths=[],
        async_mode=False,
        storage_mode=library.PersistentStoreMode.MEMORY,
    )


def _guard(module: str) -> None:
    """From here on the plugin's module sends through the guard."""
    plugins: Any = import_module(module)
    if not isinstance(plugins.requests, Guarded):
        plugins.requests = Guarded()


class _Outcome:
    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        self.refused: NotSent | None = None


@contextmanager
def _sending(plugin: str) -> Iterator[_Outcome]:
    _now.outcome = outcome = _Outcome(plugin)
    try:
        yield outcome
    finally:
        _now.outcome = None


def _allowed_by_operator(host: str, port: int) -> bool:
    return bool({host.lower(), f"{host.lower()}:{port}"} & {one.lower() for one in settings.NOTIFY_ALLOW})


def may_ask(plugin: str, address: str) -> bool:
    """Whether this plugin may send to the address at all; the guard judges where its name leads."""
    parts = urlsplit(address)
    host, port = (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)
    own = any(host == one or (one[0] == "." and host.endswith(one)) for one in FIXED.get(plugin, ()))
    if own:
        return parts.scheme == "https" and port == 443
    return plugin in ANYWHERE and _allowed_by_operator(host, port)


class Guarded:
    """What a plugin takes for `requests`: the same words, and no other way out than the guard."""

    def __init__(self) -> None:
        import requests

        self.codes, self.exceptions = requests.codes, requests.exceptions
        self.RequestException = requests.RequestException

    def get(self, url: str, **options: Any) -> Any:
        return self.request("GET", url, **options)

    def post(self, url: str, data: Any = None, **options: Any) -> Any:
        return self.request("POST", url, data=data, **options)

    def put(self, url: str, data: Any = None, **options: Any) -> Any:
        return self.request("PUT", url, data=data, **options)

    def request(self, method: str, url: str, **options: Any) -> Any:
        """Raises requests.ConnectionError, as plugins expect."""
        import requests

        outcome: _Outcome | None = getattr(_now, "outcome", None)
        passed = {name: options.get(name) for name in ("data", "json", "headers", "params", "auth")}
        prepared = requests.Request(method, url, **passed).prepare()
        if outcome is None or not may_ask(outcome.plugin, str(prepared.url)):
            return self._refuse(outcome, NotSent("The host is not one of this service's.", lasting=True))
        headers = {
            name: value.decode("latin-1") if isinstance(value, bytes) else value
            for name, value in prepared.headers.items()
            if name.lower() not in FRAMING
        }
        content = prepared.body if isinstance(prepared.body, bytes | str) else None
        try:
            answer = fetch(
                str(prepared.url),
                method=method,
                headers=headers,
                content=content,
                timeout=SECONDS,
                max_bytes=100_000,
                max_redirects=0,
                allow_private=frozenset(settings.NOTIFY_ALLOW),
            )
        except OutboundError as error:
            return self._refuse(outcome, NotSent(f"{error.code}: {error.message}"))
        response = requests.Response()
        response.status_code, response.url = answer.status, answer.url
        response.headers.update(answer.headers)
        response._content, response.encoding = answer.text.encode(), "utf-8"
        return response

    def _refuse(self, outcome: _Outcome | None, why: NotSent) -> Any:
        if outcome is not None:
            outcome.refused = why
        raise self.exceptions.ConnectionError(why.why)


FRAMING = frozenset({"content-length", "host", "connection", "accept-encoding", "transfer-encoding"})

SENDER = Sender("chat", gettext_lazy("Chat or phone, by an address of the apprise library"), check, send)
