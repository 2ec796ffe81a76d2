"""MCP calls that take longer: how long they are held, as tasks, with questions, and after a disconnect."""

import asyncio
import json
from pathlib import Path

import httpx2
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from jsonschema import Draft202012Validator

from groups.models import Membership, Token
from groups.scopes import SCOPES
from runs.actions.withdraw import withdraw
from runs.api.patience import Awaited
from runs.mcp.app import enter
from runs.models import Approval, Run, ToolCall
from tests.acting import approve, reject
from tests.factories import MembershipFactory
from tests.integration.api_client import permit
from tests.integration.outside import MAIL, work_off

pytestmark = pytest.mark.django_db

VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
VECTORS = Path(__file__).parents[3] / "shared" / "data" / "standards" / "mcp"


class Wire:
    """A client of the protocol's newest version that says itself what it declares."""

    def __init__(self, world, path="", scopes=SCOPES, **capabilities):
        self.token, self.secret = Token.objects.issue(world.organization, world.user, scopes=list(scopes))
        self.url, self.capabilities = f"http://localhost/mcp{path}", capabilities

    def ask(self, method, params=None, name=None, **headers):
        """The answer to one request."""
        return async_to_sync(self.post)(method, params, name, **headers)

    async def post(self, method, params=None, name=None, **headers):
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            **(params or {}).get("_meta", {}),
        }
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**(params or {}), "_meta": meta}}
        sent = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.secret}",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": method,
            **({"Mcp-Name": name} if name else {}),
            **headers,
        }
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=enter)) as http:
            return await http.post(self.url, json=body, headers=sent, timeout=30)

    def call(self, tool, arguments, more=None, **headers):
        params = {"name": tool, "arguments": arguments, **(more or {})}
        return self.ask("tools/call", params, tool, **headers).json()["result"]

    def task(self, method, task_id, **more):
        return self.ask(f"tasks/{method}", {"taskId": task_id, **more}, task_id).json()


@pytest.fixture
def tasks(world):
    return Wire(world, extensions={TASKS: {}})


@pytest.fixture
def asking(world):
    """A client with a form, whose token speaks as its person."""
    return Wire(world, elicitation={"form": {}})


@pytest.fixture(autouse=True)
def short(settings):
    settings.MCP_HOLD_SECONDS = 0


@pytest.fixture
def deciding(world):
    return permit(MembershipFactory(organization=world.organization).user, "decide_approval")


def fits(kind, value):
    """Check a message against the extension's own schema, where it is here."""
    schema = VECTORS / "tasks-extension.schema.json"
    if schema.exists():
        defined = json.loads(schema.read_text())["$defs"]
        Draft202012Validator({"$defs": defined, "$ref": f"#/$defs/{kind}"}).validate(value)


# How long


@pytest.mark.parametrize(
    ("headers", "meta", "seconds"),
    [
        ({}, {}, 0),
        ({"Prefer": "respond-async, wait=7"}, {}, 7),
        ({"Prefer": "wait=600"}, {}, 45),
        ({"Prefer": "await=7"}, {}, 0),
        ({"Prefer": "wait=-1"}, {}, 0),
        ({}, {"deputy/hold-seconds": 3}, 3),
        ({}, {"deputy/hold-seconds": "3"}, 0),
        ({}, {"deputy/hold-seconds": True}, 0),
        ({}, {"deputy/hold-seconds": 10**400}, 45),
    ],
)
def test_the_client_says_how_long_its_call_is_held(world, monkeypatch, headers, meta, seconds):
    from runs.mcp import server

    held = []

    async def note(ctx, run, call_id, patience, or_parked=False):
        held.append(patience.seconds)

    monkeypatch.setattr(server, "wait_until_ended", note)
    Wire(world).call("send_email", MAIL, {"_meta": meta}, **headers)
    assert set(held) == {seconds}


