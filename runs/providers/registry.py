"""From a model's name (`ollama:qwen3:8b`) to the provider that answers for it.

| name | asks | reads from the environment |
|---|---|---|
| `local` | nobody: rules over facts | – |
| `a2a:NAME` | nobody: it has the remote agent NAME asked by a call (remote.py) | – |
| `openai:NAME` | OpenAI, or any compatible server | OPENAI_API_KEY, OPENAI_BASE_URL |
| `ollama:NAME` | Ollama on this machine | OLLAMA_BASE_URL |
| `compatible:NAME` | any OpenAI-compatible server | DEPUTY_MODEL_BASE_URL, DEPUTY_MODEL_API_KEY |
| `anthropic:NAME` | Anthropic (requirements-models.txt) | ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL |
| `google:NAME` | Gemini (requirements-models.txt) | GOOGLE_API_KEY (GEMINI_API_KEY), GOOGLE_GEMINI_BASE_URL |

An organization may set a key, and for the first three kinds of servers an address, of its own: its runs then
ask by these and by nothing of the environment (keys.py).

Packages add more by entry points `deputy.providers`, and an operator by DEPUTY_PROVIDERS: a prefix, and a
class or function without arguments that makes the provider. Only the operator's may replace these.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import Literal, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.module_loading import import_string

from common import extensions
from common.env import BadSetting
from common.extensions import Extension
from runs.providers import keys
from runs.providers.base import AsyncProvider, Provider, ProviderError
from runs.providers.chat import OPENAI_BASE_URL, ChatProvider
from runs.providers.keys import Own

LOCAL = "runs.providers.local.LocalProvider"
SEAT = "runs.providers.remote.RemoteSeat"
REMOTE = "a2a"  # the prefix of remote agents
OLLAMA_BASE_URL = "http://127.0.0.1:11434/v1"
PRINTABLE = re.compile(r"[\x21-\x7e]+")


def get(model: str, own: Own | None = None) -> tuple[Provider, str]:
    """The provider for `model` and the name to ask it for (`ModelSettings.model`).

    `own` is what the organization has set for it (`keys.of`), which wins over the environment.

    Raises ProviderError, never with a key in it: MODEL_UNKNOWN for a name nobody answers to, MODEL_REFUSED
    where something is missing; the message says what to set.
    """
    prefix, colon, name = model.strip().partition(":")
    added = _added()
    if prefix in added:
        return _made(added[prefix]), name or prefix
    if model.strip() == "local":
        return cast(Provider, import_string(LOCAL)()), "local"
    if prefix == REMOTE and name.strip():
        return cast(Provider, import_string(SEAT)()), name.strip()
    if prefix not in BUILT_IN:
        raise ProviderError("MODEL_UNKNOWN", _unknown(model, sorted({*BUILT_IN, *added})))
    if not colon or not name.strip():
        raise ProviderError("MODEL_UNKNOWN", f"'{model}' names no model: write '{prefix}:NAME'.")
    if own is not None and own.problem:
        raise ProviderError("MODEL_REFUSED", f"The key set for '{prefix}:' cannot be used: {own.problem}")
    return BUILT_IN[prefix].make(own), name.strip()


def check(model: str, organization_id: str = "") -> None:
    """Raise what `get` would, so that a wrong name or a missing key shows at start-up. Asks no server."""
    get(model, keys.of(organization_id, model))


def embedded(model: str) -> bool:
    """Whether it answers inside this process, at once, so that nobody has to wait for it."""
    prefix = keys.provider_of(model)
    here = model.strip() == "local" or prefix == REMOTE
    return here and prefix not in getattr(settings, "DEPUTY_PROVIDERS", {})


def built_in(model: str) -> bool:
    """Whether one of Deputy's own providers of real models answers for it: they read text alone."""
    prefix = keys.provider_of(model)
    return prefix in BUILT_IN and prefix not in getattr(settings, "DEPUTY_PROVIDERS", {})


def host_of(model: str, own: Own | None = None) -> str:
    """Whom its provider asks, `host:port` as the URL has it; the provider's name where it says none."""
    try:
        provider, _ = get(model, own)
    except ProviderError:  # which whoever asks is told
        return ""
    return urlsplit(getattr(provider, "base_url", "")).netloc.rpartition("@")[2] or model.partition(":")[0]


def url_of(model: str, own: Own | None = None) -> str:
    """Where its provider asks; empty where it says nothing of it, or cannot be made."""
    try:
        return str(getattr(get(model, own)[0], "base_url", ""))
    except ProviderError:  # which whoever asks is told
        return ""


def awaitable(model: str, own: Own | None = None) -> bool:
    """Whether it can be asked without a thread."""
    try:
        return isinstance(get(model, own)[0], AsyncProvider)
    except ProviderError:  # which needs no thread to be said
        return True


def seconds(model: str) -> float:
    """How long one call of it may take: the longest pattern of MODEL_SECONDS that fits its name."""
    fitting = [pattern for pattern in settings.MODEL_SECONDS if fnmatchcase(model, pattern)]
    return float(settings.MODEL_SECONDS[max(fitting, key=len)])


