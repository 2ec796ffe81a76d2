"""One fetch: its request, its redirects, its answer."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpcore
import httpx

from common.outbound.body import Oversized, Undecodable, read_body, text_of
from common.outbound.connection import Deadline, PinnedBackend, judged, tls
from common.outbound.errors import OutboundError
from common.outbound.turns import turn

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_URL = 8_000  # characters
OURS = frozenset(  # headers that are ours to set, or that change how the message is framed
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive"}
    | {"proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
KEPT_ACROSS_ORIGINS = frozenset({"accept", "accept-language", "user-agent"})
TOLD = frozenset(  # of the answer's headers
    {"content-disposition", "content-language", "content-type", "date", "etag", "last-modified", "link"}
    | {"location", "mcp-session-id", "retry-after", "www-authenticate"}
)


@dataclass(frozen=True)
class Fetched:
    """An answer, whatever its status.

    `url` is where it came from, after the `redirects` (URLs left behind, in order). `headers` are a few,
    in lower case. `text` holds `bytes_read` decoded bytes; `truncated` says there were more.
    """

    url: str
    status: int
    headers: dict[str, str]
    text: str
    bytes_read: int
    truncated: bool
    redirects: tuple[str, ...]


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes | str | None = None,
    timeout: float = 10.0,
    max_bytes: int = 1_000_000,
    max_redirects: int = 5,
    stay: bool = False,
    allow_private: Collection[str] = frozenset(),
    before: Callable[[], None] | None = None,
) -> Fetched:
    """Ask `url` and follow its redirects; raises OutboundError.

    `timeout` is in seconds for all of it, name lookups and slow servers included. A body longer than
    `max_bytes`, counted unpacked, is cut there. Without `max_redirects` a redirect is an answer like any
    other, and so is, to `stay`, one to another host; with or without `www.` it is the same.

    `allow_private` lists what may be reached although it is not public: `host:port` as the URL has them
    (whatever the name resolves to), an address, or `address:port`; IPv6 addresses before a port stand in
    brackets.

    Another origin gets none of the caller's headers but Accept, Accept-Language and User-Agent, and no
    body: where a redirect asks for that, it is returned as it is. In a web process few do so at once
    (turns.py).

    `before` is called when the connection stands, TLS included, and nothing has been said yet; what it raises
    ends it.
    """
    asked = _parsed(url)
    with turn(asked.host):
        request, deadline = _request(method, asked, dict(headers or {}), content), Deadline(timeout, before)
        try:
            return _followed(request, deadline, max_bytes, max_redirects, stay, allow_private)
        except OutboundError as error:
            error.left = deadline.spoken
            raise


def _followed(
    request: httpx.Request,
    deadline: Deadline,
    max_bytes: int,
    max_redirects: int,
    stay: bool,
    allow_private: Collection[str],
) -> Fetched:
    left_behind: list[str] = []
    while True:
        with _answer(request, deadline, allow_private) as answer:
            following = _redirected(request, answer) if max_redirects else None
            if following is None or (stay and not _same_site(request.url, following.url)):
                return _fetched(request, answer, max_bytes, tuple(left_behind))
        if len(left_behind) >= max_redirects:
            raise OutboundError("TOO_MANY_REDIRECTS", f"more than {max_redirects} redirects")
        left_behind.append(str(request.url))
        request = following


def check(url: str, *, timeout: float = 5.0, allow_private: Collection[str] = frozenset()) -> None:
    """Whether `url` might be asked, by what its name resolves to now. Raises OutboundError.

    Asking judges again: a name may lead elsewhere by then.
    """
    parsed = _parsed(url)
    with turn(parsed.host):
        judged(parsed.raw_host.decode("ascii"), _port(parsed), Deadline(timeout), allow_private)


def check_headers(headers: Mapping[str, str]) -> None:
    """Whether these may go with a request. Raises OutboundError."""
    for name, value in headers.items():
        if not (HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(value)):
            raise OutboundError("REQUEST_INVALID", f"{name[:40]!r} is no header of one line of ASCII text")
    _request("GET", httpx.URL("https://example.org/"), dict(headers), None)


# The request and what follows from a redirect


def _parsed(url: str | httpx.URL) -> httpx.URL:
    if len(str(url)) > MAX_URL:
        raise OutboundError("URL_INVALID", f"the URL is longer than {MAX_URL} characters")
    try:
        parsed = httpx.URL(url)
        host = parsed.host  # not any name that begins with xn-- can be read
    except (httpx.InvalidURL, ValueError) as error:
        raise OutboundError("URL_INVALID", f"not a URL: {error}") from None
    if parsed.scheme and parsed.scheme not in ("http", "https"):
        raise OutboundError("SCHEME_REFUSED", f"only http and https, not {parsed.scheme[:40]}")
    if not parsed.scheme or not host or "%" in host:
        raise OutboundError("URL_INVALID", "a URL starts with http:// or https:// and the name of a host")
    if parsed.userinfo:
        raise OutboundError("URL_INVALID", "a URL with a user name or password is refused")
    if not 0 < _port(parsed) < 65_536:
        raise OutboundError("URL_INVALID", f"port {parsed.port} is none")
    return parsed.copy_with(fragment=None)


def _port(url: httpx.URL) -> int:
    if url.port is None:
        return 443 if url.scheme == "https" else 80
    return url.port


def _request(
    method: str, url: httpx.URL, headers: dict[str, str], content: bytes | str | None
) -> httpx.Request:
    if method.upper() not in METHODS:
        raise OutboundError("REQUEST_INVALID", f"{method[:20]!r} is not one of {', '.join(sorted(METHODS))}")
    for name in headers:
        if name.lower() in OURS:
            raise OutboundError("REQUEST_INVALID", f"the header {name} cannot be set")
    try:
        given = httpx.Headers(headers)
    except (TypeError, ValueError):
        raise OutboundError("REQUEST_INVALID", "a header is not ASCII text") from None
    given.setdefault("accept", "*/*")
    given.setdefault("user-agent", "Deputy")
    given["accept-encoding"] = "gzip, deflate"
    given["connection"] = "close"
    return httpx.Request(method.upper(), url, headers=given, content=content)


def _redirected(request: httpx.Request, answer: "Answer") -> httpx.Request | None:
    """The request a redirect leads to; None where there is none to follow."""
    if answer.status not in REDIRECTS or "location" not in answer.headers:
        return None
    try:
        url = _parsed(request.url.join(answer.headers["location"]))
    except httpx.InvalidURL as error:
        raise OutboundError("URL_INVALID", f"the redirect leads to no URL: {error}") from None
    same_origin = _same_origin(request.url, url)
    keeps_method = answer.status in (307, 308) or request.method in ("GET", "HEAD")
    keeps_method = keeps_method or (answer.status != 303 and request.method != "POST")
    if keeps_method and request.content and not same_origin:
        return None
    return _request(
        request.method if keeps_method else "GET",
        url,
        _carried(request.headers, same_origin, keeps_method),
        (request.content or None) if keeps_method else None,
    )


def _same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    """The same scheme, host and port; the step from http to https on their own ports counts as one."""
    if one.raw_host != other.raw_host:
        return False
    ends = (one.scheme, _port(one)), (other.scheme, _port(other))
    return ends[0] == ends[1] or ends == (("http", 80), ("https", 443))


def _same_site(one: httpx.URL, other: httpx.URL) -> bool:
    """The same, with or without `www.` before the host."""
    return _same_origin(*(url.copy_with(host=url.host.removeprefix("www.")) for url in (one, other)))


def _carried(headers: httpx.Headers, same_origin: bool, with_body: bool) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name not in OURS
        and (same_origin or name in KEPT_ACROSS_ORIGINS)
        and (with_body or not name.startswith("content-"))
    }


# The exchange


@dataclass(frozen=True)
class Answer:
    """Status and headers; the body is still to be read."""

    status: int
    headers: httpx.Headers
    chunks: Iterator[bytes]


@contextmanager
def _answer(request: httpx.Request, deadline: Deadline, allow_private: Collection[str]) -> Iterator[Answer]:
    url = request.url
    host = url.raw_host.decode("ascii")
    backend = PinnedBackend(judged(host, _port(url), deadline, allow_private), deadline)
    try:
        with (
            httpcore.ConnectionPool(ssl_context=tls(), network_backend=backend) as pool,
            pool.stream(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=_port(url), target=url.raw_path),
                headers=request.headers.raw,
                content=request.content,
            ) as response,
        ):
            yield Answer(response.status, httpx.Headers(response.headers), response.iter_stream())
    except httpcore.LocalProtocolError as error:
        raise OutboundError("REQUEST_INVALID", f"the request cannot be sent: {error}") from None
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise OutboundError("CONNECTION", f"{url.host} did not answer properly: {error}") from None


def _fetched(request: httpx.Request, answer: Answer, max_bytes: int, redirects: tuple[str, ...]) -> Fetched:
    try:
        body, truncated = read_body(answer.chunks, answer.headers.get("content-encoding", ""), max_bytes)
        text = text_of(body, answer.headers.get("content-type", ""), truncated=truncated)
    except Undecodable as error:
        raise OutboundError("DECODE", str(error)) from None
    except Oversized as error:
        raise OutboundError("TOO_LARGE", str(error)) from None
    headers = {name: value for name, value in answer.headers.items() if name in TOLD}
    return Fetched(str(request.url), answer.status, headers, text, len(body), truncated, redirects)