def test_the_setting_is_shorter_than_any_known_clients_time_out():
    from config import settings

    assert settings.MCP_HOLD_SECONDS < 5


def test_the_same_words_after_a_time_out_are_the_same_call_until_its_end_has_been_told(world, add_tool):
    done = []

    @add_tool(name="count_up", mutating=True)
    def count_up(run):
        done.append(1)
        return len(done)

    wire = Wire(world)
    waiting = wire.call("count_up", {})["structuredContent"]
    assert waiting["status"] == "requested"
    work_off()

    again = wire.call("count_up", {})["structuredContent"]
    assert (again["call_id"], again["result"]) == (waiting["call_id"], 1)
    another = wire.call("count_up", {})["structuredContent"]
    assert another["call_id"] != waiting["call_id"]
    work_off()
    assert len(done) == 2


def test_a_call_outlives_its_clients_connection_and_is_found_again(world, deciding, mailoutbox):
    """Closing the connection ends the waiting, not the call: as docs/mcp.md says."""
    wire = Wire(world)

    async def leave():
        params = {"name": "send_email", "arguments": MAIL, "_meta": {"deputy/hold-seconds": 30}}
        asked = asyncio.create_task(wire.post("tools/call", params, "send_email"))
        for _ in range(400):
            await asyncio.sleep(0.05)
            if await Approval.objects.filter(status="pending").aexists():
                break
        asked.cancel()

    async_to_sync(leave)()
    approve(Approval.objects.get().pk, deciding)
    work_off()
    assert len(mailoutbox) == 1
    found = wire.call("send_email", MAIL)["structuredContent"]
    assert (found["status"], ToolCall.objects.count()) == ("succeeded", 1)


LOST = {
    "membership": lambda: Membership.objects.update(active=False),
    "scope": lambda: Token.objects.update(scopes=["runs:read"]),
}


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST.keys())
def test_nobody_hears_the_result_whose_membership_ends_while_the_call_is_held(
    world, add_tool, monkeypatch, lose
):
    @add_tool(name="look", mutating=True)
    def look(run):
        return "the price is 6"

    def meanwhile():
        work_off()
        lose()

    monkeypatch.setattr(Awaited, "come", lambda *_: sync_to_async(meanwhile)())
    params = {"name": "look", "arguments": {}, "_meta": {"deputy/hold-seconds": 20}}
    answer = Wire(world).ask("tools/call", params, "look")
    assert ToolCall.objects.get().result == "the price is 6"
    assert "the price" not in answer.text and "has ended" in answer.json()["error"]["message"]


# Tasks


def test_a_call_that_waits_for_an_approval_is_a_task_at_work(world, tasks, deciding, mailoutbox):
    created = tasks.call("send_email", MAIL)

    fits("CreateTaskResult", created)
    assert (created["resultType"], created["status"]) == ("task", "working")
    waiting = tasks.task("get", created["taskId"])["result"]
    fits("GetTaskResult", waiting)
    assert (waiting["status"], waiting["statusMessage"]) == ("working", "It waits for somebody's approval.")
    assert "result" not in waiting and deciding.username not in json.dumps(waiting)

    assert tasks.call("send_email", MAIL)["taskId"] == created["taskId"]
    approve(Approval.objects.get().pk, deciding)
    work_off()
    done = tasks.task("get", created["taskId"])["result"]
    fits("GetTaskResult", done)
    assert (done["resultType"], done["status"], len(mailoutbox)) == ("complete", "completed", 1)
    assert done["result"]["structuredContent"]["status"] == "succeeded" and not done["result"]["isError"]


def test_a_rejected_task_is_completed_with_an_error(world, tasks, deciding):
    task = tasks.call("send_email", MAIL)["taskId"]
    reject(Approval.objects.get().pk, deciding, "Not now")

    work_off()
    told = tasks.task("get", task)["result"]
    assert (told["status"], told["result"]["isError"]) == ("completed", True)


