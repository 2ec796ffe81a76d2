"""A2A's compatibility kit (a2aproject/a2a-tck, branch 1.0-dev) against Deputy. docs/standards.md says how.

The kit knows no tokens, wants a card at the root, and sends many messages under one messageId, which Deputy
takes for one message. A small gate before Deputy adds the first, finds the second and tells the third apart.
What the kit's agent has to do, the beginning of the messageId says.
"""

import itertools
import json
import os
import re
import shlex
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from django.db import connection

from groups.models import Token
from runs.execution import executor
from runs.models import A2ATask, Run, WebhookDelivery
from runs.providers.base import ProviderError
from runs.webhooks import sending
from tests.scripted import Scripted, call, say
from tests.server import serving

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

KIT = os.environ.get("A2A_TCK", "")  # "/path/to/python /path/to/a2a-tck"
NUMBER = itertools.count()
ID = re.compile(rb'"messageId": ?"[^"]*')
CARD = "/.well-known/agent-card.json"
ASKS = ("tck-input-required", "tck-auth")


# docs/standards.md says why.
KNOWN = {"CARD-CACHE-003", "DM-ART-001", "DM-MSG-001", "CORE-SEND-003", "HTTP_JSON-STATUS-001"}


def gate(secret, path):
    """Before Deputy: whoever comes has this token, and the card at the root is the project's."""

    def around(app):
        async def inner(scope, receive, send):
            if scope["type"] == "http":
                body = await whole(receive)
                kept = [one for one in scope["headers"] if one[0] != b"content-length"]
                added = {b"authorization": b"Bearer " + secret.encode(), b"content-length": b"%d" % len(body)}
                headers, receive = [*kept, *added.items()], once(body, receive)
                where = path + CARD if scope["path"] == CARD else scope["path"]
                scope = {**scope, "headers": headers, "path": where, "raw_path": where.encode()}
            await app(scope, receive, send)

        return inner

    return around


def play(messages, facts):
    """What the kit wants done for this run."""
    id = A2ATask.objects.values_list("message_id", flat=True).get(run=Worker.at)
    answered = "What else?" in str(messages)
    if id.startswith(ASKS) and (not answered or "history message" in str(messages[-1].content)):
        return call(("ask_user", {"question": f"What else? {next(NUMBER)}"}))
    if "reject" in id:
        return ProviderError("MODEL_REFUSED", "rejected")
    time.sleep(4 if "resubscribe" in id else 0.1)
    return say("Hello from TCK")


async def whole(receive):
    """The request's body. The kit sends many messages under one messageId: here each gets its own."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return ID.sub(lambda found: b"%s-%d" % (found[0], next(NUMBER)), body)


def once(body, receive):
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def read():
        return left.pop() if left else await receive()

    return read


class Worker(threading.Thread):
    """Takes the runs' steps and sends what is to be sent, as workers and carriers do."""

    at = ""  # the run that it is at

    def __init__(self):
        super().__init__(daemon=True)
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(0.02):
            for id in Run.objects.filter(status="pending").values_list("pk", flat=True):
                type(self).at = id
                executor.run(id)
            for id in WebhookDelivery.objects.filter(status="pending", attempts=0).values_list(
                "pk", flat=True
            ):
                sending.send(id)
        connection.close()


@pytest.mark.skipif(not KIT, reason="A2A_TCK names no kit")
def test_the_kit_finds_nothing_but_what_is_known(world, settings, capsys):
    python, kit = shlex.split(KIT)
    world.project.published = True
    world.project.save()
    scopes = ["runs:read", "runs:write", "speak_as_person"]
    _, secret = Token.objects.issue(world.organization, world.user, scopes=scopes)
    path = f"/a2a/projects/{world.project.pk}"
    settings.API_PER_MINUTE = settings.API_PER_MINUTE_UNKNOWN = 0
    settings.WEBHOOK_ALLOW = [f"localhost:{port}" for port in range(1024, 65536)]
    Scripted.play = staticmethod(play)
    worker = Worker()
    with serving(gate(secret, path)) as address:
        settings.PUBLIC_URL = address
        worker.start()
        try:
            subprocess.run(
                [python, "run_tck.py", "--sut-host", address, "--transport", "jsonrpc,http_json"],
                cwd=kit, capture_output=True, timeout=600, check=False,
            )  # fmt: skip
        finally:
            worker.stop.set()
            worker.join(10)
    found = json.loads((Path(kit) / "reports/compatibility.json").read_text())["per_requirement"]
    with capsys.disabled():
        print(Counter((one["level"], one["status"]) for one in found.values()))
        for name, one in found.items():
            if one["status"] == "FAIL":
                print(name, one["errors"])
    assert {name for name, one in found.items() if one["status"] == "FAIL"} <= KNOWN
