"""Read the web, public addresses only."""

import re
from ipaddress import ip_address
from typing import Annotated, Any

import httpx
from django.conf import settings

from common.outbound import OutboundError, fetch, readable
from policy.provenance.infer import Declaration
from runs.tools import leaving
from runs.tools.base import ToolContext, ToolError
from runs.tools.previews import Preview
from runs.tools.registry import tool

MAX_TEXT = 100_000  # characters of a page that reach the log
ROUNDABOUT = re.compile(r"\s|^[^?#]*/(?:\.|%2e){1,2}(?:[/?#\\]|$)", re.IGNORECASE)  # blanks, . and ..
NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]*", re.IGNORECASE)  # at the end of a host, or nothing behind a dot


@tool(
    description="Fetch a public web page or file over HTTP and return its text.",
    risk_level="medium",
    mutating=False,
    supports_parallel=True,
    idempotent=True,
    capabilities=("read_web",),
    declared=Declaration(
        steering=frozenset({"url"}), effect=False, deeds=frozenset({"read"}), network=True, origin="declared"
    ),
    preview=Preview("http", {"url": "url"}, {"method": "GET"}),
)
def http_get(run: ToolContext, *, url: Annotated[str, "An http:// or https:// address"]) -> dict[str, Any]:
    """GET within limits of size and time. Where the site leads to another one, its address is told and not
    asked: what policy says about it nobody has looked at.
    """
    try:
        if not _as_sent(url):
            said = "The link is written otherwise than it would be asked: use the plain address."
            raise ToolError(said, "URL_INVALID")
        allowed = frozenset(settings.OUTBOUND_ALLOW)
        page = fetch(url, stay=True, allow_private=allowed, before=leaving.once_more)
    except OutboundError as error:
        raise ToolError(error.message, error.code) from None
    kind = page.headers.get("content-type", "")
    text = readable(page.text) if "html" in kind else page.text
    leads_to = page.headers.get("location", "") if 300 <= page.status < 400 else ""
    return {
        "url": page.url,
        "status": page.status,
        "content_type": kind,
        "text": text[:MAX_TEXT],
        "truncated": page.truncated or len(text) > MAX_TEXT,
        **({"leads_to": leads_to} if leads_to else {}),
    }


def _as_sent(url: str) -> bool:
    """Whether the host stands there as it is asked, which is what rules and deciders have seen: no empty name
    of a user, other dots, port that goes without saying, dot at its end, or number that is written otherwise.
    `fetch` tells what is no URL.
    """
    try:
        asked = httpx.URL(url)
        raw, people = asked.netloc.decode().lower(), asked.host.lower()
    except (httpx.InvalidURL, ValueError):
        return True
    written = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0].lower()
    port = f":{asked.port}" if asked.port else ""
    usual = _is_usual(people) and written in (raw, f"{people}{port}") and not ROUNDABOUT.search(url)
    return asked.userinfo != b"" or usual


def _is_usual(host: str) -> bool:
    """Whether a name, or a number in the one way in which numbers of hosts are written: 93.184.216.34, and
    neither 0x5db8d822 nor the same inside one of IPv6.
    """
    try:
        number = ip_address(host)
    except ValueError:
        return not NUMBER.fullmatch(host.rpartition(".")[2])
    return str(number) == host and getattr(number, "ipv4_mapped", None) is None
