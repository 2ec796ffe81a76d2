"""Guarded outbound HTTP against real servers on the loopback."""

import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from common.outbound import Fetched, OutboundError, connection, fetch
from runs.tools.builtin.web import http_get
from tests.guard import ends

CERTIFICATE = Path(__file__).parents[1] / "data" / "deputy.test.pem"  # for deputy.test, known to nobody else

Site = dict[str, Callable[[BaseHTTPRequestHandler], None]]


@contextmanager
def serving(site: Site, tls: bool = False) -> Iterator[int]:
    """A server on the loopback that answers each path with its function; its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.close_connection = True
            site[self.path.partition("?")[0]](self)

        do_GET = do_HEAD = do_POST = do_PUT = answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that hangs up is part of the test
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that says what it likes to each connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connected, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=say, args=(connected,), daemon=True).start()

        def say(connected: socket.socket) -> None:
            with connected:
                try:
                    talk(connected)
                except OSError:
                    return  # the client hung up

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def replying(
    status: int = 200, body: bytes = b"", **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def echo(handler: BaseHTTPRequestHandler) -> None:
    """Reply with what was asked, as JSON."""
    length = int(handler.headers.get("content-length", 0))
    asked = {
        "method": handler.command,
        "path": handler.path,
        "headers": {name.lower(): value for name, value in handler.headers.items()},
        "body": handler.rfile.read(length).decode(),
    }
    replying(body=json.dumps(asked).encode(), content_type="application/json")(handler)


def local(port: int, path: str = "/", **how: object) -> Fetched:
    """Fetch from this machine, which is allowed by host and port alone."""
    how.setdefault("allow_private", {f"127.0.0.1:{port}"})
    return fetch(f"http://127.0.0.1:{port}{path}", **how)  # type: ignore[arg-type]


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(OutboundError) as caught:
        yield
    assert caught.value.code == code, caught.value.message


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names that resolve to one address list after the other, as a test says; the last one stays."""
    answers: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: object, **options: object) -> list:
        if host not in answers:
            return real(host, port, *args, **options)  # type: ignore[arg-type]
        addresses = answers[host].pop(0) if len(answers[host]) > 1 else answers[host][0]
        return [found for address in addresses.split() for found in real(address, port, *args, **options)]  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def test_an_answer_is_told_with_its_status_headers_and_text() -> None:
    page = replying(404, "nothing hé".encode(), content_type="text/plain", etag='"7"', set_cookie="a=b")
    with serving({"/": page}) as port:
        answer = local(port)
    assert (answer.status, answer.text, answer.bytes_read, answer.truncated) == (404, "nothing hé", 11, False)
    assert answer.url == f"http://127.0.0.1:{port}/"
    assert answer.headers["content-type"] == "text/plain"
    assert answer.headers["etag"] == '"7"'
    assert "set-cookie" not in answer.headers
    assert answer.redirects == ()


def test_a_request_arrives_as_it_was_asked_for() -> None:
    with serving({"/x": echo}) as port:
        answer = local(port, "/x?q=1#part", method="POST", headers={"X-Key": "k"}, content='{"a": 1}')
    asked = json.loads(answer.text)
    assert (asked["method"], asked["path"], asked["body"]) == ("POST", "/x?q=1", '{"a": 1}')
    assert asked["headers"]["x-key"] == "k"
    assert asked["headers"]["host"] == f"127.0.0.1:{port}"
    assert asked["headers"]["content-length"] == "8"


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_a_request_without_a_body_works_with_any_method(method: str) -> None:
    with serving({"/": replying(204)}) as port:
        assert local(port, method=method).status == 204


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "017700000001",
        "0",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "100.100.100.200",
    ],
)
def test_an_address_that_is_not_public_is_refused_however_it_is_written(host: str) -> None:
    with serving({"/": echo}) as port, refused("ADDRESS_REFUSED"):
        fetch(f"http://{host}:{port}/", timeout=5)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("file:///etc/passwd", "SCHEME_REFUSED"),
        ("gopher://127.0.0.1/", "SCHEME_REFUSED"),
        ("example.com/page", "URL_INVALID"),
        ("//example.com/page", "URL_INVALID"),
        ("http://", "URL_INVALID"),
        ("http://user:secret@example.com/", "URL_INVALID"),
        ("http://example.com@127.0.0.1/", "URL_INVALID"),
        ("http://example.com\\@127.0.0.1/", "URL_INVALID"),
        ("http://example.com:0/", "URL_INVALID"),
        ("http://example.com:65536/", "URL_INVALID"),
        ("http://example.com:x/", "URL_INVALID"),
        ("http://xn--a.example/", "URL_INVALID"),
        ("http://xn--99999999/", "URL_INVALID"),
        ("http://exa mple.com\r\nHost: other/", "URL_INVALID"),
        ("http://example.com/" + "a" * 9000, "URL_INVALID"),
        ("http://0177.0.0.1/", "URL_INVALID"),
        ("http://%31%32%37.0.0.1/", "URL_INVALID"),
        ("http://[fe80::1%25eth0]/", "URL_INVALID"),
        ("", "URL_INVALID"),
    ],
)
def test_a_url_that_is_none_or_hides_something_is_refused(url: str, code: str) -> None:
    with refused(code):
        fetch(url)


