"""Deputy as an MCP server, asked by the official SDK's client, in this process and on this database."""

import asyncio
import json

import httpx2
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from groups.models import Change, Membership, Token
from groups.scopes import SCOPES
from policy.models import CapabilityRule
from runs.mcp.app import enter
from runs.models import Approval, Run, ToolCall
from tests.acting import approve, complete
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.api_client import permit
from tests.integration.outside import MAIL, Outside, work_off

pytestmark = pytest.mark.django_db

URL = "http://localhost/mcp"


class Agent:
    """An MCP client with a token."""

    def __init__(self, world, path="", mode="auto", **token):
        token.setdefault("scopes", list(SCOPES))
        self.token, self.secret = Token.objects.issue(world.organization, world.user, **token)
        self.url, self.mode = URL + path, mode

    def __call__(self, do):
        """The result of `do(client)`, a coroutine, on a connection of its own."""

        async def speak():
            headers = {"Authorization": f"Bearer {self.secret}"}
            transport = httpx2.ASGITransport(app=enter)
            async with httpx2.AsyncClient(transport=transport, headers=headers) as http:
                streams = streamable_http_client(self.url, http_client=http)
                async with Client(streams, mode=self.mode, cache=None) as client:
                    return await do(client)

        return async_to_sync(speak)()

    def tools(self):
        return {tool.name: tool for tool in self(lambda client: client.list_tools()).tools}

    def call(self, tool, meta=None, **arguments):
        return self(lambda client: client.call_tool(tool, arguments, meta=meta))


@pytest.fixture
def agent(world):
    return Agent(world)


@pytest.fixture
def deciding(world):
    return permit(MembershipFactory(organization=world.organization).user, "decide_approval")


