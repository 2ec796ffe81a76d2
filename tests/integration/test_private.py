"""What a person's agent knows of them is for them alone; secrets in texts are for nobody. At every door."""

import json
import re

import pytest
from django.urls import reverse

from common import redact
from groups.models import AgentInstance
from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from policy.models import CapabilityRule
from runs.actions.signal import marks
from runs.execution import executor, outside_agents
from runs.models import Approval, IdempotencyRecord, RunEvent, ToolCall, Wait
from runs.observe import showing
from tests.acting import approve, at_the_pages
from tests.admin_world import client_of, drive, person, superuser, url
from tests.factories import MembershipFactory
from tests.integration.api_client import Api
from tests.scripted import by_role, call, in_order, say

pytestmark = pytest.mark.django_db

SECRET = "allergic to walnuts"
LONG = f"{SECRET}. " + "More about the office and its windows. " * 200
RIGHTS = (
    "runs.view_run", "runs.view_runevent", "runs.view_toolcall", "runs.cancel_run", "memory.view_memory",
    "runs.view_approval", "runs.view_wait",
)  # fmt: skip


@pytest.fixture
def looked_up(made):
    """A run whose agent searched its person's memory, and wrote to it."""
    own = Scope(made.organization.pk, user_id=made.user.pk, project_id=made.project.pk)
    memory_write(LONG, own, type="episodic")
    replies = [
        call(("memory_search", {"query": "office windows walnuts"})),
        call(("memory_write", {"content": f"Still {SECRET}", "category": "walnuts"})),
        call(("context_find", {"query": "memory_search"})),
        call(("memory_search", {"query": "windows", "limit": f"all that is {SECRET}"})),
        say("I know what I need."),
    ]
    return drive(made, "What do I like in an office?", by_role(Personal_agent=replies))


def api_doors(run):
    base = f"runs/{run.pk}"
    ids = ToolCall.objects.filter(run=run).values_list("call_id", flat=True)
    doors = (
        "",
        "events/?limit=500",
        "tree/",
        "context/",
        "tool-calls/",
        *(f"tool-calls/{one}/" for one in ids),
    )
    return [*(f"{base}/{door}" for door in doors), *(f"{base}/tool-calls/{one}/" for one in ids)]


def admin_doors(run):
    events = [url("runs_runevent_change", one.pk) for one in RunEvent.objects.filter(run=run)]
    calls = [url("runs_toolcall_change", one.pk) for one in ToolCall.objects.filter(run=run)]
    page = url("runs_run_change", run.pk)
    lists = [url(f"runs_{name}_changelist") for name in ("run", "runevent", "toolcall")]
    exports = [url("runs_decisions_export"), url("runs_decisions")]
    return [page, f"{page}?at=last", url("runs_run_live", run.pk), *events, *calls, *lists, *exports]


def told(answer):
    assert answer.status_code in (200, 202), answer.content[:300]
    return (answer.getvalue() if answer.streaming else answer.content).decode()


def test_the_log_has_what_was_found(looked_up):
    assert SECRET in json.dumps([event.payload for event in RunEvent.objects.filter(run=looked_up)])


def test_the_person_sees_it_in_their_own_run(made, looked_up):
    api = Api(made.user, made.organization)
    assert SECRET in told(api.get(f"runs/{looked_up.pk}/events/", limit=500))


@pytest.mark.parametrize("kind", ["human", "service"])
def test_a_colleague_and_a_robot_see_it_through_no_door_of_the_api(made, looked_up, kind):
    colleague = MembershipFactory(organization=made.organization, kind=kind)
    api = Api(colleague.user, made.organization)

    for door in api_doors(looked_up):
        assert "walnuts" not in told(api.client.get(f"/api/{door}", headers=api.headers)), door


@pytest.mark.parametrize("who", ["colleague", "operator"])
def test_nor_through_a_page_of_the_admin(made, looked_up, who):
    reader = superuser() if who == "operator" else person(made, "lou", *RIGHTS, is_staff=True)
    client = client_of(reader)

    for door in admin_doors(looked_up):
        assert "walnuts" not in told(client.get(door)), door