def test_what_ends_at_once_is_no_task(world, tasks):
    assert tasks.call("list_available_groups", {})["resultType"] == "complete"


def test_a_cancelled_task_is_withdrawn_from_whoever_would_decide(world, tasks, deciding, mailoutbox):
    task = tasks.call("send_email", MAIL)["taskId"]
    assert tasks.task("cancel", task)["result"].keys() == {"resultType", "_meta"}

    work_off()
    assert tasks.task("get", task)["result"]["status"] == "cancelled"
    assert (Approval.objects.get().status, mailoutbox) == ("cancelled", [])
    assert tasks.task("cancel", task)["result"]["resultType"] == "complete"
    assert tasks.call("send_email", MAIL)["taskId"] != task


def test_what_has_begun_is_not_withdrawn(world, tasks):
    tasks.call("list_available_groups", {})
    call = ToolCall.objects.get()
    assert tasks.task("cancel", call.pk)["result"]["resultType"] == "complete"
    call.refresh_from_db()
    assert call.status == "succeeded"


def test_whoever_does_not_declare_tasks_is_given_none(world, tasks):
    plain = Wire(world)
    answered = plain.call("send_email", MAIL)
    assert answered["resultType"] == "complete" and "taskId" not in answered

    task = tasks.call("send_email", MAIL)["taskId"]
    for method in ("get", "cancel"):
        refused = plain.ask(f"tasks/{method}", {"taskId": task}, task)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32021)
        assert TASKS in refused.json()["error"]["data"]["requiredCapabilities"]["extensions"]


def test_another_persons_task_does_not_exist(world, tasks):
    task = tasks.call("send_email", MAIL)["taskId"]
    colleague = MembershipFactory(organization=world.organization)
    other = type(world)(organization=world.organization, user=colleague.user)
    stranger = MembershipFactory()
    far = type(world)(organization=stranger.organization, user=stranger.user)
    from tests.factories import ProjectFactory

    ProjectFactory(organization=stranger.organization)
    for wire in (Wire(other, extensions={TASKS: {}}), Wire(far, extensions={TASKS: {}})):
        for method, more in (("get", {}), ("cancel", {}), ("update", {"inputResponses": {}})):
            assert wire.task(method, task, **more)["error"]["code"] == -32602, method
    assert tasks.task("get", "call_nothing")["error"]["code"] == -32602
    assert tasks.task("get", "a\x00b")["error"]["code"] in (-32602, -32020)
    assert Approval.objects.get().status == "pending"


def test_a_header_names_the_task(world, tasks):
    task = tasks.call("send_email", MAIL)["taskId"]
    for name in ("call_other", None):
        refused = tasks.ask("tasks/get", {"taskId": task}, name)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
def test_what_only_the_older_tasks_had_is_not_there(world, tasks, method):
    refused = tasks.ask(method, {"taskId": "x"}, "x")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, -32601)


def test_a_colleague_cannot_withdraw_a_call(world, tasks):
    from groups.actors import Actor, Via
    from policy.authority import NotAllowed

    tasks.call("send_email", MAIL)
    colleague = MembershipFactory(organization=world.organization)
    token, _ = Token.objects.issue(world.organization, colleague.user, scopes=list(SCOPES))
    call = ToolCall.objects.get()
    with pytest.raises(NotAllowed):
        withdraw(call.run_id, call.call_id, Actor.of_token(token, colleague, Via.MCP))
    assert Approval.objects.get().status == "pending"


# Questions

QUESTION = {"question": "Which year?", "choices": ["2025", "2026"]}


def answering(asked, **response):
    (key,) = asked["inputRequests"]
    return {"requestState": asked["requestState"], "inputResponses": {key: response}}


