"""How much one caller gets of the API, and when an organization's queue takes no more."""

from copy import copy
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from common.api import throttles
from common.api.throttles import network_of
from common.db import execute, row
from common.ids import new_id
from runs.actions.start import CannotStart
from runs.execution import executor
from runs.models import Run
from tests.acting import start
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.api_client import Api, problem
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


def later(seconds):
    """Move every allowance back, as if so much time had passed."""
    execute("UPDATE groups_throttle SET full_at = full_at - %s", [timedelta(seconds=seconds)])


def retry_after(response):
    return int(response.headers["Retry-After"])


@override_settings(API_PER_MINUTE=3)
def test_a_token_has_an_allowance_that_refills_steadily(api):
    assert [api.get("projects/").status_code for _ in range(3)] == [200] * 3
    refused = api.get("projects/")
    assert problem(refused) == (429, "TOO_MANY_REQUESTS")
    assert 1 <= retry_after(refused) <= 20
    assert refused.headers["RateLimit-Policy"] == '"default";q=3;w=60'
    assert refused.headers["RateLimit"] == f'"default";r=0;t={retry_after(refused)}'

    later(20)
    assert api.get("projects/").status_code == 200
    assert api.get("projects/").status_code == 429


@override_settings(API_PER_MINUTE=1)
def test_a_refusal_takes_nothing_of_the_allowance(api):
    api.get("projects/")
    whole_again = row("SELECT full_at FROM groups_throttle")

    assert api.get("projects/").status_code == 429
    assert row("SELECT full_at FROM groups_throttle") == whole_again


@override_settings(API_PER_MINUTE=1)
def test_each_token_has_its_own_and_a_session_that_of_its_person(api, world):
    api.get("projects/")
    other = Api(world.user, world.organization)
    browser = Client()
    browser.force_login(world.user)

    assert [other.get("projects/").status_code, other.get("projects/").status_code] == [200, 429]
    assert [browser.get("/api/projects/").status_code for _ in range(2)] == [200, 429]


@override_settings(API_PER_MINUTE=1)
def test_more_tokens_of_a_person_give_them_no_more_without_end(world):
    tokens = [Api(world.user, world.organization) for _ in range(5)]
    asked = [token.get("projects/") for token in tokens]
    assert [answer.status_code for answer in asked] == [200, 200, 200, 200, 429]
    assert 1 <= retry_after(asked[-1]) <= 15
    colleague = Api(MembershipFactory(organization=world.organization).user, world.organization)
    assert colleague.get("projects/").status_code == 200


@override_settings(API_PER_MINUTE_UNKNOWN=2)
@pytest.mark.parametrize(
    ("headers", "status"), [({}, 401), ({"Authorization": "Token dpt_guess"}, 401)], ids=["nobody", "a guess"]
)
def test_whoever_is_not_let_in_is_counted_by_address(client, headers, status):
    asked = [client.get("/api/runs/", headers=headers, REMOTE_ADDR="192.0.2.7") for _ in range(3)]
    elsewhere = client.get("/api/runs/", headers=headers, REMOTE_ADDR="192.0.2.8")

    assert [answer.status_code for answer in (*asked, elsewhere)] == [status, status, 429, status]
    assert problem(asked[2]) == (429, "TOO_MANY_REQUESTS")


@override_settings(API_PER_MINUTE_UNKNOWN=1)
def test_the_description_is_not_for_free_either(client):
    assert [client.get("/api/schema/").status_code for _ in range(2)] == [200, 429]


@override_settings(API_PER_MINUTE=2)
def test_what_is_refused_for_its_scope_counts(world):
    narrow = Api(world.user, world.organization, scopes=["runs:read"])

    assert [narrow.get("projects/").status_code for _ in range(3)] == [403, 403, 429]


@override_settings(API_PER_MINUTE=0, API_PER_MINUTE_UNKNOWN=0)
def test_a_deployment_may_leave_it_to_its_gateway(api, client):
    with CaptureQueriesContext(connection) as captured:
        assert api.get("projects/").status_code == 200
        assert client.get("/api/projects/").status_code == 401

    assert "groups_throttle" not in str(captured.captured_queries)


def test_it_costs_one_statement(api):
    api.get("projects/")
    with CaptureQueriesContext(connection) as captured:
        api.get("projects/")

    assert sum("groups_throttle" in query["sql"] for query in captured.captured_queries) == 1


def test_its_table_is_not_written_to_the_log_of_the_database():
    assert row("SELECT relpersistence FROM pg_class WHERE relname = 'groups_throttle'") == ("u",)


def test_allowances_that_are_whole_again_are_forgotten(api):
    api.get("projects/")
    assert throttles.forget() == 0
    later(3600)

    assert throttles.forget() == 2, "the token's and its person's"


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("unix:", "unix:"),
        (None, "None"),
    ],
)
def test_an_address_is_counted_as_one_customer_has_it(address, counted):
    assert network_of(address) == counted


# The organization's queue


def test_past_the_limit_of_its_queue_an_organization_starts_nothing(api, world):
    world.organization.queue_limit = 2
    world.organization.save()
    body = {"project": world.project.slug, "goal": "x"}
    assert [api.post("runs/", body).status_code for _ in range(2)] == [202, 202]

    refused = api.post("runs/", body, Idempotency_Key="k")
    assert problem(refused) == (429, "QUEUE_FULL")
    assert retry_after(refused) == 10
    assert Run.objects.count() == 2

    Run.objects.filter(pk=Run.objects.first().pk).update(status="running")
    assert api.post("runs/", body, Idempotency_Key="k").status_code == 202


@override_settings(QUEUE_LIMIT=1)
def test_another_organizations_queue_is_its_own(api, world):
    start(user=world.user, project=world.project, goal="x")
    project = ProjectFactory()
    stranger = MembershipFactory(organization=project.organization)

    assert Api(stranger.user, project.organization).post("runs/", {"project": project.pk, "goal": "x"})
    with pytest.raises(CannotStart, match="wait for a worker") as refused:
        start(user=world.user, project=world.project, goal="x")
    assert refused.value.code == "QUEUE_FULL"


@override_settings(QUEUE_LIMIT=1)
def test_what_runs_already_starts_its_children_all_the_same(ask, world):
    escalate = call(("escalate_to_group", {"goal": "x", "group_id": world.group.pk}))
    run = ask(in_order(escalate, *(say("DECISION: five") for _ in range(12))), drive=False)
    executor.run(run.pk)

    assert Run.objects.filter(parent_run=run).count() == 1


def test_the_count_of_the_queue_reads_its_own_index(world, ask):
    one = ask(in_order(say("done")))
    many = []  # where there are few, PostgreSQL reads by any index
    for _ in range(300):
        done = copy(one)
        done.pk = done.root_id = new_id("run")
        many.append(done)
    Run.objects.bulk_create(many)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_run")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN SELECT FROM runs_run WHERE organization_id = %s AND status = 'pending' LIMIT 1000",
            [world.organization.pk],
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "run_queued" in plan
