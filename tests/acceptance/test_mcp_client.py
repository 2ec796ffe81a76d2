"""An MCP client against a real web process and worker: it waits for a person, and hears of progress."""

import asyncio
import threading

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from groups.models import Token
from groups.scopes import SCOPES
from runs.models import Approval, ToolCall
from tests.acceptance.house import until
from tests.acceptance.web import Web
from tests.acting import approve
from tests.factories import MembershipFactory, permit

MAIL = {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}


class Waiting(threading.Thread):
    """A call of `send_email` by a client that wants to hear of progress."""

    def __init__(self, url, secret, mode):
        super().__init__(daemon=True)
        self.url, self.headers, self.mode = url, {"Authorization": f"Bearer {secret}"}, mode
        self.heard, self.result, self.failure = [], None, None
        self.start()

    def run(self):
        try:
            self.result = asyncio.run(self._call())
        except BaseException as error:
            self.failure = error

    async def _call(self):
        async def hear(progress, total, message):
            self.heard.append(message)

        async with httpx2.AsyncClient(headers=self.headers, timeout=60) as http:
            streams = streamable_http_client(f"{self.url}/mcp", http_client=http)
            async with Client(streams, mode=self.mode) as client:
                mail = MAIL | {"subject": self.mode}  # the same words again would be the same call
                return await client.call_tool("send_email", mail, progress_callback=hear)


def test_a_client_waits_for_a_decision_and_gets_the_result(house, world):
    web = Web(house)
    try:
        house.common_cluster()
        decider = MembershipFactory(organization=world.project.organization).user
        permit(decider, "decide_approval")
        _, secret = Token.objects.issue(world.project.organization, world.user, scopes=list(SCOPES))
        web.wait()
        for mode in ("auto", "legacy"):
            caller = Waiting(web.url, secret, mode)
            pending = Approval.objects.filter(status="pending", run__user=world.user)
            until(lambda pending=pending: pending.exists(), said=web.said)
            until(lambda caller=caller: "The call waits for a decision." in caller.heard, said=web.said)
            approve(pending.get().pk, type(decider).objects.get(pk=decider.pk))

            caller.join(60)
            assert caller.failure is None, (caller.failure, web.said())
            assert caller.result.structured_content["status"] == "succeeded"
    finally:
        web.end()
    assert ToolCall.objects.filter(run__user=world.user, status="succeeded").count() == 2