@pytest.mark.parametrize(
    "how",
    [
        {"method": "CONNECT"},
        {"method": "GET /x HTTP/1.1"},
        {"headers": {"Host": "other"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"X-Key": "a\r\nX-Other: b"}},
        {"headers": {"X-Key": "ключ"}},
    ],
)
def test_a_method_or_header_that_bends_the_request_is_refused(how: dict) -> None:
    with serving({"/": echo}) as port, refused("REQUEST_INVALID"):
        local(port, **how)


def test_one_address_that_is_not_public_spoils_the_name(names: dict[str, list[str]]) -> None:
    names["mixed.test"] = ["1.1.1.1 10.0.0.1"]
    with refused("ADDRESS_REFUSED"):
        fetch("http://mixed.test/")


def test_a_name_is_resolved_once_so_that_a_second_answer_changes_nothing(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[tuple] = []

    def note(address: connection.Address, timeout: float) -> socket.socket:
        connected.append(address[1])
        raise OSError("not really")

    with serving({"/": echo}) as port:
        names["rebinding.test"] = ["1.1.1.1", "127.0.0.1"]
        with monkeypatch.context() as patched, refused("CONNECTION"):
            patched.setattr(connection, "_connected", note)
            fetch(f"http://rebinding.test:{port}/")
        assert connected == [("1.1.1.1", port)]
        with refused("ADDRESS_REFUSED"):  # the second answer, asked for by a second fetch
            fetch(f"http://rebinding.test:{port}/")


def test_each_redirect_is_judged_again(names: dict[str, list[str]]) -> None:
    with serving({"/": replying(302, location="http://inside.test/")}) as port:
        names["inside.test"] = ["10.0.0.1"]
        with refused("ADDRESS_REFUSED"):
            local(port)
        names["inside.test"] = ["::ffff:169.254.169.254"]
        with refused("ADDRESS_REFUSED"):
            local(port)


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("file:///etc/passwd", "SCHEME_REFUSED"),
        ("http://user@127.0.0.1/", "URL_INVALID"),
        ("http://[", "URL_INVALID"),
        ("//127.0.0.1:1/", "ADDRESS_REFUSED"),
    ],
)
def test_a_redirect_may_lead_nowhere_that_a_url_may_not(location: str, code: str) -> None:
    with serving({"/": replying(302, location=location)}) as port, refused(code):
        local(port)


def test_redirects_are_followed_told_and_counted() -> None:
    site = {"/": replying(301, location="/b"), "/b": replying(302, location="c?d=1"), "/c": echo}
    with serving(site) as port:
        answer = local(port)
        base = f"http://127.0.0.1:{port}"
        assert answer.url == f"{base}/c?d=1"
        assert answer.redirects == (f"{base}/", f"{base}/b")
        assert local(port, max_redirects=2).status == 200
        with refused("TOO_MANY_REDIRECTS"):
            local(port, max_redirects=1)


@pytest.mark.parametrize(
    ("location", "followed"),
    [
        ("/b", True),
        ("http://www.site.test:{port}/b", True),
        ("http://other.test:{port}/b", False),
        ("//other.test:{port}/b", False),
        ("http://site.test.other.test:{port}/b", False),
        ("http://site.test:1/b", False),
    ],
)
def test_to_stay_a_redirect_to_another_host_is_an_answer(
    names: dict[str, list[str]], settings: Any, location: str, followed: bool
) -> None:
    site: Site = {"/b": echo}
    with serving(site) as port:
        site["/"] = replying(302, location=location.format(port=port))
        hosts = ("site.test", "www.site.test", "other.test", "site.test.other.test")
        names |= {host: ["127.0.0.1"] for host in hosts}
        settings.OUTBOUND_ALLOW = [f"{host}:{port}" for host in hosts]
        page = http_get(None, url=f"http://site.test:{port}/")
        assert page["status"] == (200 if followed else 302)
        assert page.get("leads_to") == (None if followed else location.format(port=port))


