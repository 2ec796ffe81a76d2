"""Links in the one form in which they are asked (RFC 3986, 6.2), whatever form a program writes them in."""

import re
import socket
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import quote

from policy.meanings import Unclear
from policy.provenance.words import in_one_form

DOTS = str.maketrans("。．｡", "...")  # a host may be written with any of them
# What programs leave out of a host (UTS 46), beside what nobody sees.
LEFT_OUT = re.compile("[\u1806\u180b-\u180d\u180f\ufe00-\ufe0f\U0001bca0-\U0001bca3\U000e0100-\U000e01ef]")

WRAPPED = 4  # times, at most
PAIRS = {"<": ">", "(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "`": "`"}
BEGINNING = re.compile(rf"[\s{re.escape(''.join(PAIRS))}]*+(?:URL:\s*)?https?:", re.IGNORECASE)
LINK = re.compile(
    r"(?:URL:\s*)?(?P<scheme>https?):[/\\]+(?P<place>(?:[^/\\?#]*@)?[^/\\?#\s@]*)"
    r"(?P<path>[^?#\s]*)(?P<query>\?[^#\s]*)?(?P<part>#\S*)?",
    re.IGNORECASE,
)
PLACE = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]*))?")
USUAL_PORT = re.compile(r":0*(?:80|443)\b")
USUAL_PORTS = {"http": "80", "https": "443"}
NUMBER = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
ESCAPES = re.compile(r"(?:%[0-9a-f]{2})+", re.IGNORECASE)
SLASH, EMPTY = re.compile("%(?:2f|5c)", re.IGNORECASE), re.compile(r"(?<!:)/{2,}")
RESERVED = "/?#[]@!$&'()*+,;=:%"  # these mean something else than themselves where they are escaped


def normal(
    text: str, path_as: int = 0, escaped: bool = False, with_part: bool = False, with_port: bool = False
) -> str:
    """The link that the text is, without its user, the port that goes without saying, `..` in its path and
    letters written as %61; other characters than a link's `escaped` or as they are. `path_as`: one of PATHS,
    the ways in which programs read a path. Which part of the page is meant nobody is asked: it stays
    `with_part`, and the usual port `with_port`. Any other text, also with a blank behind its host, as it is.
    Raises Unclear where programs find two hosts in it.
    """
    if not BEGINNING.match(text):
        return text
    found = LINK.fullmatch(_unwrapped(text))
    if not found:
        return text
    place = PLACE.fullmatch(found["place"].rpartition("@")[2])
    if not place:
        raise Unclear("a link's host or port is none")
    if found["path"].startswith("\\") and "@" in found["path"].partition("/")[0]:
        raise Unclear("a link may be read as one to another host")
    scheme = found["scheme"].lower()
    port = (place["port"] or "").lstrip("0")
    named = port and (with_port or port != USUAL_PORTS[scheme])
    host = _host(place["host"]) + (f":{port}" if named else "")
    query = found["query"] if found["query"] not in (None, "?") else ""
    path = PATHS[path_as](found["path"].replace("\\", "/"))
    asked = path + _plain(query) + ((found["part"] or "") if with_part else "")
    return f"{scheme}://{host}{quote(asked, safe=RESERVED) if escaped else asked}"


def _unwrapped(text: str) -> str:
    """Without blanks around it, and the signs that it stands between or behind."""
    said = text.strip()
    for _ in range(WRAPPED):
        if said[:1] not in PAIRS:
            break
        said = said[1 : -1 if said.endswith(PAIRS[said[0]]) else None].strip()
    return said


def _host(written: str) -> str:
    host = in_one_form(LEFT_OUT.sub("", _plain(written))).translate(DOTS).lower().rstrip(".")
    with suppress(OSError, ValueError):
        if host.startswith("["):
            number = ip_address(host[1:-1])
            inner = getattr(number, "ipv4_mapped", None)
            return str(inner) if inner else f"[{number}]"
        if NUMBER.fullmatch(host):
            return socket.inet_ntoa(socket.inet_aton(host))  # 2852039166, 0xa9.0xfe.0251.1
    return host


def _without_dots(path: str) -> str:
    """As RFC 3986 has it (5.2.4): `..` takes away what stands before it, also where that is empty."""
    kept: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts and parts[-1] in (".", ".."):
        kept.append("")
    return ("/" if path else "") + "/".join(kept)


def _merged(path: str) -> str:
    """Without empty parts, but that of a link in it."""
    return EMPTY.sub("/", path)


def _opened(path: str) -> str:
    """With slashes that are escaped as such, which some servers take for one."""
    return _plain(SLASH.sub("/", path))


# Those in which an escaped slash is itself come first.
PATHS: tuple[Callable[[str], str], ...] = (
    lambda path: _plain(_without_dots(path)),
    lambda path: _merged(_without_dots(_plain(path))),
    lambda path: _without_dots(_merged(_opened(path))),
    lambda path: _merged(_opened(_without_dots(path))),
    lambda path: _merged(_without_dots(_opened(path))),
)
KEEPING_SLASHES = 2


def _plain(text: str) -> str:
    return ESCAPES.sub(_character, text)


def _character(escapes: re.Match[str]) -> str:
    """What is escaped, as far as it may be read; what has another meaning unescaped stays."""
    found, at = "", 0
    for sign in bytes.fromhex(escapes[0].replace("%", "")).decode(errors="surrogateescape"):
        end = at + 3 * len(sign.encode(errors="surrogateescape"))
        stays = sign in RESERVED or sign < " " or "\udc80" <= sign <= "\udcff"
        found, at = found + (escapes[0][at:end] if stays else sign), end
    return found