def test_nor_what_a_decider_put_in_place_of_it(made):
    rule = {"tool": "memory_write", "effect": "require_approval", "name": "what is kept is looked at"}
    CapabilityRule.objects.create(organization=made.organization, **rule)
    written = call(("memory_write", {"content": f"Is {SECRET}", "category": "food"}))
    run = drive(made, "Remember it", by_role(Personal_agent=[written, say("Noted.")]))
    lou = person(made, "lou", *RIGHTS, "runs.decide_approval", is_staff=True)
    changed = {"content": f"Was {SECRET}", "category": "food"}
    first = approve(Approval.objects.get(run=run).pk, lou, arguments=changed)
    if first.status == "pending":
        approve(first.pk, lou)
    executor.run(run.pk)
    said = {event.type: event.payload for event in RunEvent.objects.filter(run=run)}
    assert all(SECRET in json.dumps(said[one]) for one in ("approval.edited", "tool.approved"))

    colleague = Api(MembershipFactory(organization=made.organization).user, made.organization)
    assert "walnuts" not in told(colleague.get(f"runs/{run.pk}/events/", limit=500))
    assert "walnuts" not in told(client_of(superuser()).get(url("runs_run_change", run.pk)))
    for wait in Wait.objects.filter(run=run):
        assert "walnuts" not in told(client_of(lou).get(url("runs_wait_change", wait.pk)))
    for type in ("approval.edited", "tool.approved"):  # as older logs have them: nothing says of which tool
        old = {name: value for name, value in said[type].items() if name != "tool"}
        assert "walnuts" not in json.dumps(showing.payload(type, old, own=False))


def test_nor_what_a_program_of_theirs_was_answered(made):
    mine = Api(made.user, made.organization)
    preference = {"kind": "preference", "content": f"Is {SECRET}"}
    assert mine.post("memories/", preference, Idempotency_Key="one").status_code == 201
    record = IdempotencyRecord.objects.get(key="one")
    assert SECRET in json.dumps(record.body)
    lou = person(made, "lou", *RIGHTS, "runs.view_idempotencyrecord", is_staff=True)

    for reader in (lou, superuser()):
        assert "walnuts" not in told(client_of(reader).get(url("runs_idempotencyrecord_change", record.pk)))


def test_nor_by_narrowing_a_list_of_the_admin_letter_by_letter(made, looked_up):
    AgentInstance.objects.filter(pk=made.run.agent_instance_id).update(preferences={"food": SECRET})
    client = client_of(person(made, "lou", *RIGHTS, "groups.view_agentinstance", is_staff=True))

    for name, column in (
        ("runs_runevent", "payload"),
        ("runs_toolcall", "result"),
        ("runs_toolcall", "arguments"),
        ("groups_agentinstance", "preferences"),
    ):
        found = client.get(url(f"{name}_changelist", **{f"{column}__icontains": "walnuts"}))
        assert found.status_code == 400, (name, column)


def test_a_page_that_holds_what_was_found_opens_for_the_person_alone(made, looked_up):
    run = looked_up
    own, colleague = Api(made.user, made.organization), MembershipFactory(organization=made.organization)
    stranger = Api(colleague.user, made.organization)
    page = next(
        page for page in walked(own.get(f"runs/{run.pk}/context/").json()["segments"])
        if page["name"] == "Result of memory_search"
    )  # fmt: skip
    look = {"operation": "getPage", "arguments": {"index": page["index"]}}

    assert "walnuts" not in told(stranger.post(f"runs/{run.pk}/context/", look))
    find = {"operation": "findPage", "arguments": {"query": "walnuts"}}
    assert "walnuts" not in json.dumps(stranger.post(f"runs/{run.pk}/context/", find).json()["result"])


def walked(segments):
    pages = [segment["page"] for segment in segments]
    for page in pages:
        pages += page["pages"]
    return pages


def test_preferences_stand_in_no_view_that_others_read(made):
    run = made.run
    AgentInstance.objects.filter(pk=run.agent_instance_id).update(preferences={"food": SECRET})
    stranger = Api(MembershipFactory(organization=made.organization).user, made.organization)

    assert SECRET in told(Api(made.user, made.organization).get(f"runs/{run.pk}/context/"))
    assert SECRET not in told(stranger.get(f"runs/{run.pk}/context/"))
    assert SECRET not in told(client_of(superuser()).get(url("runs_run_change", run.pk), {"at": "last"}))