def test_a_circle_of_redirects_ends() -> None:
    with serving({"/": replying(302, location="/")}) as port, refused("TOO_MANY_REDIRECTS"):
        local(port)


@pytest.mark.parametrize(
    ("status", "method", "body"), [(301, "GET", ""), (302, "GET", ""), (303, "GET", ""), (307, "POST", "x")]
)
def test_a_redirected_post_stays_one_only_where_the_status_says_so(
    status: int, method: str, body: str
) -> None:
    with serving({"/": replying(status, location="/to"), "/to": echo}) as port:
        asked = json.loads(local(port, method="POST", content="x", headers={"content-type": "a/b"}).text)
    assert (asked["method"], asked["body"]) == (method, body)
    assert asked["headers"].get("content-type") == ("a/b" if body else None)


def test_another_origin_gets_no_credentials_and_no_cookies() -> None:
    secrets = {"Authorization": "Bearer s", "Cookie": "s=1", "X-Api-Key": "s", "Accept-Language": "fr"}
    with serving({"/": echo}) as other:
        leaving = replying(302, location=f"http://127.0.0.1:{other}/", set_cookie="t=2")
        staying = replying(302, location="/here", set_cookie="t=2")
        with serving({"/leave": leaving, "/stay": staying, "/here": echo}) as port:
            both = {f"127.0.0.1:{port}", f"127.0.0.1:{other}"}
            left = local(port, "/leave", headers=secrets, allow_private=both)
            stayed = local(port, "/stay", headers=secrets)
    told = json.loads(left.text)["headers"]
    assert told["accept-language"] == "fr"
    assert not {"authorization", "cookie", "x-api-key"} & told.keys()
    told = json.loads(stayed.text)["headers"]
    assert (told["authorization"], told["x-api-key"], told["cookie"]) == ("Bearer s", "s", "s=1")


def test_a_body_is_not_handed_to_another_origin() -> None:
    with serving({"/": echo}) as other:
        leaving = replying(307, location=f"http://127.0.0.1:{other}/")
        with serving({"/": leaving}) as port:
            both = {f"127.0.0.1:{port}", f"127.0.0.1:{other}"}
            answer = local(port, method="POST", content="secret", allow_private=both)
    assert answer.status == 307
    assert answer.headers["location"] == f"http://127.0.0.1:{other}/"


@pytest.mark.parametrize("allowed", ["127.0.0.1", "127.0.0.1:{port}", "LOCALHOST:{port}"])
def test_what_an_administrator_names_is_reached(allowed: str, names: dict[str, list[str]]) -> None:
    names["localhost"] = ["127.0.0.1"]
    with serving({"/": echo}) as port:
        url = f"http://localhost:{port}/"
        assert fetch(url, allow_private={allowed.format(port=port)}).status == 200


@pytest.mark.parametrize("allowed", ["127.0.0.1:{other}", "localhost", "127.0.0.2", "otherhost:{port}"])
def test_and_nothing_beside_it(allowed: str, names: dict[str, list[str]]) -> None:
    names["localhost"] = ["127.0.0.1"]
    with serving({"/": echo}) as port, refused("ADDRESS_REFUSED"):
        allowed = allowed.format(port=port, other=port + 1)
        fetch(f"http://localhost:{port}/", allow_private={allowed})


def test_the_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving({"/": echo}) as port:
        assert local(port).status == 200


def test_a_long_answer_is_cut_even_when_it_announces_its_length() -> None:
    with serving({"/": replying(body=b"x" * 5000)}) as port:
        answer = local(port, max_bytes=100)
    assert (answer.text, answer.bytes_read, answer.truncated) == ("x" * 100, 100, True)


def test_an_endless_answer_is_cut() -> None:
    def talk(connected: socket.socket) -> None:
        connected.recv(65536)
        connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connected.sendall(b"x" * 65536)

    with talking(talk) as port:
        answer = local(port, max_bytes=200_000)
    assert (answer.bytes_read, answer.truncated) == (200_000, True)


def test_a_gzip_bomb_is_unpacked_no_further_than_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 200_000_000, compresslevel=1)
    page = replying(body=bomb, content_encoding="gzip", content_type="text/plain")
    with serving({"/": page}) as port:
        started = time.process_time()
        answer = local(port, max_bytes=1000)
    assert (answer.bytes_read, answer.truncated) == (1000, True)
    assert time.process_time() - started < 1


def test_a_packed_answer_is_unpacked() -> None:
    page = replying(body=gzip.compress("grün".encode()), content_encoding="gzip", content_type="text/plain")
    with serving({"/": page}) as port:
        assert local(port).text == "grün"


