"""FastMCP as a peer, with its tasks and resources, in a real cluster. docs/standards.md says how."""

import os
import shlex
import socket
import subprocess
from pathlib import Path

import pytest
from django.test import override_settings

from policy.models import CapabilityRule
from runs.actions import mcp
from runs.actions.cancel import cancel
from runs.actions.message import message
from runs.execution import calls
from runs.models import McpServer, McpTask, Run, ToolCall, Wait
from tests.acceptance.house import MODEL, check_logs, until
from tests.acting import at_the_pages, request_call, start

pytestmark = pytest.mark.slow

PEER = os.environ.get("FASTMCP", "")  # the interpreter that has fastmcp and fastmcp-tasks


@pytest.fixture
def peer(tmp_path):
    """Its port, and the file in which its tools say what they have done."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    book = tmp_path / "book"
    book.touch()
    command = [*shlex.split(PEER), str(Path(__file__).parent / "fastmcp_site.py"), str(port), str(book)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or not socket.socket().connect_ex(("127.0.0.1", port)), 60)
        assert process.poll() is None
        yield port, book
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def run(world):
    with override_settings(DEPUTY_MODEL=MODEL):
        yield start(user=world.user, project=world.project, goal="Book seats", driver="external")


@pytest.mark.skipif(not PEER, reason="FASTMCP names no interpreter")
def test_tasks_of_a_peer_are_waited_for_answered_and_cancelled_through_the_death_of_a_carrier(
    house, world, run, peer
):
    port, book = peer
    allow, mia = f"127.0.0.1:{port}", at_the_pages(world.user, world.project.organization_id)
    with override_settings(MCP_ALLOW=[allow]):
        server = McpServer.objects.create(
            organization=world.project.organization, name="peer", url=f"http://{allow}/mcp"
        )
        assert mcp.refresh(server) == ""
        mcp.accept(server.tools.all(), world.user)
    for name in ("book_seats", "fail_slowly", "ask_first"):
        CapabilityRule.objects.create(organization=server.organization, tool=f"peer.{name}", effect="allow")
    cluster = house.cluster(MCP_ALLOW=allow)

    def look(call_id):
        return calls.look(Run.objects.get(pk=run), call_id)

    def ended(call_id):
        return until(lambda: None if look(call_id).open else look(call_id), 60, said=cluster.said)

    request_call(run, "read", "peer.read_resource", {"uri": "docs://hall"})
    assert ended("read").result["text"] == "The hall has 40 seats."

    request_call(run, "book", "peer.book_seats", {"seconds": 8})
    until(lambda: McpTask.objects.filter(call_id="book").exists(), 60, said=cluster.said)
    cluster.kill(cluster.carriers()[0])
    assert ended("book").result["text"] == "Seats 4 and 5 are booked."
    assert book.read_text().split() == ["began", "booked"]

    request_call(run, "fail", "peer.fail_slowly", {})
    assert "The hall is closed." in ended("fail").error["message"]

    request_call(run, "ask", "peer.ask_first", {})
    form = Wait.objects.filter(run_id=run, resolved_at=None, correlation_key__startswith="form-")
    until(form.exists, 60, said=cluster.said)
    message(run, "3", mia, form.get().correlation_key)
    assert ended("ask").result["text"] == "3 seats are booked."

    request_call(run, "late", "peer.book_seats", {"seconds": 600})
    until(lambda: McpTask.objects.filter(call_id="late").exists(), 60, said=cluster.said)
    cancel(run, mia)
    until(lambda: "cancelled" in book.read_text(), 60, said=cluster.said)
    until(lambda: not McpTask.objects.filter(run_id=run).exists(), 60, said=cluster.said)
    assert book.read_text().split() == ["began", "booked", "asked", "3", "began", "cancelled"]
    assert ToolCall.objects.get(run_id=run, call_id="late").status == "unknown"
    check_logs(run)