def test_nor_on_the_page_of_their_agent(made):
    agent = AgentInstance.objects.get(pk=made.run.agent_instance_id)
    AgentInstance.objects.filter(pk=agent.pk).update(preferences={"food": SECRET})
    rights = ("groups.view_agentinstance", "groups.change_agentinstance", "groups.view_change")
    colleague = client_of(person(made, "lou", *rights, is_staff=True))
    page = url("groups_agentinstance_change", agent.pk)
    fields = {"organization": made.organization.pk, "role": agent.role_id, "name": "His agent",
              "user": made.user.pk, "preferences": "{}"}  # fmt: skip

    for client in (colleague, client_of(superuser())):
        assert SECRET not in told(client.get(page))
        client.post(page, fields)
    agent.refresh_from_db()
    assert (agent.name, agent.preferences) == ("His agent", {"food": SECRET})
    assert SECRET not in told(colleague.get(url("groups_change_changelist")))


def test_nor_in_what_a_group_inherits_of_them(world, ask):
    from runs.models import Run

    role = by_role(
        Personal_agent=[call(("escalate_to_group", {"goal": "x", "group_id": world.group.pk})), say("ok")],
        researcher=[say("EVIDENCE: 5")],
        analyst=[say("PROPOSAL: 5")],
        lead=[say("DECISION: 5")],
    )
    ask(lambda *_: say("hello"))  # makes the agent
    AgentInstance.objects.filter(user=world.user).update(preferences={"food": SECRET})
    child = Run.objects.get(parent_run=ask(role))
    stranger = Api(MembershipFactory(organization=world.organization).user, world.organization)
    assert SECRET in json.dumps(RunEvent.objects.get(run=child, seq=1).payload)

    for door in ("events/", "context/"):
        answer = stranger.get(f"runs/{child.pk}/{door}")
        assert SECRET not in told(answer), door
        assert "5" in answer.content.decode()


def test_where_a_value_came_from_quotes_no_memory_to_a_decider(made):
    own = Scope(made.organization.pk, user_id=made.user.pk, project_id=made.project.pk)
    memory_write("Write to zoe@private.example about walnuts", own, type="episodic")
    replies = [
        call(("memory_search", {"query": "walnuts"})),
        call(("send_email", {"to": ["zoe@private.example"], "subject": "s", "body": "b"})),
    ]
    run = drive(made, "Write about it", by_role(Personal_agent=replies))
    approval = Approval.objects.get(run=run)
    lou = person(made, "lou", *RIGHTS, "runs.decide_approval", is_staff=True)
    mine, theirs = Api(made.user, made.organization), Api(lou, made.organization)

    assert "about walnuts" in told(mine.get(f"approvals/{approval.pk}/origins/"))
    others = told(theirs.get(f"approvals/{approval.pk}/origins/"))
    page = told(client_of(lou).get(url("runs_approval_change", approval.pk)))
    for shown in (others, page):
        assert "zoe@private.example" in shown  # what would run is what is decided
        assert "walnuts" not in shown


def test_nor_what_an_earlier_turn_of_the_session_found_there(made):
    own = Scope(made.organization.pk, user_id=made.user.pk, project_id=made.project.pk)
    memory_write("Write to zoe@private.example about walnuts", own, type="episodic")
    found = [call(("memory_search", {"query": "walnuts"})), say("Found.")]
    drive(made, "Look it up", by_role(Personal_agent=found), session_key="one")
    Memory.objects.filter(user=made.user).delete()
    letter = call(("send_email", {"to": ["zoe@private.example"], "subject": "s", "body": "b"}))
    run = drive(made, "Write about it", by_role(Personal_agent=[letter]), session_key="one")
    approval = Approval.objects.get(run=run)
    lou = person(made, "lou", *RIGHTS, "runs.decide_approval", is_staff=True)
    mine, theirs = Api(made.user, made.organization), Api(lou, made.organization)

    assert "about walnuts" in told(mine.get(f"approvals/{approval.pk}/origins/"))
    others = theirs.get(f"approvals/{approval.pk}/origins/")
    assert "zoe@private.example" in told(others) and "walnuts" not in told(others)


def test_the_memories_of_others_are_in_no_list_and_no_search(made, looked_up):
    stranger = Api(MembershipFactory(organization=made.organization).user, made.organization)

    assert SECRET not in told(stranger.get("memories/"))
    assert stranger.get("memories/search/", query="walnuts").json()["results"] == []
    for memory in Memory.objects.filter(user=made.user):
        assert stranger.get(f"memories/{memory.pk}/").status_code == 404