def test_broken_compression_and_pictures_are_no_text() -> None:
    site = {
        "/broken": replying(body=b"nonsense", content_encoding="gzip"),
        "/brotli": replying(body=b"nonsense", content_encoding="br"),
        "/picture": replying(body=b"\x89PNG", content_type="image/png"),
    }
    with serving(site) as port:
        for path in site:
            with refused("DECODE"):
                local(port, path)


@pytest.mark.parametrize("opening", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_dripping_server_gets_no_more_than_the_whole_time(opening: bytes) -> None:
    def talk(connected: socket.socket) -> None:
        connected.recv(65536)
        connected.sendall(opening)
        while True:
            connected.sendall(b"H")
            time.sleep(0.05)

    with talking(talk) as port, ends(), refused("TIMEOUT"):
        local(port, timeout=0.5)


def test_a_server_that_never_speaks_tls_times_out(names: dict[str, list[str]]) -> None:
    with talking(lambda connected: time.sleep(3)) as port, refused("TIMEOUT"):
        fetch(f"https://127.0.0.1:{port}/", timeout=0.3, allow_private={"127.0.0.1"})


def test_a_server_that_does_not_read_times_out() -> None:
    with talking(lambda connected: time.sleep(3)) as port, refused("TIMEOUT"):
        local(port, method="POST", content=b"x" * 20_000_000, timeout=0.3)


def test_the_time_covers_all_redirects() -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.2)
        replying(302, location="/")(handler)

    with serving({"/": slow}) as port, refused("TIMEOUT"):
        local(port, timeout=0.5, max_redirects=50)


def test_a_slow_resolver_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(3))
    with refused("TIMEOUT"):
        fetch("http://slow.test/", timeout=0.2)


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"]
)
def test_a_connection_that_breaks_off_is_told_as_such(answer: bytes) -> None:
    def talk(connected: socket.socket) -> None:
        connected.recv(65536)
        connected.sendall(answer)

    with talking(talk) as port, refused("CONNECTION"):
        local(port)


def test_nobody_there_is_told_as_such(names: dict[str, list[str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with refused("CONNECTION"):
        local(port)
    with refused("CONNECTION"):
        fetch("http://no-such-name.invalid/")


def test_the_next_address_is_tried_when_one_does_not_answer(names: dict[str, list[str]]) -> None:
    names["two.test"] = ["127.0.0.2 127.0.0.1"]
    with serving({"/": echo}) as port:
        assert fetch(f"http://two.test:{port}/", allow_private={f"two.test:{port}"}).status == 200


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    connection.tls.cache_clear()
    yield
    connection.tls.cache_clear()


@pytest.mark.usefixtures("trusted")
def test_tls_proves_the_name_although_the_address_is_pinned(names: dict[str, list[str]]) -> None:
    names["deputy.test"] = names["other.test"] = ["127.0.0.1"]
    with serving({"/": echo}, tls=True) as port:
        answer = fetch(f"https://deputy.test:{port}/", allow_private={"127.0.0.1"})
        assert json.loads(answer.text)["headers"]["host"] == f"deputy.test:{port}"
        with refused("CONNECTION"):
            fetch(f"https://other.test:{port}/", allow_private={"127.0.0.1"})


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize("raised", [True, False])
def test_what_comes_before_a_request_comes_when_the_connection_stands(
    names: dict[str, list[str]], tls: bool, raised: bool
) -> None:
    names["deputy.test"] = ["127.0.0.1"]
    happened: list[str] = []

    def talk(connected: socket.socket) -> None:
        if tls:
            time.sleep(0.2)
            happened.append("greets")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            connected = context.wrap_socket(connected, server_side=True)
        happened.append("heard" if connected.recv(1000) else "heard nothing")
        connected.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    def before() -> None:
        happened.append("before")
        if raised:
            raise LookupError

    with talking(talk) as port:
        address = f"http{'s' * tls}://deputy.test:{port}/"
        asked = suppress(LookupError) if raised else nullcontext()
        with asked:
            fetch(address, allow_private={"127.0.0.1"}, before=before)
        deadline = time.monotonic() + 5
        while "heard" not in happened[-1] and time.monotonic() < deadline:
            time.sleep(0.01)
    assert happened == ["greets"] * tls + ["before", "heard nothing" if raised else "heard"]


def test_a_certificate_nobody_vouches_for_is_refused(names: dict[str, list[str]]) -> None:
    connection.tls.cache_clear()
    names["deputy.test"] = ["127.0.0.1"]
    with serving({"/": echo}, tls=True) as port, refused("CONNECTION"):
        fetch(f"https://deputy.test:{port}/", allow_private={"127.0.0.1"})
