"""A2A's answers that take their time, over a real ASGI server: held messages and streams."""

import json
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from django.utils import timezone

from common.api import slots
from groups.models import Token
from runs.api import stream
from runs.execution import executor
from runs.models import Run
from tests.a2a_client import A2A, fits, message
from tests.acting import approve
from tests.integration.test_webhooks import decider
from tests.scripted import Scripted, call, in_order, say
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)

MAIL = {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}


@pytest.fixture(scope="module")
def server():
    with serving() as address:
        yield address


@pytest.fixture
def peer(world, server):
    world.project.published = True
    world.project.save()
    found = A2A(world.user, world.organization, f"/a2a/projects/{world.project.pk}")
    found.url = server + found.path
    return found


def call_of(method, params):
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


@contextmanager
def streamed(peer, body, below=""):
    """What a stream says, one StreamResponse after the other."""
    whole = {"timeout": 8, "headers": peer.headers}
    with httpx.stream("POST", peer.url + below, json=body, **whole) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream", answer.read()
        yield told(answer, bool(body and "jsonrpc" in body))


def told(answer, rpc):
    for line in answer.iter_lines():
        if line.startswith("data: "):
            found = json.loads(line.removeprefix("data: "))
            yield fits("StreamResponse", found["result"] if rpc else found)


def state(one):
    return (one.get("task") or one.get("statusUpdate"))["status"]["state"].removeprefix("TASK_STATE_")


def play(*replies):
    Scripted.play = staticmethod(in_order(*replies))


def test_a_message_is_answered_when_its_task_has_settled_and_sooner_where_asked(peer, settings):
    settings.A2A_HOLD_SECONDS = 8
    play(say("6 euros."))
    answers = []
    body = call_of("SendMessage", {"message": message("What do they charge?")})

    def ask():
        answers.append(httpx.post(peer.url, json=body, headers=peer.headers, timeout=10).json())

    asking = threading.Thread(target=ask)
    asking.start()
    while not Run.objects.exists():
        pass
    executor.run(Run.objects.get().pk)
    asking.join(10)
    task = fits("SendMessageResponse", answers[0]["result"])["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    body = {"message": message("More", "m-2"), "configuration": {"returnImmediately": True}}
    at_once = httpx.post(f"{peer.url}/message:send", json=body, headers=peer.headers).json()["task"]
    assert at_once["status"]["state"] == "TASK_STATE_SUBMITTED"


LOST = {"token": {"revoked_at": timezone.now()}, "scope": {"scopes": ["runs:write"]}}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
def test_nobody_is_answered_whose_token_ends_while_the_task_is_at_work(peer, settings, lost):
    settings.A2A_HOLD_SECONDS = 8
    play(say("6 euros."))
    answers = []
    body = call_of("SendMessage", {"message": message("What do they charge?")})

    def ask():
        answers.append(httpx.post(peer.url, json=body, headers=peer.headers, timeout=10))

    asking = threading.Thread(target=ask)
    asking.start()
    here = Token.objects.values_list("organization_id", flat=True).distinct().get()
    while not slots.count(here):  # others may have left slots of theirs
        time.sleep(0.02)
    Token.objects.update(**lost)
    executor.run(Run.objects.get().pk)
    asking.join(10)
    assert answers[0].status_code == 403 and "6 euros" not in answers[0].text


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
def test_nor_does_a_task_s_stream_tell_them_more(peer, monkeypatch, lost):
    monkeypatch.setattr(stream, "FRESH_SECONDS", 0.0)
    play(say("6 euros."))
    with streamed(peer, call_of("SendStreamingMessage", {"message": message("What?")})) as found:
        run = next(found)["task"]["id"]
        Token.objects.update(**lost)
        executor.run(run)
        assert list(found) == []


def test_a_stream_tells_what_moves_the_task_until_somebody_is_needed(peer, rule, world):
    play(call(("send_email", MAIL), content="I write to them."), say("Sent."))
    sent = {"message": message("Write to them")}
    with streamed(peer, call_of("SendStreamingMessage", sent)) as found:
        first = next(found)
        run = first["task"]["id"]
        executor.run(run)
        rest = list(found)
    assert [state(one) for one in [first, *rest]] == ["SUBMITTED", "WORKING", "WORKING", "AUTH_REQUIRED"]
    assert rest[1]["statusUpdate"]["status"]["message"]["parts"][0]["text"] == "I write to them."
    assert "/approvals/" in rest[2]["statusUpdate"]["status"]["message"]["parts"][0]["text"]

    with streamed(peer, None, f"/tasks/{run}:subscribe") as found:
        assert state(next(found)) == "AUTH_REQUIRED"
        approve(run_approval(run), decider(world))
        executor.run(run)
        rest = list(found)
    assert [next(iter(one)) for one in rest] == ["statusUpdate", "artifactUpdate", "statusUpdate"]
    assert state(rest[-1]) == "COMPLETED"
    assert rest[1]["artifactUpdate"]["artifact"]["parts"][0]["text"] == "Sent."


def test_a_huge_body_is_not_read(peer, settings):
    settings.BODY_BYTES = 10_000
    words = json.dumps(call_of("SendMessage", {"message": message("x" * 20_000)}))
    answer = httpx.post(peer.url, content=words, headers={**peer.headers, "Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
    assert not Run.objects.exists()


def run_approval(run):
    return Run.objects.get(pk=run).approvals.get().pk