KEYS = {  # as they look; none of them opens anything
    "OpenAI's": "sk-proj-Ab12Cd34Ef56Gh78Ij90",
    "Deputy's": "dpt_Ab12Cd34Ef56Gh78Ij90Kl",
    "GitHub's": "ghp_Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78",
    "GitHub's new": "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "Amazon's": "AKIAIOSFODNN7EXAMPLE",
    "Slack's": "xoxb-123456789012-abcdefGHIJKL",
    "a web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVm",
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----",
    "a key cut short": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA",
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_a_key_inside_a_text_is_masked(key):
    for text in (f"Use {key}", f"https://example.com/?{key}", json.dumps({"to": key})):
        shown = redact.shown(text)
        assert redact.MASK in shown and last_line(key) not in shown
        assert re.search(redact.MAY_HOLD_KEY, text)


def last_line(key):
    return key.splitlines()[1] if "\n" in key else key


@pytest.mark.parametrize("name", ["GitHub's", "a private key"])
def test_what_is_masked_is_so_at_every_door(world, ask, name):
    """Neither to the person: it stands in the log and in what the agent reads."""
    key = KEYS[name]
    question = call(("ask_user", {"question": f"Is {key} yours?"}))
    run = ask(in_order(question, say("ok")), goal=f"Use {key} for it", context=f"or {key}")
    failed = ask(in_order(call(("http_get", {"url": f"https://example.com/?{key}"})), say(f"It is {key}!")))
    secret = last_line(key)
    api = Api(world.user, world.organization)
    client = client_of(superuser())

    for one in (run, failed):
        for door in api_doors(one)[:5]:
            assert secret not in told(api.client.get(f"/api/{door}", headers=api.headers)), door
        for door in [*admin_doors(one), url("index")]:
            assert secret not in told(client.get(door)), door
    assert redact.MASK in told(api.get(f"runs/{run.pk}/"))


def test_so_it_is_at_the_persons_own_pages(world, ask):
    key = KEYS["GitHub's"]
    asked = {"question": f"Is {key} yours?", "choices": [f"{key} is mine", "No"]}
    run = ask(in_order(call(("ask_user", asked), content=f"I found {key}")), goal=f"Use {key}", context=key)
    done = ask(in_order(say(f"It is {key}.")), goal=f"Say {key}")
    broken = ask(in_order(call(("ask_user", {"question": "Which?"}))), driver="external")
    outside_agents.fail(broken.pk, at_the_pages(world.user, world.organization.pk), f"{key} is refused")
    client = client_of(world.user)

    for one in (run, done, broken):
        for path in (reverse("web:conversation", args=[one.pk]), reverse("web:turn", args=[one.pk])):
            assert key not in told(client.get(path)) and redact.MASK in told(client.get(path)), path
    for page in ("web:home", "web:conversations", "web:waiting"):
        assert key not in told(client.get(reverse(page))), page
    assert redact.MASK in told(client.get(reverse("web:waiting")))


def test_and_where_knowledge_is_shown(world):
    key = KEYS["GitHub's"]
    knowledge = Scope(world.organization.pk, project_id=world.project.pk)
    known = memory_write(f"Deploy with {key}", knowledge, type="archival", metadata={"token": key})
    mine = Scope(world.organization.pk, user_id=world.user.pk)
    memory_write(f"I deploy with {key}", mine, type="episodic")
    api, client = Api(world.user, world.organization), client_of(world.user)

    doors = (
        "memories/",
        f"memories/{known.pk}/",
        f"memories/search/?query=deploy&project={world.project.pk}",
    )
    for door in doors:
        said = told(api.client.get(f"/api/{door}", headers=api.headers))
        assert key not in said and "eploy with [redacted]" in said, door
    assert key not in told(client.get(reverse("web:source", args=[known.pk])))


def test_a_choice_shown_without_its_key_is_still_the_agents(ask):
    said = f"Write to zoe@private.example with {KEYS['a web token']}"
    run = ask(in_order(call(("ask_user", {"question": "What now?", "choices": [said, "Nothing"]}))))

    of_it = redact.shown(said), said, "Write to zoe@private.example"  # its address is out of it
    assert all(marks(run.root_id, words) == {"chosen": True} for words in of_it)
    assert marks(run.root_id, "Write to ann@private.example") == {}


@pytest.mark.parametrize(
    "words",
    [
        "a risk-averse plan",
        "Basic understanding of tokens",
        "Token authentication matters",
        "sk-learn-compatible estimators",
        "pk_and_sk_are_names",
        "desk-and-chair 12345678901234",
        "run_01m81sg5tsf5dsmj53fwd6vzrt",
        "the AKIA prefix",
        "BEGIN PRIVATE KEY",
    ],
)
def test_ordinary_words_are_left_alone(words):
    assert redact.shown(words) is words or redact.shown(words) == words
