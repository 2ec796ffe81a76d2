"""What a remote agent's card says: read strictly, kept in part, compared by digest. All of it is claims.

What is kept is JSON: `name`, `description`, `version`, `provider` and `skills` ([{name, description, tags}])
as text, and where it is asked: `url`, `binding` and `tenant`.
"""

import difflib
import json
from dataclasses import dataclass
from typing import Any

from common.canonical import NotJson, canonical, digest, normalise
from runs.models.mcp import origin

JSON = dict[str, Any]

BINDINGS = ("JSONRPC", "HTTP+JSON")  # in the order in which Deputy prefers them
VERSION = "1."  # of the protocol: 1.0 and what follows it compatibly
MAX_NAME, MAX_DESCRIPTION, MAX_SKILLS, MAX_TAGS, MAX_URL = 200, 10_000, 50, 20, 2_000


class BadCard(Exception):
    """The card cannot be used; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Card:
    """What is kept of a card, and its digest."""

    kept: JSON
    digest: str


def read(text: str, address: str) -> Card:
    """The card that `address` answered with. Raises BadCard.

    Its interface must be at the origin that the card came from: the headers that go with every request were
    entered for that origin, and a card could otherwise have them sent anywhere.
    """
    said = parsed(text)
    url, binding, tenant = _interface(said.get("supportedInterfaces"), address)
    _no_extension_required(said.get("capabilities"))
    provider = said.get("provider")
    kept = {
        "name": _text(said, "name", MAX_NAME, required=True),
        "description": _text(said, "description", MAX_DESCRIPTION),
        "version": _text(said, "version", MAX_NAME),
        "provider": _text(provider, "organization", MAX_NAME) if isinstance(provider, dict) else "",
        "skills": _skills(said.get("skills")),
        "url": url,
        "binding": binding,
        "tenant": tenant,
    }
    try:
        kept = normalise(kept)
    except NotJson as error:
        raise BadCard(f"its card cannot be kept: {error}") from None
    return Card(kept, digest(canonical(kept)))


def parsed(text: str) -> JSON:
    """The JSON object. Raises BadCard."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise BadCard("what its address answers is no JSON, and no card") from None
    if not isinstance(said, dict):
        raise BadCard("what its address answers is no JSON object, and no card")
    return said


def _interface(listed: Any, address: str) -> tuple[str, str, str]:
    """Address, binding and tenant of the interface to be used. Raises BadCard."""
    usable = [
        one
        for binding in BINDINGS
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)
        and one.get("protocolBinding") == binding
        and str(one.get("protocolVersion", "")).startswith(VERSION)
    ]
    if not usable:
        raise BadCard("its card names no interface for A2A 1.0 by JSON-RPC or HTTP+JSON")
    here = [one for one in usable if origin(_text(one, "url", MAX_URL)) == origin(address)]
    if not here:
        raise BadCard(
            "its card names an interface at another origin than its own (scheme, host, port), where Deputy "
            "does not send what was entered for this one"
        )
    url = _text(here[0], "url", MAX_URL).strip()
    return url, here[0]["protocolBinding"], _text(here[0], "tenant", MAX_NAME)


def _no_extension_required(capabilities: Any) -> None:
    listed = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and one.get("required"):
            raise BadCard(f"it requires the extension {str(one.get('uri'))[:MAX_NAME]!r}, which Deputy lacks")


def _skills(listed: Any) -> list[JSON]:
    if not isinstance(listed, list):
        return []
    if len(listed) > MAX_SKILLS:
        raise BadCard(f"its card lists more than {MAX_SKILLS} skills")
    return [
        {
            "name": _text(one, "name", MAX_NAME),
            "description": _text(one, "description", MAX_DESCRIPTION),
            "tags": [str(tag)[:MAX_NAME] for tag in _list(one.get("tags"))[:MAX_TAGS]],
        }
        for one in listed
        if isinstance(one, dict)
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(said: JSON, name: str, most: int, required: bool = False) -> str:
    value = said.get(name) or ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise BadCard(f"'{name}' of its card is no text")
    if len(value) > most:
        raise BadCard(f"'{name}' of its card is longer than {most} characters")
    return value


def described(card: JSON) -> str:
    """What other agents read of it, in the words of its card."""
    skills = "; ".join(filter(None, (skill["description"] or skill["name"] for skill in card["skills"])))
    said = " ".join(filter(None, (card["description"].strip(), f"It can: {skills}" if skills else "")))
    return said[:MAX_DESCRIPTION]


def difference(accepted: JSON | None, card: JSON) -> str:
    """What would change by accepting it: a unified diff, line by line."""
    old, new = (written(each) if each else [] for each in (accepted, card))
    return "\n".join(difflib.unified_diff(old, new, "accepted", "now", lineterm="", n=2))


def written(card: JSON) -> list[str]:
    return json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
