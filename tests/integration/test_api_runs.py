"""Runs over HTTP: start, look, say something, cancel."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from common.api import idempotency
from runs.execution import executor
from runs.log.payloads import ALWAYS, FORMS
from runs.models import IdempotencyRecord, Run, RunEvent, Wait
from runs.models.choices import EventType
from runs.queue.worker_status import WorkerStatus
from runs.workers.worker import Duties
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.api_client import Api, permit, problem
from tests.scripted import Scripted, by_role, call, in_order, say

pytestmark = pytest.mark.django_db

QUESTION = call(("ask_user", {"question": "Which year?"}))


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


@pytest.fixture
def other(world):
    """Another member of the organization, with no permission of their own."""
    member = MembershipFactory(organization=world.organization, user__username="otto")
    return Api(member.user, world.organization)


def started(api, world, **fields):
    response = api.post("runs/", {"project": world.project.slug, "goal": "Compare prices", **fields})
    assert response.status_code == 202, response.content
    return response.json()


def tree_of(ask):
    return ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "Compare prices"})), say("They charge 5.")],
            researcher=[say("EVIDENCE: 5.")],
            analyst=[say("PROPOSAL: 5.")],
            lead=[say("DECISION: 5.")],
        )
    )


def test_a_goal_becomes_a_run_that_waits_for_a_worker(api, world):
    response = api.post("runs/", {"project": world.project.slug, "goal": " Compare prices "})

    body = response.json()
    assert response.status_code == 202
    assert response.headers["Location"] == f"http://testserver/api/runs/{body['id']}/"
    assert (body["status"], body["goal"], body["kind"]) == ("pending", "Compare prices", "personal")
    assert (body["user"], body["project"], body["parent"]) == ("mia", world.project.id, None)
    assert api.get(f"runs/{body['id']}/").json() == body


def test_a_run_keeps_all_that_it_was_given(api, world):
    run = started(
        api, world, project=world.project.id, context="For Ines", session_key="s1", driver="external"
    )

    assert (run["context"], run["session_key"], run["driver"]) == ("For Ines", "s1", "external")
    assert run["status"] == "running"


def test_a_run_in_a_project_one_does_not_see_cannot_be_started(api, world):
    foreign = ProjectFactory()
    hidden = ProjectFactory(organization=world.organization)
    world.membership.projects = [world.project.id]
    world.membership.save()

    for project in (foreign.slug, foreign.id, hidden.slug, "none"):
        response = api.post("runs/", {"project": project, "goal": "x"})
        assert problem(response) == (404, "PROJECT_NOT_FOUND")
        assert response.json()["errors"][0]["pointer"] == "/project"
    assert not Run.objects.exists()


def test_a_member_of_some_projects_sees_those_alone(api, world):
    here = started(api, world)
    second = ProjectFactory(organization=world.organization)
    there = started(api, world, project=second.slug)
    world.membership.projects = [world.project.id]
    world.membership.save()

    assert [run["id"] for run in api.get("runs/").json()["results"]] == [here["id"]]
    assert problem(api.get(f"runs/{there['id']}/")) == (404, "NOT_FOUND")
    assert [each["id"] for each in api.get("projects/").json()["results"]] == [world.project.id]


def test_the_same_key_twice_starts_one_run_and_answers_alike(api, world):
    body = {"project": world.project.slug, "goal": "x"}
    first = api.post("runs/", body, Idempotency_Key="k1")
    Run.objects.update(goal="changed meanwhile")
    again = api.post("runs/", body, Idempotency_Key="k1")

    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1


def test_the_same_key_with_another_body_is_refused(api, world):
    api.post("runs/", {"project": world.project.slug, "goal": "x"}, Idempotency_Key="k1")
    other = api.post("runs/", {"project": world.project.slug, "goal": "y"}, Idempotency_Key="k1")

    assert problem(other) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_a_key_is_its_users_own(api, other, world):
    body = {"project": world.project.slug, "goal": "x"}
    one = api.post("runs/", body, Idempotency_Key="k1").json()["id"]

    assert other.post("runs/", body, Idempotency_Key="k1").json()["id"] != one


def test_a_refusal_uses_no_key_up(api, world):
    assert api.post("runs/", {"project": "none", "goal": "x"}, Idempotency_Key="k1").status_code == 404
    assert started_with(api, world, "k1").status_code == 202


def started_with(api, world, key):
    return api.post("runs/", {"project": world.project.slug, "goal": "x"}, Idempotency_Key=key)


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "é"])
def test_a_key_that_is_none_is_refused(api, world, key):
    assert problem(started_with(api, world, key)) == (400, "BAD_IDEMPOTENCY_KEY")


def test_old_keys_are_forgotten(api, world):
    started_with(api, world, "k1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_idempotencyrecord SET created_at = created_at - interval '49 hours'")
    started_with(api, world, "k2")

    assert idempotency.forget() == 1
    assert [record.key for record in IdempotencyRecord.objects.all()] == ["k2"]


def test_a_cluster_clears_away_what_is_over(api, world):
    started_with(api, world, "k1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_idempotencyrecord SET created_at = created_at - interval '49 hours'")
        cursor.execute("UPDATE groups_throttle SET full_at = full_at - interval '1 hour'")
        Duties(WorkerStatus(), "here", []).attend()
        cursor.execute("SELECT count(*) FROM groups_throttle")

        assert (cursor.fetchone(), IdempotencyRecord.objects.count()) == ((0,), 0)


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_the_same_time_starts_one_run(api, world):
    def post(_):
        try:
            return started_with(api, world, "k1")
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(post, range(6)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert Run.objects.count() == 1


def test_runs_come_newest_first_page_by_page(api, world):
    made = [started(api, world)["id"] for _ in range(5)]

    first = api.get("runs/", limit=2).json()
    assert [run["id"] for run in first["results"]] == [made[4], made[3]]
    second = api.client.get(first["next"], headers=api.headers).json()
    assert [run["id"] for run in second["results"]] == [made[2], made[1]]
    started(api, world)  # a page does not shift
    back = api.client.get(second["previous"], headers=api.headers).json()
    assert back["results"] == first["results"]
    last = api.client.get(second["next"], headers=api.headers).json()
    assert ([run["id"] for run in last["results"]], last["next"]) == ([made[0]], None)


def test_a_list_can_be_turned_around_page_by_page(api, world):
    made = [started(api, world)["id"] for _ in range(3)]

    first = api.get("runs/", limit=2, ordering="created_at").json()
    second = api.client.get(first["next"], headers=api.headers).json()
    assert [run["id"] for run in (*first["results"], *second["results"])] == made
    assert problem(api.get("runs/", ordering="goal")) == (400, "BAD_QUERY")
    assert [r["id"] for r in api.get("projects/", ordering="-created_at").json()["results"]] == [
        project["id"] for project in reversed(api.get("projects/").json()["results"])
    ]


def test_runs_can_be_narrowed_down(api, ask, world):
    top = tree_of(ask)
    child = Run.objects.get(parent_run=top)
    keyed = started(api, world, session_key="s1")["id"]

    def found(**query):
        return {run["id"] for run in api.get("runs/", **query).json()["results"]}

    assert found(status="completed") == {top.pk, child.pk}
    assert found(status=["completed", "pending"]) == {top.pk, child.pk, keyed}
    assert found(kind="group") == found(parent=top.pk) == {child.pk}
    assert found(root=top.pk) == {top.pk, child.pk}
    assert found(session_key="s1") == {keyed}
    assert found(project=world.project.slug) == found(project=world.project.id) == {top.pk, child.pk, keyed}
    assert found(project="none") == set()
    assert found(user="mia") == {top.pk, child.pk, keyed} and found(user="other") == set()
    made = Run.objects.get(pk=keyed).created_at.isoformat()
    assert found(created_after=made) == {keyed}
    assert found(created_before=made) == {top.pk, child.pk}
    for time in ("yesterday", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"):
        assert problem(api.get("runs/", created_after=time))[0] == 400, time
        assert problem(api.get("approvals/decisions/", since=time))[0] == 400, time
    assert found(created_after="2000-01-01T00:00:00-20:00") == {top.pk, child.pk, keyed}


def test_events_say_what_the_table_of_their_types_says(api, ask, world):
    tree_of(ask)
    assert set(FORMS) == set(EventType)
    for event in RunEvent.objects.all():
        assert event.payload.keys() - ALWAYS.keys() <= FORMS[EventType(event.type)].fields.keys(), event.type


def test_a_tree_holds_all_below_a_run(api, ask, world):
    top = tree_of(ask)
    child = Run.objects.get(parent_run=top)

    tree = api.get(f"runs/{top.pk}/tree/").json()
    assert (tree["id"], tree["output"]) == (top.pk, "They charge 5.")
    assert [(node["id"], node["group"], node["children"]) for node in tree["children"]] == [
        (child.pk, world.group.id, [])
    ]
    assert api.get(f"runs/{child.pk}/tree/").json()["id"] == child.pk
    assert [run["id"] for run in api.get(f"runs/{top.pk}/children/").json()["results"]] == [child.pk]


def test_events_are_read_from_where_one_left_off(api, ask):
    run = ask(in_order(say("Done.")))
    logged = list(RunEvent.objects.filter(run=run).order_by("seq"))

    first = api.get(f"runs/{run.pk}/events/", limit=3).json()
    assert [event["seq"] for event in first["results"]] == [1, 2, 3]
    rest = api.client.get(first["next"], headers=api.headers).json()
    assert [event["type"] for event in rest["results"]] == [event.type for event in logged[3:]]
    assert rest["results"][-1]["payload"]["output"] == "Done."
    assert (rest["next"], rest["results"][-1]["digest"]) == (None, logged[-1].digest)
    assert api.get(f"runs/{run.pk}/events/", after=99).json() == {"results": [], "next": None}


@pytest.mark.parametrize("after", ["-1", "x", "1.5", str(2**31), "9" * 30])
def test_events_start_at_a_number(api, ask, after):
    run = ask(in_order(say("Done.")))

    assert problem(api.get(f"runs/{run.pk}/events/", after=after)) == (400, "BAD_QUERY")


def test_a_run_that_asks_says_what_it_waits_for(api, ask):
    run = ask(in_order(QUESTION, say("In 2026.")))

    shown = api.get(f"runs/{run.pk}/").json()
    assert (shown["status"], shown["waiting_reason"]) == ("waiting", "input")
    assert [(wait["kind"], wait["correlation_key"]) for wait in shown["waits"]] == [("input", "input-4.0")]


def test_a_message_answers_the_question(api, ask):
    run = ask(in_order(QUESTION, say("In 2026.")))

    assert api.post(f"runs/{run.pk}/message/", {"content": "2026"}).json() == {
        "run": run.pk,
        "state": "delivered",
    }
    executor.run(run.pk)
    shown = api.get(f"runs/{run.pk}/").json()
    assert (shown["status"], shown["output"], shown["waits"]) == ("completed", "In 2026.", [])


def test_a_message_for_a_question_nobody_asked_names_the_open_ones(api, ask):
    run = ask(in_order(QUESTION))
    response = api.post(f"runs/{run.pk}/message/", {"content": "x", "correlation_key": "cap-approval-x"})

    assert problem(response) == (404, "NO_SUCH_WAIT")
    assert "input-4.0" in response.json()["detail"]


def test_a_message_sent_twice_under_one_key_is_heard_once(api, ask):
    run = ask(in_order(QUESTION))
    for _ in range(2):
        sent = api.post(f"runs/{run.pk}/message/", {"content": "2026"}, Idempotency_Key="m1")
        assert sent.json()["state"] == "delivered"

    assert RunEvent.objects.filter(run=run, payload__content="2026").count() == 1


def test_cancelling_takes_all_below_and_may_be_repeated(api, ask):
    run = ask(by_role(Personal_agent=[call(("escalate_to_group", {"goal": "x"}))], researcher=[QUESTION]))
    child = Run.objects.get(parent_run=run)
    assert child.status == "waiting"

    answers = [api.post(f"runs/{run.pk}/cancel/", {"reason": "Not needed."}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["status"] == "cancelled"
    assert answers[0].json()["error"]["message"] == "Cancelled by mia. Not needed."
    child.refresh_from_db()
    assert child.status == "cancelled"
    assert not Wait.objects.filter(resolved_at=None).exists()


def test_an_ended_run_takes_nothing_more(api, ask):
    run = ask(in_order(say("Done.")))

    assert problem(api.post(f"runs/{run.pk}/cancel/")) == (409, "RUN_ENDED")
    assert problem(api.post(f"runs/{run.pk}/message/", {"content": "x"})) == (409, "RUN_ENDED")
    assert problem(api.post(f"runs/{run.pk}/signal/", {"correlation_key": "k"})) == (409, "RUN_ENDED")


@pytest.mark.parametrize(
    ("verb", "body"),
    [("cancel", {}), ("message", {"content": "x"}), ("signal", {"correlation_key": "k"})],
)
def test_somebody_elses_run_may_be_seen_but_not_steered(other, ask, world, verb, body):
    run = ask(in_order(QUESTION))

    assert other.get(f"runs/{run.pk}/").status_code == 200
    assert problem(other.post(f"runs/{run.pk}/{verb}/", body)) == (403, "NOT_ENTITLED")
    permit(other.user, "cancel_run")
    assert other.post(f"runs/{run.pk}/{verb}/", body).status_code == 200


def test_tools_come_with_their_schemas(api, world):
    tools = {tool["name"]: tool for tool in api.get("tools/").json()["results"]}

    mail = tools["send_email"]
    assert (mail["risk_level"], mail["capabilities"]) == ("high", ["send_email"])
    assert mail["parameters"]["required"] == ["to", "subject", "body"]
    assert "decision" not in mail


def test_tools_of_a_run_come_with_what_policy_would_say(api, ask, world):
    world.membership.denied_tools = ["http_get"]
    world.membership.save()
    run = ask(in_order(QUESTION))

    tools = {tool["name"]: tool["decision"] for tool in api.get("tools/", run=run.pk).json()["results"]}
    assert tools["send_email"]["effect"] == "require_approval"
    assert tools["ask_user"]["effect"] == "allow"
    assert tools["http_get"]["effect"] == "deny"
    assert problem(api.get("tools/", run="run_none")) == (404, "NOT_FOUND")


def test_groups_and_roles_can_be_looked_up(api, world):
    group = api.get("groups/").json()["results"][0]

    assert (group["id"], group["project"]) == (world.group.id, world.project.id)
    assert [member["name"] for member in group["members"]] == ["researcher", "analyst", "lead"]
    assert [member["is_lead"] for member in group["members"]] == [False, False, True]
    assert api.get(f"groups/{group['id']}/").json() == group
    names = {role["name"] for role in api.get("roles/").json()["results"]}
    assert names >= {"researcher", "analyst", "lead"}


def test_where_a_goal_would_go_is_asked_without_starting_anything(api, world):
    body = {"project": world.project.slug, "goal": "Analyse the market of our competitors"}
    answer = api.post("groups/route/", body).json()

    assert answer["group"] == world.group.id
    assert answer["scores"][0]["matched"]
    assert not Run.objects.exists()


def test_a_model_never_runs_inside_a_request(api, world):
    Scripted.asked = []
    started(api, world)

    assert Scripted.asked == []
