"""Keep secrets out of what people and logs see: by value, by how they look, by what they are called."""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

MASK = "[redacted]"
SHORTEST = 8  # characters; a shorter value would be found in ordinary words

NAMED = re.compile(
    r"(?:^|[_\-.])(?:password|passwd|passphrase|pwd|secret|token|api[_\-]?key|apikey|access[_\-]?key|"
    r"private[_\-]?key|authorization|cookie|credentials?)(?:$|[_\-.])",
    re.IGNORECASE,
)
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # apiKey is api_Key
# variables that hold a secret; DATABASE_URL and EMAIL_URL hold one in the middle
SECRET_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$")
URL_VARIABLES = ("DATABASE_URL", "EMAIL_URL", "REDIS_URL")

LOOKS = re.compile(
    r"(?P<scheme>\b(?:Bearer|Token|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}"  # an Authorization header
    r"|(?P<before>://[^/\s:@]*:)[^/\s@]+(?=@)"  # a URL's password
    r"|\b(?:dpt_|whsec_|sk-|ghp_|xox[abp]-)[A-Za-z0-9_+/=-]{8,}",  # keys that say what they are
)


def names_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: password, api_key, Authorization, accessToken …"""
    return bool(NAMED.search(HUMP.sub("_", name)))


def masked(value: Any) -> Any:
    """A JSON value whose secret fields, by their names, are masked; the same object where there are none."""
    if isinstance(value, dict):
        shown = {key: MASK if _is_secret(key, inner) else masked(inner) for key, inner in value.items()}
        return value if all(shown[key] is value[key] for key in value) else shown
    if isinstance(value, list):
        items = [masked(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _is_secret(name: str, value: Any) -> bool:
    """Nothing is no secret, nor is a number: `token: 12` counts."""
    return names_secret(name) and value not in (None, "") and not isinstance(value, int | float)


def text(line: str) -> str:
    """A line of text without the secrets of the environment and without what looks like one."""
    for secret in environment_secrets():
        line = line.replace(secret, MASK)
    return LOOKS.sub(_mask, line)


def _mask(found: re.Match[str]) -> str:
    return (found["scheme"] or found["before"] or "") + MASK


@cache
def environment_secrets() -> tuple[str, ...]:
    """The values of variables that hold secrets, the longest first."""
    return secrets_of(os.environ)


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    found = {value for name, value in environment.items() if SECRET_VARIABLE.search(name)}
    for name in URL_VARIABLES:
        password = re.search(r"://[^/\s:@]*:([^/\s@]+)@", environment.get(name, ""))
        found |= {password[1]} if password else set()
    return tuple(sorted((value for value in found if len(value) >= SHORTEST), key=len, reverse=True))