def in_environment(provider: str) -> bool:
    """Whether the environment says anything of one of Deputy's own providers."""
    known = BUILT_IN[provider]
    return any(os.environ.get(name, "").strip() for name in (*known.variables, known.address))


def others() -> list[str]:
    """The names of the providers that packages and the operator have added."""
    return sorted(_added())


def _unknown(model: str, prefixes: list[str]) -> str:
    offers = ", ".join(["'local'", *(f"'{prefix}:NAME'" for prefix in prefixes)])
    if not model.strip():
        return f"No model is named. Known are {offers}."
    return f"Nobody answers for the model '{model[:100]}'. Known are {offers}."


def _added() -> dict[str, Extension]:
    """What packages and the operator add, by prefix."""
    named = extensions.named("DEPUTY_PROVIDERS", settings.DEPUTY_PROVIDERS)
    return _brought() | {one.name: one for one in named}


@cache
def _brought() -> dict[str, Extension]:
    """What packages add, by prefix; none of it replaces what Deputy brings."""
    brought = extensions.brought("providers")
    return {one.name: one for one in brought if one.name not in {*BUILT_IN, "local", REMOTE}}


def _made(extension: Extension) -> Provider:
    try:
        make = extension.load()
    except BadSetting as error:
        said = f"The provider '{extension.name}' cannot be used: {error}"
        raise ProviderError("MODEL_UNKNOWN", said) from error
    return cast(Provider, make())


@dataclass(frozen=True)
class BuiltIn:
    """One of Deputy's own providers: what makes it, and what it reads from the environment."""

    make: Callable[[Own | None], Provider]
    variables: tuple[str, ...]  # of its key
    address: str
    default: str = ""  # address

    def server(self, own: Own | None) -> tuple[str, frozenset[str] | None]:
        """Where to ask, and where that goes past the guard, what it lets pass: an organization names the
        address; the operator's own is not guarded.
        """
        if own is not None and own.base_url:
            return own.base_url.rstrip("/"), frozenset(settings.MODEL_ALLOW)
        return _base_url(self.address, self.default), None

    def key(self, own: Own | None) -> str:
        """The key, or nothing. With something of the organization's own, the environment is not asked."""
        if own is not None:
            return own.api_key
        return next(filter(None, map(_optional_key, self.variables)), "")


def _key(prefix: str, own: Own | None) -> str:
    found = BUILT_IN[prefix].key(own)
    if not found:
        names = " or ".join(BUILT_IN[prefix].variables)
        said = (
            f"Models of '{prefix}:' need a key: set {names} in the environment, or a key on the page Models."
        )
        raise ProviderError("MODEL_REFUSED", said)
    return found


def _openai(own: Own | None) -> Provider:
    base_url, allow = BUILT_IN["openai"].server(own)
    key = _key("openai", own) if base_url == OPENAI_BASE_URL else BUILT_IN["openai"].key(own)
    return ChatProvider(base_url, key, own is not None, allow)


def _chat(prefix: str, own: Own | None) -> Provider:
    base_url, allow = BUILT_IN[prefix].server(own)
    return ChatProvider(base_url, BUILT_IN[prefix].key(own), own is not None, allow)


def _native(prefix: Literal["anthropic", "google"], own: Own | None) -> Provider:
    from runs.providers.native import NativeProvider, require_installed

    require_installed(prefix)
    known = BUILT_IN[prefix]
    return NativeProvider(prefix, _key(prefix, own), _base_url(known.address, known.default))


BUILT_IN: dict[str, BuiltIn] = {
    "openai": BuiltIn(_openai, ("OPENAI_API_KEY",), "OPENAI_BASE_URL", OPENAI_BASE_URL),
    "ollama": BuiltIn(partial(_chat, "ollama"), ("OLLAMA_API_KEY",), "OLLAMA_BASE_URL", OLLAMA_BASE_URL),
    "compatible": BuiltIn(partial(_chat, "compatible"), ("DEPUTY_MODEL_API_KEY",), "DEPUTY_MODEL_BASE_URL"),
    "anthropic": BuiltIn(
        partial(_native, "anthropic"),
        ("ANTHROPIC_API_KEY",),
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
    ),
    "google": BuiltIn(
        partial(_native, "google"),
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
    ),
}


def _optional_key(variable: str) -> str:
    """The variable without the spaces and newlines that come along when a key is pasted."""
    key = os.environ.get(variable, "").strip()
    if key and not PRINTABLE.fullmatch(key):
        said = (
            f"{variable} holds a character that no key has (space, line break, beyond ASCII): set it again."
        )
        raise ProviderError("MODEL_REFUSED", said)
    return key


def _base_url(variable: str, default: str = "") -> str:
    """An http(s) URL without a slash at its end. Errors do not quote the value: it may hold a password."""
    url = os.environ.get(variable, "").strip() or default
    if not url:
        raise ProviderError(
            "MODEL_REFUSED", f"Set {variable} to the server's URL, such as http://127.0.0.1:8000/v1."
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        said = f"{variable} is not a URL: it must look like http://127.0.0.1:8000/v1."
        raise ProviderError("MODEL_REFUSED", said)
    return url.rstrip("/")
