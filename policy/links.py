"""Links in the one form in which they are asked (RFC 3986, 6.2), whatever form a program writes them in."""

import re
import socket
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
PLACE = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>\d*))?")
USUAL_PORT = re.compile(r":0*(?:80|443)\b")
USUAL_PORTS = {"http": "80", "https": "443"}
NUMBER = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
ESCAPES = re.compile(r"(?:%[0-9a-f]{2})+", re.IGNORECASE)
SLASH = re.compile("%(?:2f|5c)", re.IGNORECASE)  # which some servers take for one
RESERVED = "/?#[]@!$&'()*+,;=:%"  # these mean something else than themselves where they are escaped


def normal(text: str, escaped: bool = False, with_part: bool = False, with_port: bool = False) -> str:
    """The link that the text is, without its user, the port that goes without saying, `..` in its path and
    letters written as %61; other characters than a link's `escaped` or as they are, and a slash in the path
    then too. Which part of the page is meant nobody is asked: it stays
    `with_part`, and the usual port `with_port`. Any other text, also with a blank behind its host, as it is.
    Raises Unclear where programs find two hosts in it.
    """
    if not BEGINNING.match(text):
        return text
    found = LINK.fullmatch(_unwrapped(text))
    place = found and PLACE.fullmatch(found["place"].rpartition("@")[2])
    if not found or not place:
        return text
    if found["path"].startswith("\\") and "@" in found["path"].partition("/")[0]:
        raise Unclear("a link may be read as one to another host")
    scheme = found["scheme"].lower()
    port = (place["port"] or "").lstrip("0")
    named = port and (with_port or port != USUAL_PORTS[scheme])
    host = _host(place["host"]) + (f":{port}" if named else "")
    path = _plain(found["path"] if escaped else SLASH.sub("/", found["path"]))
    path = _without_dots(path.replace("\\", "/"))
    asked = path + _plain(found["query"] or "") + ((found["part"] or "") if with_part else "")
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
    """Without `.`, `..` and empty parts, but that of a link in it; one to a host's first page keeps its slash
    or has none.
    """
    kept: list[str] = []
    parts = path.split("/")
    for part in parts[1:]:
        if part == "..":
            del kept[-1:]
        elif part not in ("", ".") or (part == "" and kept and kept[-1].endswith(":")):
            kept.append(part)
    ends = "/" if path and parts[-1] in ("", ".", "..") and kept else ""
    return ("/" if path else "") + "/".join(kept) + ends


def _plain(text: str) -> str:
    return ESCAPES.sub(_character, text)


def _character(escapes: re.Match[str]) -> str:
    """What is escaped, as far as it may be read; what has another meaning unescaped stays."""
    try:
        found = bytes.fromhex(escapes[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return escapes[0]
    return "".join(f"%{ord(sign):02X}" if sign in RESERVED or sign < " " else sign for sign in found)
