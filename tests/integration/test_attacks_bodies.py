"""Bodies without end: refused at the limit, before anybody is asked who sends them."""

import asyncio
import json
import socket

import pytest
from django.db import connections
from django.test import override_settings

from common.bodies import limited
from common.web import Application
from runs.mcp.app import with_mcp
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)

CHUNK = b"x" * 65_536
ENDLESS = 10_000  # chunks: over 600 MB


class Client:
    """What an ASGI server would hand over of a chunked body, and what it was told."""

    def __init__(self, path, chunks=ENDLESS, headers=(), chunk=CHUNK):
        self.chunks, self.taken, self.chunk = chunks, 0, chunk
        self.status, self.said, self.headers = 0, b"", {}
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers],
            "client": ("192.0.2.1", 1),
            "server": ("localhost", 80),
        }

    async def receive(self):
        if self.taken >= self.chunks:
            await asyncio.sleep(3600)
        self.taken += 1
        return {"type": "http.request", "body": self.chunk, "more_body": self.taken < self.chunks}

    async def send(self, message):
        if message["type"] == "http.response.start":
            assert not self.status
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.said += message["body"]

    def ask(self):
        django = Application()

        async def asked():
            application = limited(with_mcp(django))
            await asyncio.wait_for(application(self.scope, self.receive, self.send), 60)

        asyncio.run(asked())
        for thread in django.threads.free:
            thread.submit(connections.close_all).result()
            thread.shutdown()
        return self


@pytest.mark.parametrize("path", ["/api/runs/", "/api/nothing/", "/api/import/", "/mcp", "/mcp/projects/x"])
def test_a_chunked_body_without_a_token_is_refused_as_soon_as_it_is_too_large(path, settings):
    client = Client(path).ask()

    if path.startswith("/mcp"):
        assert (client.status, client.taken) == (401, 0)  # the token is asked for first
        return
    assert client.status == 413
    assert client.taken <= settings.BODY_BYTES // len(CHUNK) + 1
    problem = json.loads(client.said)
    assert (problem["code"], client.headers[b"connection"]) == ("BODY_TOO_LARGE", b"close")


@pytest.mark.parametrize("path", ["/sign-in/", "/admin/runs/run/ask/", "/i18n/setlang/", "/"])
def test_forms_have_the_same_limit(path, settings):
    client = Client(path).ask()

    assert client.status == 413 and client.taken <= settings.BODY_BYTES // len(CHUNK) + 1
    assert str(settings.BODY_BYTES) in client.said.decode()


@pytest.mark.parametrize("path", ["/ask/", "/talk/run_1/send/", "/admin/memory/memory/import/"])
def test_pages_that_take_files_have_a_limit_too(path, settings):
    settings.UPLOAD_BYTES = 3 * settings.BODY_BYTES
    client = Client(path).ask()

    assert client.status == 413
    assert settings.BODY_BYTES < client.taken * len(CHUNK) <= settings.UPLOAD_BYTES + len(CHUNK)


@pytest.mark.parametrize("path", ["/api/runs/", "/mcp", "/sign-in/"])
def test_what_announces_too_much_is_refused_unread(path):
    client = Client(path, headers=[(b"content-length", b"629145600")]).ask()

    assert (client.status, client.taken) == (413, 0)


@pytest.mark.parametrize("length", [b"-1", b"1e9", b"9" * 5000, b"", "٣".encode()])
def test_a_length_that_makes_no_sense_does_not_get_past_the_count(length):
    client = Client("/api/runs/", headers=[(b"content-length", length)]).ask()

    assert client.status == 413


def test_a_page_that_takes_files_takes_more_and_has_an_end_too(settings):
    settings.UPLOAD_BYTES = 4 * 1_048_576
    client = Client("/admin/memory/depositedknowledge/import/").ask()

    assert client.status == 413
    assert settings.BODY_BYTES < client.taken * len(CHUNK) <= settings.UPLOAD_BYTES + len(CHUNK)


def test_a_body_of_just_the_limit_is_read(settings):
    body = b'"' + b"x" * (settings.BODY_BYTES - 2) + b'"'
    client = Client("/api/runs/", chunks=1, chunk=body)
    assert client.ask().status == 401


def test_a_real_server_closes_the_connection_and_serves_others():
    with serving() as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 30) as attacker:
            attacker.sendall(
                b"POST /api/runs/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                b"Content-Type: application/json\r\n\r\n"
            )
            sent = poured_into(attacker)
            answer = b""
            try:
                while piece := attacker.recv(65_536):
                    answer += piece
            except ConnectionError:
                pass
        assert sent < 64 * 1_048_576  # what the sockets hold on the way, and no more
        assert not answer or answer.startswith(b"HTTP/1.1 413 ")


def poured_into(attacker):
    """Send 600 MB, or as much as is taken; how much that was."""
    sent = 0
    attacker.settimeout(30)
    try:
        for _ in range(ENDLESS):
            attacker.sendall(b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK))
            sent += len(CHUNK)
    except OSError:
        pass
    return sent


@override_settings(BODY_BYTES=10_000)
def test_the_limit_is_a_setting():
    assert Client("/api/runs/", chunk=b"x" * 1000).ask().taken == 11


@pytest.mark.django_db
def test_an_address_to_go_back_to_with_thousands_of_marks_is_refused_at_once(client):
    """Without a token, three such forms held every thread of two processes for half a minute."""
    marks = "https://a" + "\u0315" * 10_000 + "\u0300" * 10_000
    answer = client.post("/sign-in/", {"login": "somebody", "password": "x", "next": marks})
    assert answer.status_code == 400
    assert client.post("/sign-in/", {"login": "e" + "\u0301" * 40, "password": "x"}).status_code == 200
