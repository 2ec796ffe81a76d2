"""AG-UI: a chat front end follows a thread, and its person decides and answers in it. Over a real server."""

import json
from functools import cache
from pathlib import Path

import httpx
import jsonschema
import pytest
from django.conf import settings as configured
from django.test import Client
from django.utils import timezone

from groups.actors import CONFIRMED_AT
from groups.models import Token
from groups.scopes import SCOPES
from policy.models import CapabilityRule
from runs.api import stream
from runs.execution import executor
from runs.models import Approval, Run, RunEvent
from runs.providers.base import ProviderError
from tests.acting import approve, cancel
from tests.factories import MembershipFactory, ProjectFactory, permit
from tests.scripted import Scripted, by_role, call, in_order, say
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMA = Path(__file__).resolve().parents[3] / "shared/data/standards/agui/agui-1.0.schema.json"
MAIL = {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}
QUESTION = call(("ask_user", {"question": "Which year?"}))


@cache
def definitions():
    return json.loads(SCHEMA.read_text()) if SCHEMA.exists() else None


def fits(type, value):
    if definitions() is not None:
        jsonschema.Draft202012Validator({**definitions(), "$ref": f"#/$defs/{type}"}).validate(value)
    return value


@pytest.fixture(scope="module")
def server():
    with serving() as address:
        yield address


class FrontEnd:
    """A front end of somebody: in their session, or with a token."""

    def __init__(self, server, project, headers):
        self.url, self.headers = f"{server}/api/ag-ui/{project.pk}/", headers

    def post(self, *messages, thread="t-1", **fields):
        said = [{"id": f"u-{place}", "role": "user", "content": one} for place, one in enumerate(messages)]
        body = fits("RunAgentInput", {
            "threadId": thread, "runId": "r", "protocolVersion": "1.0", "messages": said, **fields
        })  # fmt: skip
        return httpx.stream("POST", self.url, json=body, headers=self.headers, timeout=8)

    def told(self, *messages, act=lambda: None, **fields):
        """What is told until the stretch ends; `act` once it has begun."""
        found = []
        with self.post(*messages, **fields) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    found.append(fits("Event", json.loads(line.removeprefix("data: "))))
                    if len(found) == 1:
                        act()
        check(found)
        return found


def check(events):
    """What begins ends, in one stretch, and nothing follows its end."""
    assert events[0]["type"] == "RUN_STARTED"
    assert [one["type"] for one in events if one["type"] in ("RUN_FINISHED", "RUN_ERROR")] == [
        events[-1]["type"]
    ]
    for begin, end, name in (
        ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "messageId"),
        ("TOOL_CALL_START", "TOOL_CALL_END", "toolCallId"),
        ("STEP_STARTED", "STEP_FINISHED", "stepName"),
        ("SUBAGENT_STARTED", ("SUBAGENT_FINISHED", "SUBAGENT_ERROR"), "subagentRunId"),
    ):
        begun = [one[name] for one in events if one["type"] == begin]
        ended = [one[name] for one in events if one["type"] in (end if isinstance(end, tuple) else (end,))]
        assert sorted(begun) == sorted(ended), (begin, begun, ended)


def session_of(server, project, user, confirmed=True):
    client = Client()
    client.force_login(user)
    if not confirmed:
        session = client.session
        session[CONFIRMED_AT] = 0
        session.save()
    client.get("/sign-in/")
    secret = "a" * 32
    cookies = {
        configured.SESSION_COOKIE_NAME: client.session.session_key,
        configured.CSRF_COOKIE_NAME: secret,
    }
    together = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return FrontEnd(server, project, {"Cookie": together, "X-CSRFToken": secret})


def by_token(server, project, user, *scopes):
    reach = list(scopes) or sorted(SCOPES)
    secret = Token.objects.issue(project.organization, user, scopes=reach)[1]
    return FrontEnd(server, project, {"Authorization": f"Token {secret}"})


@pytest.fixture
def person(server, world):
    permit(world.user, "runs.start_run", "runs.decide_approval")
    return session_of(server, world.project, world.user)


def play(*replies):
    Scripted.play = staticmethod(in_order(*replies))


def work():
    executor.run(Run.objects.filter(parent_run=None).latest("pk").pk)


def kinds(events):
    return [one["type"] for one in events]


def outcome(events):
    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    return events[-1]["outcome"]