def post(path="", body=None, **headers):
    """A bare request; (status, body)."""

    async def ask():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=enter)) as http:
            plain = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            content = json.dumps(body or {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            return await http.post(URL + path, content=content, headers={**plain, **headers})

    return async_to_sync(ask)()


def bearer(agent):
    return {"Authorization": f"Bearer {agent.secret}"}


# What is offered


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_a_run_may_call_are_listed_with_annotations(world, mode):
    tools = Agent(world, mode=mode).tools()

    mail, recall = tools["send_email"], tools["memory_search"]
    assert mail.annotations.destructive_hint and not mail.annotations.read_only_hint
    assert "approval" in mail.description and mail.meta["deputy/effect"] == "require_approval"
    assert recall.annotations.read_only_hint and not recall.annotations.open_world_hint
    assert recall.input_schema["required"] == ["query"]
    assert {"deputy_start_run", "deputy_call_result", "deputy_complete_run"} <= tools.keys()
    assert not Run.objects.exists()


def test_what_policy_denies_is_not_offered(world, agent):
    CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="deny")
    Membership.objects.filter(pk=world.membership.pk).update(denied_tools=["http_get"])

    assert not {"send_email", "http_get"} & agent.tools().keys()


# Calls


def test_null_for_what_may_be_left_out_is_left_out(world, agent):
    assert agent.call("list_available_groups", project_id=None).structured_content["status"] == "succeeded"
    assert ToolCall.objects.get().arguments == {}
    refused = agent.call("memory_search", query=None).structured_content
    assert "None is not of type 'string'" in refused["error"]["message"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_opens_a_run_and_the_next_one_belongs_to_it(world, mode):
    agent = Agent(world, mode=mode)
    first = agent.call("list_available_groups")
    agent.call("memory_search", query="prices")

    run = Run.objects.get()
    assert (run.driver, run.user, run.status) == ("external", world.user, "running")
    assert first.structured_content["result"]["groups"][0]["name"] == "Market"
    assert json.loads(first.content[0].text)["groups"] and first.structured_content["run"] == run.pk
    assert set(ToolCall.objects.values_list("tool", flat=True)) == {"list_available_groups", "memory_search"}


def test_a_call_that_needs_an_approval_says_so_and_its_result_can_be_fetched(
    world, agent, deciding, mailoutbox
):
    waiting = agent.call("send_email", **MAIL)

    approval = Approval.objects.get()
    said = waiting.structured_content
    assert not waiting.is_error and said["waits_for"]["approval"] == approval.pk
    assert approval.pk in waiting.content[0].text and said["call_id"] in waiting.content[0].text

    again = agent.call("send_email", **MAIL)
    assert again.structured_content["call_id"] == said["call_id"] and Approval.objects.count() == 1

    approve(approval.pk, deciding)
    work_off()
    done = agent.call("deputy_call_result", call_id=said["call_id"])
    assert done.structured_content["status"] == "succeeded" and len(mailoutbox) == 1


def test_the_clients_own_call_id_is_the_same_call_for_ever(world, agent, deciding, mailoutbox):
    mine = {"deputy/call-id": "m-1"}
    agent.call("send_email", mine, **MAIL)
    approve(Approval.objects.get().pk, deciding)
    work_off()

    assert agent.call("send_email", mine, **MAIL).structured_content["status"] == "succeeded"
    assert len(mailoutbox) == 1
    other = agent.call("send_email", mine, **{**MAIL, "subject": "Other"})
    assert other.is_error and other.structured_content["error"]["code"] == "CALL_DIFFERS"
    bad = agent.call("send_email", {"deputy/call-id": "with blanks"}, **MAIL)
    assert bad.structured_content["error"]["code"] == "BAD_CALL_ID"


def test_refusals_are_errors_in_the_policys_words(world, agent):
    CapabilityRule.objects.create(
        organization=world.organization, name="No mail", tool="send_email", effect="deny"
    )

    denied = agent.call("send_email", **MAIL)
    assert denied.is_error and denied.structured_content["error"]["code"] == "PERMISSION_DENIED"
    assert "No mail" in denied.content[0].text
    wrong = agent.call("memory_search", quary="x")
    assert wrong.structured_content["error"]["code"] == "INVALID_ARGUMENTS"
    for tool, arguments in {
        "memory_search": {"query": "\x00"},
        "a\x00b": {},
        "deputy_call_result": {"call_id": "\x00"},
        "deputy_start_run": {"goal": "\x00"},
    }.items():
        kept = agent.call(tool, **arguments)
        assert kept.structured_content["error"]["code"] == "INVALID_ARGUMENTS", tool


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("name", ["no_such", "crm.no_such", "context_view", ""])
def test_a_tool_there_is_not_is_an_error_of_the_protocol_and_starts_no_run(world, mode, name):
    with pytest.raises(ExceptionGroup) as raised:
        Agent(world, mode=mode).call(name)

    assert code_in(raised.value) == -32602 and not Run.objects.exists()


def code_in(group):
    """The protocol's code of the only error inside."""
    while isinstance(group, ExceptionGroup):
        (group,) = group.exceptions
    return group.code


def test_deputys_own_working_memory_is_not_offered_to_an_outside_agent(world, agent):
    assert not [name for name in agent.tools() if name.startswith("context_")]


def test_the_list_of_tools_is_the_tokens_own_and_in_one_order(world, agent):
    listed = agent(lambda client: client.list_tools())

    assert listed.cache_scope == "private"
    assert [tool.name for tool in listed.tools] == list(agent.tools())


def test_a_run_is_named_by_its_goal_and_completed(world, agent):
    agent.call("list_available_groups")
    started = agent.call("deputy_start_run", goal="Compare prices")
    agent.call("memory_search", query="prices")
    done = agent.call("deputy_complete_run", output="They charge 5.")

    before, run = Run.objects.order_by("id")
    assert (before.status, run.goal, run.status, run.output) == (
        "completed",
        "Compare prices",
        "completed",
        "They charge 5.",
    )
    assert started.structured_content["run"] == run.pk and not done.is_error
    nothing = agent.call("deputy_complete_run", output="x")
    assert nothing.structured_content["error"]["code"] == "NO_RUN"
    assert agent.call("deputy_complete_run").structured_content["error"]["code"] == "INVALID_ARGUMENTS"


def test_a_used_up_run_is_followed_by_another(world, agent, settings):
    settings.RUN_STEPS = 2
    for _ in range(3):
        assert not agent.call("list_available_groups").is_error

    assert [run.status for run in Run.objects.order_by("id")] == ["failed", "running"]


def test_an_address_may_name_its_run(world):
    outside = Outside(world)
    agent = Agent(world, f"/runs/{outside.run.pk}")

    assert "deputy_start_run" not in agent.tools()
    agent.call("list_available_groups", {"deputy/call-id": "7"})
    assert outside.look("7").status == "succeeded"

    complete(outside.run.pk, "")
    ended = agent.call("list_available_groups")
    assert ended.structured_content["error"]["code"] == "RUN_ENDED" and Run.objects.count() == 1


def test_two_tokens_of_one_user_have_runs_of_their_own(world):
    Agent(world).call("list_available_groups")
    Agent(world).call("list_available_groups")

    assert Run.objects.count() == 2


# The entrance


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer dpt_wrong"}, {"Cookie": "sessionid=x"}])
def test_nobody_is_let_in_without_a_token(db, headers):
    answer = post(**headers)

    assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["code"] in ("UNAUTHENTICATED", "NOT_AUTHENTICATED", "BAD_TOKEN")


def test_a_token_without_the_scope_is_refused(world):
    narrow = Agent(world, scopes=["approvals:read"])
    assert post(**bearer(narrow)).json()["code"] == "SCOPE_MISSING"


def test_the_apis_allowance_holds_here_too(world, agent, settings):
    settings.API_PER_MINUTE = 1
    assert post(**bearer(agent)).status_code == 200
    assert post(**bearer(agent)).status_code == 429


def test_what_is_changed_after_a_request_is_not_the_askers(world, agent):
    """The next request may be served in this one's context: it is not recorded in the asker's name."""
    assert post(**bearer(agent)).status_code == 200
    world.group.description = "Somebody else's words"
    world.group.save()

    change = Change.objects.get(object_id=world.group.pk, action="changed")
    assert (change.user, change.via, change.token) == (None, "system", "")


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost", 200), ("https://evil.example", 403), ("null", 403), ("http://localhost:81", 403)],
)
def test_pages_of_other_origins_may_not_ask(world, agent, origin, status):
    assert post(**bearer(agent), Origin=origin).status_code == status


def test_another_name_for_this_machine_is_not_answered(world, agent):
    assert post(**bearer(agent), Host="rebound.example").status_code == 400


def test_a_large_body_and_other_methods_are_refused(world, agent):
    large = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "y" * 1_100_000}}
    assert post(body=large, **bearer(agent)).status_code == 413

    async def get():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=enter)) as http:
            return await http.get(URL, headers=bearer(agent))

    answer = async_to_sync(get)()
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("lost", [{"revoked_at": timezone.now()}, {"scopes": ["runs:read"]}])
def test_a_token_that_is_lost_before_the_body_has_come_calls_nothing(world, agent, lost):
    """However long the body takes after the headers."""
    call = {"name": "list_available_groups", "arguments": {}}
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()

    async def late():
        yield said[:20]
        await sync_to_async(Token.objects.filter(pk=agent.token.pk).update)(**lost)
        await asyncio.sleep(0.05)
        yield said[20:]

    async def ask():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=enter)) as http:
            plain = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            return await http.post(URL, content=late(), headers={**plain, **bearer(agent)})

    answer = async_to_sync(ask)()
    assert answer.status_code in (401, 403), answer.text
    assert not Run.objects.exists()