def test_what_a_call_asks_its_person_is_put_to_the_clients_user(world, asking):
    asked = asking.call("ask_user", QUESTION)

    assert asked["resultType"] == "input_required"
    (form,) = asked["inputRequests"].values()
    assert (form["method"], form["params"]["message"]) == ("elicitation/create", "Which year?")
    asking.call("ask_user", QUESTION, answering(asked, action="accept", content={"answer": "2026"}))
    work_off()
    done = asking.call("ask_user", QUESTION)
    assert done["structuredContent"]["result"]["answer"] == "2026"
    assert ToolCall.objects.count() == 1


def test_without_an_answer_it_is_asked_again_and_what_nobody_asked_is_ignored(world, asking):
    asked = asking.call("ask_user", QUESTION)
    for responses in ({}, {"other": {"action": "accept", "content": {"answer": "x"}}}):
        state = {"requestState": asked["requestState"], "inputResponses": responses}
        assert asking.call("ask_user", QUESTION, state)["resultType"] == "input_required"


def test_a_declined_question_stays_open_for_the_person(world, asking):
    asked = asking.call("ask_user", QUESTION)
    asking.call("ask_user", QUESTION, answering(asked, action="decline"))
    assert ToolCall.objects.get().status == "waiting"


def test_a_client_without_forms_or_a_token_without_the_scope_is_not_asked(world):
    plain = Wire(world)
    silent = Wire(world, scopes=["runs:write"], elicitation={})
    only_links = Wire(world, elicitation={"url": {}})
    for wire in (plain, silent, only_links):
        assert wire.call("ask_user", QUESTION)["resultType"] == "complete"


def test_a_form_is_never_put_for_an_approval(world, asking):
    told = asking.call("send_email", MAIL)
    assert told["resultType"] == "complete"
    assert told["structuredContent"]["waits_for"]["kind"] == "approval"


def test_the_state_belongs_to_the_token_the_tool_and_the_arguments(world, asking):
    asked = asking.call("ask_user", QUESTION)
    back = answering(asked, action="accept", content={"answer": "2026"})
    other = Wire(world, elicitation={})

    def code(wire, tool, arguments, state):
        params = {"name": tool, "arguments": arguments, **state}
        return wire.ask("tools/call", params, tool).json()["error"]["code"]

    changed = {**back, "requestState": back["requestState"][:-4] + "AAAA"}
    assert code(other, "ask_user", QUESTION, back) == -32602
    assert code(asking, "ask_user", {"question": "Another?"}, back) == -32602
    assert code(asking, "send_email", MAIL, back) == -32602
    assert code(asking, "ask_user", QUESTION, changed) == -32602
    assert ToolCall.objects.get().status == "waiting"


def test_a_task_that_asks_its_caller_says_so_and_takes_the_answer(world, add_tool):
    from runs.tools.base import WaitFor

    add_tool(name="confirm", idempotent=True)(lambda run: WaitFor("input", "Really?", choices=("yes", "no")))
    wire = Wire(world, extensions={TASKS: {}}, elicitation={})
    task = wire.call("confirm", {})["taskId"]
    work_off()

    told = wire.task("get", task)["result"]
    fits("GetTaskResult", told)
    (key,) = told["inputRequests"]
    assert told["status"] == "input_required"
    wire.task("update", task, inputResponses={key: {"action": "accept", "content": {"answer": "yes"}}})
    work_off()
    done = wire.task("get", task)["result"]
    assert done["result"]["structuredContent"]["result"]["answer"] == "yes"


# What is said of the server


def test_discovery_names_versions_and_the_extension(world, tasks):
    told = tasks.ask("server/discover").json()["result"]
    assert VERSION in told["supportedVersions"] and TASKS in told["capabilities"]["extensions"]
    assert told["cacheScope"] == "private" and told["capabilities"]["tools"]["listChanged"] is True


def test_every_run_of_a_waiting_call_stays_one_run(world, tasks):
    tasks.call("send_email", MAIL)
    tasks.call("send_email", MAIL)
    assert Run.objects.count() == 1
