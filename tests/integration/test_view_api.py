"""A run's view over the REST API: who sees it, who rearranges it, and what nobody may."""

import pytest

from memory.context.models import ContextView
from runs.models import Run
from tests.factories import MembershipFactory
from tests.integration.api_client import Api, permit, problem
from tests.scripted import Scripted, by_role, call, in_order, say

from .helpers import chain_holds, events

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


@pytest.fixture
def waiting(ask):
    """A run that waits for mia's answer."""
    return ask(in_order(call(("ask_user", {"question": "Which?"})), say("ok")))


def do(api, run, operation, agent="", **arguments):
    body = {"operation": operation, "arguments": arguments, "agent": agent}
    return api.post(f"runs/{run.pk}/context/", body)


def test_a_run_shows_what_its_agent_sees(api, waiting):
    body = api.get(f"runs/{waiting.pk}/context/").json()

    assert body["run"] == waiting.pk
    assert (body["version"], body["role"]) == (None, "Personal agent")
    assert body["text"] in Scripted.asked[0][0][0].content
    assert [segment["segment_id"] for segment in body["segments"]] == ["sys", "usr", "task", "tool"]
    goal = body["segments"][2]["page"]["pages"][0]["pages"][0]
    assert (goal["index"], goal["name"], goal["folded"]) == ("task-2", "Goal", False)


def test_what_a_person_folds_is_folded_for_the_agent_and_in_the_log(api, waiting):
    answer = do(api, waiting, "hideDetails", index="task-1")

    assert (answer.status_code, answer.json()["result"]) == (200, {"hidden": "task-1"})
    api.post(f"runs/{waiting.pk}/message/", {"content": "This one."})
    from runs.execution import executor

    executor.run(waiting.pk)
    assert "+ [task-1]" in Scripted.asked[-1][0][0].content
    changed = [payload for kind, payload in events(waiting) if kind == "context.changed"]
    assert [payload.get("by") for payload in changed] == [None, "mia"]  # it was opened, and folded by her
    assert chain_holds(waiting)
    assert Run.objects.get(pk=waiting.pk).status == "completed"


def test_the_view_at_an_event_is_as_it_was(api, waiting):
    before = api.get(f"runs/{waiting.pk}/context/").json()
    do(api, waiting, "updatePage", index="task-2", description="Something else")

    now = api.get(f"runs/{waiting.pk}/context/").json()
    then = api.get(f"runs/{waiting.pk}/context/", at=before["at"]).json()
    assert "Something else" in now["text"]
    assert then == before


def test_each_member_of_a_group_has_a_view_of_its_own(api, ask):
    run = ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "g"})), say("ok")],
            researcher=[say("EVIDENCE: 5")],
            analyst=[say("a")],
            lead=[say("DECISION: 5")],
        )
    )
    child = Run.objects.get(parent_run=run)
    last = api.get(f"runs/{child.pk}/context/").json()
    assert last["role"] == "lead"
    first = api.get(f"runs/{child.pk}/context/", at=2).json()
    assert first["role"] == "researcher"
    other = api.get(f"runs/{child.pk}/context/", agent=first["agent"]).json()
    assert "EVIDENCE: 5" not in first["text"]
    assert "analyst: a" in other["text"]
    answer = api.get(f"runs/{child.pk}/context/", agent="agt_nobody")
    assert problem(answer) == (404, "NO_SUCH_AGENT")


@pytest.mark.parametrize(
    ("operation", "arguments", "expected"),
    [
        ("updatePage", {"index": "sys-1", "description": "x"}, (403, "PERMISSION_DENIED")),
        ("removePage", {"index": "sys-1"}, (403, "PERMISSION_DENIED")),
        ("hideDetails", {"index": "sys-0"}, (403, "PERMISSION_DENIED")),
        ("setPermission", {"index": "sys-0"}, (403, "PERMISSION_DENIED")),
        ("somethingElse", {"index": "usr-0"}, (403, "PERMISSION_DENIED")),
        ("expandDetails", {"index": "task-99"}, (404, "not_found")),
        ("getPage", {"index": "task-99"}, (404, "not_found")),
        ("removePage", {"index": "task-0"}, (422, "invalid_operation")),
        ("expandDetails", {}, (422, "INVALID_ARGUMENTS")),
        ("expandDetails", {"index": 3}, (422, "INVALID_ARGUMENTS")),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(api, waiting, operation, arguments, expected):
    assert problem(do(api, waiting, operation, **arguments)) == expected
    assert not ContextView.objects.exists()


def test_reading_a_page_stores_nothing(api, waiting):
    assert do(api, waiting, "getPage", index="task-2").json()["result"]["name"] == "Goal"
    assert do(api, waiting, "findPage", query="GOAL").json()["result"]["pages"][0]["index"] == "task-2"
    assert not ContextView.objects.exists()


def test_an_ended_run_is_read_and_not_rearranged(api, ask):
    run = ask(in_order(say("ok")))

    assert do(api, run, "getPage", index="task-2").status_code == 200
    assert problem(do(api, run, "hideDetails", index="task-1")) == (409, "RUN_ENDED")


def test_others_may_look_and_not_rearrange(world, waiting):
    other = MembershipFactory(organization=world.organization)
    api = Api(other.user, world.organization)

    assert api.get(f"runs/{waiting.pk}/context/").status_code == 200
    assert problem(do(api, waiting, "hideDetails", index="task-1")) == (403, "NOT_ENTITLED")
    api = Api(permit(other.user, "cancel_run"), world.organization)
    assert do(api, waiting, "hideDetails", index="task-1").status_code == 200


def test_what_a_service_account_asks_for_passes_policy(world, waiting):
    from policy.models import CapabilityRule

    CapabilityRule.objects.create(organization=world.organization, tool="context_remove", effect="deny")
    service = MembershipFactory(organization=world.organization, kind="service")
    api = Api(permit(service.user, "cancel_run"), world.organization)

    assert problem(do(api, waiting, "removePage", index="task-1")) == (403, "PERMISSION_DENIED")
    assert do(api, waiting, "hideDetails", index="task-1").status_code == 200


def test_a_token_that_may_not_read_sees_no_page_of_a_view(world, waiting):
    writes = Api(world.user, world.organization, scopes=["runs:write"])

    assert problem(do(writes, waiting, "getPage", index="task-2")) == (403, "SCOPE_MISSING")
    assert do(writes, waiting, "hideDetails", index="task-1").status_code == 200