@pytest.mark.parametrize("path", ["/x", "/projects/%00", "/runs/run_1", "/projects/", "/projects/none"])
def test_other_addresses_are_not_there(world, agent, path):
    assert post(path, **bearer(agent)).status_code == 404


def test_whoever_sees_several_projects_names_one(world, agent):
    second = ProjectFactory(organization=world.organization, slug="borealis")
    refused = post(**bearer(agent)).json()
    assert refused["code"] == "PROJECT_MISSING" and "borealis" in refused["detail"]

    Agent(world, "/projects/borealis").call("list_available_groups")
    assert Run.objects.get().project == second


# Tenancy


def test_another_tenants_run_and_project_do_not_exist(world):
    outside = Outside(world)
    other = ProjectFactory()
    stranger = MembershipFactory(organization=other.organization)
    agent = Agent(type(world)(organization=other.organization, user=stranger.user))

    for path in (
        f"/runs/{outside.run.pk}",
        f"/projects/{world.project.pk}",
        f"/projects/{world.project.slug}",
    ):
        answer = post(path, **bearer(agent))
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


def test_a_colleague_sees_the_run_and_does_not_drive_it(world):
    outside = Outside(world)
    colleague = MembershipFactory(organization=world.organization)
    agent = Agent(type(world)(organization=world.organization, user=colleague.user))

    assert post(f"/runs/{outside.run.pk}", **bearer(agent)).json()["code"] == "NOT_ENTITLED"


def test_a_member_of_another_project_does_not_find_it(world):
    outside = Outside(world)
    elsewhere = ProjectFactory(organization=world.organization)
    member = MembershipFactory(organization=world.organization, projects=[elsewhere.pk])
    agent = Agent(type(world)(organization=world.organization, user=member.user))

    assert post(f"/runs/{outside.run.pk}", **bearer(agent)).status_code == 404


def test_results_of_anothers_calls_are_not_told(world):
    outside = Outside(world)
    outside.call("secret", "list_available_groups")
    colleague = MembershipFactory(organization=world.organization)
    agent = Agent(type(world)(organization=world.organization, user=colleague.user))

    for arguments in ({"call_id": "secret"}, {"call_id": "secret", "run": outside.run.pk}):
        asked = agent.call("deputy_call_result", **arguments)
        assert asked.structured_content["error"]["code"] == "NOT_FOUND"


def test_nor_are_those_of_a_run_that_deputy_drives(world, ask):
    from tests.acting import message
    from tests.scripted import call, in_order

    run = ask(in_order(call(("ask_user", {"question": "Which year was it?"})), "Noted."))
    message(run.pk, content="In 1848")
    work_off()
    asked = ToolCall.objects.get(run_id=run.pk)
    agent = Agent(world, scopes=["runs:write"])  # which reads nothing over the API

    for arguments in ({"call_id": asked.call_id}, {"call_id": asked.call_id, "run": run.pk}):
        told = agent.call("deputy_call_result", **arguments)
        assert told.structured_content["error"]["code"] == "NOT_FOUND"


def test_a_run_that_deputy_drives_is_not_driven_from_here(world, ask):
    from tests.scripted import call, in_order

    run = ask(in_order(call(("ask_user", {"question": "Which?"}))))
    agent = Agent(world)
    answer = post(f"/runs/{run.pk}", **bearer(agent))
    assert answer.json()["code"] == "NOT_EXTERNAL"
