"""Where something goes, in few characters: what is left out is never what says whom it reaches.

A host is read from its end and so is an address of mail: `bank.example.….evil.org` is one of evil.org's.
"""

import re

from common.lookalikes import visible
from common.normal_forms import split_url

CUT = "…"
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def host_of(target: str) -> str:
    """The host of a mail or web address; empty for anything else."""
    if "://" in target:
        try:
            return split_url(target.strip()).hostname or ""
        except ValueError:
            return ""
    name, at, host = target.strip().rpartition("@")
    return host.lower() if at and name else ""  # casefold makes one of straße.de and strasse.de


def short(text: str, most: int) -> str:
    """The text on one line, of at most `most` characters. A web address is cut down to its host, an address
    of mail in its name, a host at its start, another name (a path, an account) in its middle, and a sentence
    at its end. Invisible characters are spelled out.
    """
    plain = visible(" ".join(text.split()))
    if len(plain) <= most:
        return plain
    if URL.match(plain):
        host = visible(host_of(plain))
        return f"{end_of(host, most - 2)}/{CUT}" if host else _around(plain, most)
    if "@" in plain.rpartition(" ")[2]:
        return _address(plain, most)
    if " " in plain:
        return plain[: most - 1] + CUT
    return end_of(plain, most) if "." in plain and "/" not in plain else _around(plain, most)


def end_of(host: str, most: int) -> str:
    """The end of a host, where its owner is named."""
    return host if len(host) <= most else CUT + host[len(host) - most + 1 :]


def _address(text: str, most: int) -> str:
    name, _, host = text.rpartition("@")
    room = most - len(host) - 2
    return f"{name[:room]}{CUT}@{host}" if room > 0 else end_of(host, most)


def _around(text: str, most: int) -> str:
    start = (most - 1) // 2
    return text[:start] + CUT + text[start + 1 - most :]
