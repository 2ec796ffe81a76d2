"""Which model embeds (the setting EMBEDDING_MODEL), where it is asked and with which key.

| name | asks | reads from the environment |
|---|---|---|
| `openai:NAME` | OpenAI, or any compatible server | OPENAI_BASE_URL, OPENAI_API_KEY |
| `ollama:NAME` | Ollama on this machine | OLLAMA_BASE_URL, OLLAMA_API_KEY |
| `compatible:NAME` | any OpenAI-compatible server | EMBEDDING_BASE_URL, EMBEDDING_API_KEY |
| `embedded:multilingual`, `embedded:english` | nobody: in the process (memory.embeddings.embedded) | |
"""

import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.conf import settings

from memory.embeddings import embedded

OPENAI = "https://api.openai.com/v1"
DEFAULTS = {"openai": OPENAI, "ollama": "http://127.0.0.1:11434/v1", "compatible": ""}
VARIABLES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "ollama": ("OLLAMA_BASE_URL", "OLLAMA_API_KEY"),
    "compatible": ("EMBEDDING_BASE_URL", "EMBEDDING_API_KEY"),
}
EMBEDDED = "embedded"
PRINTABLE = re.compile(r"[\x21-\x7e]*")
LONGEST = 200  # characters of a name


class BadModel(ValueError):
    """EMBEDDING_MODEL, or a variable it needs, cannot be used; the message says what to set."""


@dataclass(frozen=True)
class EmbeddingModel:
    """`name` as the setting has it, kept with each vector; `asked`: as its server knows it."""

    name: str
    asked: str
    base_url: str
    api_key: str = field(default="", repr=False)

    @property
    def embedded(self) -> bool:
        """Whether it runs in this process and no server is asked."""
        return not self.base_url

    @property
    def server(self) -> str:
        """`host:port`, as common.outbound has it."""
        parts = urlsplit(self.base_url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def configured() -> EmbeddingModel | None:
    """The model to embed with; None where none is named. Raises BadModel."""
    if not settings.EMBEDDING_MODEL:
        return None
    name: str = settings.EMBEDDING_MODEL
    prefix, _, asked = name.partition(":")
    if prefix == EMBEDDED:
        return _embedded(name, asked.strip())
    if prefix not in VARIABLES or not asked.strip() or len(name) > LONGEST:
        own = (f"{EMBEDDED}:{each}" for each in embedded.MODELS)
        known = ", ".join([*(f"{each}:NAME" for each in VARIABLES), *own])
        raise BadModel(f"EMBEDDING_MODEL is none of {known}.")
    base, key = VARIABLES[prefix]
    return EmbeddingModel(name, asked.strip(), _base_url(base, DEFAULTS[prefix]), _key(prefix, base, key))


def _embedded(name: str, asked: str) -> EmbeddingModel:
    model = embedded.MODELS.get(asked)
    if model is None:
        raise BadModel(f"EMBEDDING_MODEL names no embedded model: there is {', '.join(embedded.MODELS)}.")
    if not model.installed():
        raise BadModel(f"The embedded model {asked} is not installed. {model.how}")
    return EmbeddingModel(name, asked, base_url="")


def _base_url(variable: str, default: str) -> str:
    """An http(s) URL without a slash at its end. Errors do not quote it: it may hold a password."""
    url = os.environ.get(variable, "").strip() or default
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
        usable = usable and parts.username is None
    except ValueError:
        usable = False
    if not usable:
        raise BadModel(f"{variable} is to be the embedding server's URL, such as http://127.0.0.1:8000/v1.")
    return url.rstrip("/")


def _key(prefix: str, base: str, variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not PRINTABLE.fullmatch(key):
        raise BadModel(f"{variable} holds a character that no key has: set it again.")
    if prefix == "openai" and not key and not os.environ.get(base, "").strip():
        raise BadModel(f"Embeddings of 'openai:' need a key: set {variable} in the environment.")
    return key
