"""Keep secrets out of what people and logs see: by value, by how they look, by what they are called."""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

from common.lookalikes import as_seen

MASK = "[redacted]"
LONGEST_KEY = 8_000  # characters that are looked through beside a cut
SHORTEST = 8  # characters; a shorter value would be found in ordinary words

NAMED = re.compile(
    r"(?:^|[^a-z])(?:password|passwd|passphrase|pwd|secret|token|api[^a-z]?key|access[^a-z]?key|"
    r"private[^a-z]?key|authorization|cookie|credentials?)(?:$|[^a-z])",
    re.IGNORECASE | re.ASCII,
)
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # apiKey is api_Key
# variables that hold a secret; DATABASE_URL and EMAIL_URL hold one in the middle
SECRET_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$")
URL_VARIABLES = ("DATABASE_URL", "DATABASE_DIRECT_URL", "DATABASE_REPLICA_URL", "EMAIL_URL", "REDIS_URL")

# What says of itself that it is a key: long, and with a digit, so that no ordinary word is taken for one. No
# look ahead is without end, or a text of a thousand beginnings would be read a thousand times.
KEYS = (
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|.*)"
    r"|\beyJ[A-Za-z0-9_-]{8,200}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # a JSON Web Token
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # Amazon's
    r"|\bAIza[A-Za-z0-9_-]{35}"  # Google's
    r"|\b(?:sk|rk|pk|dpt|whsec|gh[opsur]|github_pat|glpat|hf|npm|pypi|xox[abeprs])[-_]"
    r"(?=[A-Za-z_+/=-]{0,60}[0-9])[A-Za-z0-9_+/=-]{12,}"
)
# A URL's password goes on to the last `@` before the host; a name may be an address of mail. What follows the
# first `@` ends at a quotation mark: in JSON the next text begins there.
BEFORE_HOST = r"[^/\s@]+(?:@[^/\s@\"'<>]*)*(?=@)"
IN_URL = rf"(?P<before>://[^/\s:]*:){BEFORE_HOST}"
AUTHORIZED = r"\b(?:Bearer|Token|Basic)\s+"
SHOWN = re.compile(
    rf"{KEYS}|{IN_URL}|(?P<scheme>{AUTHORIZED})(?=[A-Za-z._~+/-]{{0,60}}[0-9=])[A-Za-z0-9._~+/=-]{{12,}}",
    re.DOTALL,
)
# In PostgreSQL: whatever SHOWN may find, and more. A row that does not match holds nothing that is masked.
MAY_HOLD_KEY = (
    r"-----BEGIN |eyJ[A-Za-z0-9_-]{8}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}"
    r"|(?:sk|rk|pk|dpt|whsec|gh[opsur]|github_pat|glpat|hf|npm|pypi|xox[abeprs])[-_][A-Za-z0-9_+/=-]{12}"
    r"|://[^/:]*:[^/@]+@|(?:Bearer|Token|Basic)[^A-Za-z0-9._~+/=-]+[A-Za-z0-9._~+/=-]{12}"
)
# PostgreSQL quotes rows in its errors: somebody's memory, say, as far as 64 bytes of each column.
ROWS = re.compile(
    r"(?<=Failing row contains )\(.{0,4000}?\)\.(?!\S)"
    r"|(?<=\)=)\(.{0,300}?\)(?= (?:already exists|is not present|is still referenced|conflicts))"
    r"|(?<=JSON data, line 1: )[^\n]*",
    re.DOTALL,
)
# the same, and whatever follows the name of a scheme: nobody misses a word in a log
LOOKS = re.compile(
    rf"(?P<scheme>{AUTHORIZED})[A-Za-z0-9._~+/=-]{{8,}}|{IN_URL}"
    rf"|\b(?:dpt_|whsec_|sk-|ghp_|xox[abp]-)[A-Za-z0-9_+/=-]{{8,}}|{KEYS}",
    re.DOTALL,
)


def names_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: password, api_key, Authorization, accessToken, "your
    password", password2, and the same in other widths or in letters that only look like these.
    """
    return bool(NAMED.search(HUMP.sub("_", name if name.isascii() else as_seen(name))))


def masked(value: Any) -> Any:
    """A JSON value without the secrets in its texts, and whose secret fields, by their names, are masked; the
    same object where there are none.
    """
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        found = {key: MASK if _is_secret(key, inner) else masked(inner) for key, inner in value.items()}
        return value if all(found[key] is value[key] for key in value) else found
    if isinstance(value, list):
        items = [masked(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _is_secret(name: str, value: Any) -> bool:
    """Nothing is no secret, nor is a number: `token: 12` counts."""
    return names_secret(name) and value not in (None, "") and not isinstance(value, int | float)


def shown(words: str) -> str:
    """A text as people may read it: what looks like a key is masked. The same object where nothing does."""
    return SHOWN.sub(_mask, words) if len(words) >= SHORTEST else words


def pieces(words: str, start: int, end: int) -> tuple[str, str, str]:
    """A text in three, cut at two places, each as people may read it, also where a cut goes through a key."""
    first, last = max(0, start - LONGEST_KEY), end + LONGEST_KEY
    near = words[first:last]
    spans = [_hidden(found, first) for found in SHOWN.finditer(near)]
    return (
        _piece(words, 0, start, spans),
        _piece(words, start, end, spans),
        _piece(words, end, len(words), spans),
    )


def _hidden(found: re.Match[str], offset: int) -> tuple[int, int]:
    kept = found["scheme"] or found["before"] or ""
    return found.start() + len(kept) + offset, found.end() + offset


def _piece(words: str, start: int, end: int, spans: list[tuple[int, int]]) -> str:
    told, at = [], start
    for left, right in spans:
        if left < end and right > start:
            told += [words[at : max(left, start)], MASK]
            at = min(right, end)
    return "".join([*told, words[at:end]])


class Hidden(ValueError):
    """A text comes back with a mask in the place of words that nobody but the store knows."""


def kept(written: Any, stored: Any) -> Any:
    """What is to be stored where a form or a program sends back a JSON value as it was shown it, masked: what
    is stored, if nothing else has changed. What a mask hides is never put elsewhere, where it might show.

    Raises Hidden where something has changed around a mask.
    """
    if _lines(written) == _lines(masked(stored)):
        return stored
    if isinstance(written, dict):
        before = stored if isinstance(stored, dict) else {}
        return {name: kept(value, before.get(name)) for name, value in written.items()}
    hides = masked(stored) is not stored
    if _masks(written) and (hides or _masks(written) > _masks(stored)):
        raise Hidden
    return written


def _lines(value: Any) -> Any:
    """A text as forms repeat it: with ends of lines of their own."""
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


def _masks(value: Any) -> int:
    return str(value).count(MASK)


def text(line: str) -> str:
    """A line of a log without the secrets of the environment and without what looks like one."""
    for secret in environment_secrets():
        line = line.replace(secret, MASK)
    line = ROWS.sub(MASK, line)
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
        password = re.search(IN_URL, environment.get(name, ""))
        found |= {written := password[0][len(password["before"]) :], unquote(written)} if password else set()
    return tuple(sorted((value for value in found if len(value) >= SHORTEST), key=len, reverse=True))