def test_a_message_starts_a_run_and_its_words_are_told(person):
    play(say("6 euros."), say("7 euros."))
    told = person.told("What do they charge?", act=work)
    assert kinds(told) == [
        "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
        "MESSAGES_SNAPSHOT", "RUN_FINISHED",
    ]  # fmt: skip
    assert (told[2]["delta"], outcome(told)["type"]) == ("6 euros.", "success")
    assert not RunEvent.objects.get(seq=2).payload.get("outside")

    again = person.told("What do they charge?")  # the connection broke: nothing is asked twice
    assert kinds(again)[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"] and Run.objects.count() == 1
    more = person.told("What do they charge?", "And now?", act=work)
    roles = [one["role"] for one in more[-2]["messages"]]
    assert (roles, Run.objects.count()) == (["user", "assistant"] * 2, 2)
    assert len(set(Run.objects.values_list("session_key", flat=True))) == 1


def test_an_approval_interrupts_and_the_signed_in_person_resumes(person, rule):
    play(call(("send_email", MAIL), content="I write."), say("Sent."))
    told = person.told("Write to them", act=work)
    (interrupt,) = outcome(told)["interrupts"]
    approval = Approval.objects.get()
    assert (interrupt["id"], interrupt["reason"]) == (approval.pk, "tool_call")
    call_id = next(one["toolCallId"] for one in told if one["type"] == "TOOL_CALL_START")
    assert interrupt["toolCallId"] == call_id
    assert "STATE_SNAPSHOT" in kinds(told) and kinds(told).index("MESSAGES_SNAPSHOT") == len(told) - 2

    digest = interrupt["responseSchema"]["properties"]["argumentsDigest"]["const"]
    resume = [{"interruptId": approval.pk, "status": "resolved",
               "payload": {"approved": True, "argumentsDigest": digest}}]  # fmt: skip
    told = person.told("Write to them", resume=resume, act=work)
    approval.refresh_from_db()
    assert (approval.status, outcome(told)["type"]) == ("approved", "success")
    (result,) = [one for one in told if one["type"] == "TOOL_CALL_RESULT"]
    assert result["toolCallId"] == call_id
    assert {"STEP_STARTED", "STEP_FINISHED"} <= set(kinds(told)) and "TOOL_CALL_START" not in kinds(told)


def refused(events):
    assert kinds(events) == ["RUN_STARTED", "RUN_ERROR"], events
    return events[-1]["code"]


def test_a_decision_is_refused_as_at_every_other_door_and_a_token_takes_none(person, server, world, rule):
    play(call(("send_email", MAIL)))
    person.told("Write to them", act=work)
    approval = Approval.objects.get()

    def resume(by, status="resolved", id=None, **payload):
        said = {"approved": True, "argumentsDigest": approval.arguments_digest, **payload}
        one = {"interruptId": id or approval.pk, "status": status, "payload": said}
        return by.told("Write to them", resume=[one])

    token = by_token(server, world.project, world.user)
    assert refused(resume(token)) == "PERSON_ONLY"
    assert refused(resume(person, argumentsDigest=None)) == "DIGEST_MISSING"
    assert refused(resume(person, argumentsDigest="0" * 64)) == "CHANGED"
    assert refused(resume(person, approved="yes")) == "INVALID"
    assert refused(resume(person, id="wai_x")) == "INTERRUPTS_MISSING"
    assert refused(person.told("Write to them", "Go on then")) == "INTERRUPTS_MISSING"
    CapabilityRule.objects.update(effect="require_human")
    assert refused(resume(person)) == "OWN_RUN"
    other = permit(MembershipFactory(organization=world.organization).user, "runs.decide_approval")
    thread = Run.objects.get().pk
    body = {"thread": thread, "resume": [{"interruptId": approval.pk, "status": "resolved", "payload":
            {"approved": True, "argumentsDigest": approval.arguments_digest}}]}  # fmt: skip
    stale = session_of(server, world.project, other, confirmed=False)
    assert refused(stale.told(**body)) == "CONFIRM_FIRST"
    approval.refresh_from_db()
    assert approval.status == "pending"
    assert outcome(resume(person, status="cancelled"))["type"] == "interrupt"  # it stays open
    Scripted.play = staticmethod(in_order(say("Sent.")))
    confirmed = session_of(server, world.project, other)
    assert outcome(confirmed.told(**body, act=work))["type"] == "success"
    approval.refresh_from_db()
    assert approval.status == "approved"


def test_what_was_decided_elsewhere_meanwhile_does_no_harm(person, rule, world):
    play(call(("send_email", MAIL)), say("Sent."))
    person.told("Write to them", act=work)
    approval = Approval.objects.get()
    approve(approval.pk, world.user)
    payload = {"approved": False, "argumentsDigest": approval.arguments_digest}
    one = {"interruptId": approval.pk, "status": "resolved", "payload": payload}
    assert outcome(person.told("Write to them", resume=[one], act=work))["type"] == "success"
    approval.refresh_from_db()
    assert approval.status == "approved"


def test_a_question_interrupts_and_only_who_speaks_as_the_person_answers(person, server, world):
    play(QUESTION, say("Done."))
    told = person.told("What?", act=work)
    (interrupt,) = outcome(told)["interrupts"]
    assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Which year?")
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"answer": "2025"}}]
    deaf = by_token(server, world.project, world.user, "runs:read", "runs:write")
    assert refused(deaf.told("What?", resume=resume)) == "NOT_THE_PERSON"
    assert outcome(person.told("What?", resume=resume, act=work))["type"] == "success"


def test_a_group_is_a_subagent_and_its_question_is_put_to_the_person(person, world):
    Scripted.play = staticmethod(by_role(
        Personal_agent=[call(("escalate_to_group", {"goal": "x"})), say("Done.")],
        researcher=[QUESTION, say("EVIDENCE: 5.")],
        analyst=[say("PROPOSAL: 5.")],
        lead=[say("DECISION: 5.")],
    ))  # fmt: skip
    told = person.told("What?", act=work)
    (interrupt,) = outcome(told)["interrupts"]
    child = Run.objects.get(parent_run__isnull=False)
    started = next(one for one in told if one["type"] == "SUBAGENT_STARTED")
    assert (started["name"], interrupt["subagentRunId"]) == ("Market", child.pk)
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"answer": "2025"}}]
    told = person.told("What?", resume=resume, act=lambda: executor.run(child.pk))
    said = [one["delta"] for one in told if one["type"] == "TEXT_MESSAGE_CONTENT" and "subagentRunId" in one]
    assert said == ["EVIDENCE: 5.", "PROPOSAL: 5.", "DECISION: 5."]
    assert outcome(told)["type"] == "success"


def test_a_failed_run_is_an_error_and_a_cancelled_one_is_cancelled(person):
    play(ProviderError("MODEL_REFUSED", "No."))
    assert person.told("What?", act=work)[-1]["type"] == "RUN_ERROR"
    told = person.told("Stop", thread="t-2", act=lambda: cancel(Run.objects.latest("pk").pk))
    assert outcome(told)["type"] == "cancelled"


@pytest.mark.parametrize("lost", [{"revoked_at": timezone.now()}, {"scopes": ["runs:write"]}])
def test_a_stream_ends_with_its_token_and_with_the_tokens_scope(server, world, monkeypatch, lost):
    monkeypatch.setattr(stream, "FRESH_SECONDS", 0.0)
    permit(world.user, "runs.start_run")
    play(say("6 euros."))

    def lose():
        Token.objects.update(**lost)
        work()

    told = by_token(server, world.project, world.user).told("What do they charge?", act=lose)
    assert kinds(told) == ["RUN_STARTED", "RUN_ERROR"] and told[-1]["code"] == "CONNECT_AGAIN"


def test_strangers_find_nothing_and_what_does_not_fit_is_said(person, server, world):
    elsewhere = MembershipFactory(organization=ProjectFactory().organization).user
    stranger = session_of(server, world.project, elsewhere)
    play(say("Done."))
    person.told("What?", act=work)
    run = Run.objects.get().pk
    reader = by_token(server, world.project, world.user, "runs:read")
    for who, fields, status in (
        (stranger, {"messages": [{"id": "a", "role": "user", "content": "x"}]}, 404),
        (person, {"threadId": "run_" + "0" * 26, "messages": []}, 404),
        (person, {"threadId": "new", "messages": []}, 422),
        (person, {"messages": [{"id": "a", "role": "user", "content": [{"type": "image"}]}]}, 422),
        (person, {"protocolVersion": "2.0", "messages": []}, 400),
        (person, {"resume": [{"interruptId": "x", "status": "done"}], "messages": []}, 422),
        (reader, {"threadId": run, "messages": []}, 403),
        (FrontEnd(server, world.project, {}), {"messages": []}, 401),
    ):
        body = {"threadId": "t-1", "runId": "r", **fields}
        assert httpx.post(who.url, json=body, headers=who.headers).status_code == status, fields
    assert Run.objects.count() == 1
