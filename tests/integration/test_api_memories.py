"""What is known, over HTTP."""

import pytest

from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.api_client import Api, permit, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


@pytest.fixture
def known(world):
    """Knowledge of the project, a task of mia's, and one of somebody else's."""
    organization, project = world.organization.pk, world.project.pk
    other = MembershipFactory(organization=world.organization).user
    memory_write("Rival A charges 5 euro", Scope(organization, project_id=project), type="archival")
    for user in (world.user, other):
        scope = Scope(organization, user_id=user.pk, project_id=project)
        memory_write(f"{user.username} asked what a rival charges", scope, type="episodic")
    return other


def test_a_member_sees_what_is_shared_and_their_own(api, known):
    found = api.get("memories/").json()["results"]

    assert {memory["user"] for memory in found} == {None, "mia"}
    assert {memory["type"] for memory in api.get("memories/", type="archival").json()["results"]} == {
        "archival"
    }
    theirs = Memory.objects.get(user=known)
    assert problem(api.get(f"memories/{theirs.pk}/")) == (404, "NOT_FOUND")


def test_a_search_goes_through_the_tiers_of_ones_own_agent(api, world, known):
    hits = api.get("memories/search/", query="what does the rival charge", project=world.project.slug).json()

    assert [(hit["tier"], hit["type"]) for hit in hits["results"]] == [(2, "archival"), (3, "episodic")]
    assert "mia" in hits["results"][1]["content"]


def test_a_search_as_a_group_leaves_what_is_personal_out(api, world, known):
    hits = api.get("memories/search/", query="what does the rival charge", group=world.group.pk).json()

    assert [hit["type"] for hit in hits["results"]] == ["archival"]


@pytest.mark.parametrize(
    "query", [{}, {"query": " "}, {"query": "x", "limit": "51"}, {"query": "x", "organization": "y"}]
)
def test_a_search_that_makes_no_sense_is_refused(api, query):
    assert problem(api.get("memories/search/", **query)) == (400, "BAD_QUERY")


def test_nobody_searches_where_they_are_not(api):
    foreign = ProjectFactory()

    assert problem(api.get("memories/search/", query="x", project=foreign.slug)) == (404, "NOT_FOUND")
    assert problem(api.get("memories/search/", query="x", group="grp_none")) == (404, "NOT_FOUND")


# Writing and curating


@pytest.fixture
def curator(world):
    return Api(permit(world.user, "curate_memory"), world.organization)


@pytest.fixture
def written(curator, world):
    return curator.post("memories/", {"content": "A charges 5.", "project": world.project.slug}).json()


def ids(api, query, **where):
    return [hit["id"] for hit in api.get("memories/search/", query=query, **where).json()["results"]]


def test_knowledge_is_written_once_and_found(curator, world):
    body = {"content": "Penguins whistle.", "importance": 0.9, "metadata": {"page": 4}}
    made = curator.post("memories/", body, Idempotency_Key="k")
    again = curator.post("memories/", body, Idempotency_Key="k")

    assert made.status_code == 201, made.content
    assert (again.json(), Memory.objects.count()) == (made.json(), 1)
    assert curator.client.get(made.headers["Location"], headers=curator.headers).json() == made.json()
    assert (made.json()["type"], made.json()["project"]) == ("archival", None)
    assert ids(curator, "whistle penguins") == [made.json()["id"]]


def test_a_preference_is_ones_own_and_takes_no_permission(api, ask):
    body = {"kind": "preference", "content": "Answers in German."}
    assert problem(api.post("memories/", body)) == (409, "NO_AGENT")

    ask(lambda messages, facts: None, drive=False)
    made = api.post("memories/", body).json()
    assert (made["type"], made["user"], made["metadata"]) == ("core", "mia", {"pa_preference": True})
    changed = api.client.patch(
        f"/api/memories/{made['id']}/", {"content": "In English."}, "application/json", headers=api.headers
    )
    assert changed.json()["content"] == "In English."
    assert api.post(f"memories/{made['id']}/retract/").json()["status"] == "retracted"


def test_nobody_curates_what_is_shared_without_the_permission(api, world, written):
    body = {"content": "x"}
    api = Api(MembershipFactory(organization=world.organization).user, world.organization)

    assert problem(api.post("memories/", body)) == (403, "NOT_ENTITLED")
    for verb, said in {"retract": {}, "promote": {}, "supersede": body, "merge": {"memories": []}}.items():
        refused = api.post(f"memories/{written['id']}/{verb}/", said)
        assert problem(refused)[0] in (403, 422), verb
    assert Memory.objects.get().status == "active"


def test_memories_go_through_their_states(curator, written, world):
    path = f"memories/{written['id']}/"
    assert curator.post(f"{path}retract/").json()["status"] == "retracted"
    assert ids(curator, "charges", project=world.project.slug) == []
    assert problem(curator.post(f"{path}promote/")) == (409, "wrong_state")
    assert curator.post(f"{path}restore/").json()["status"] == "active"

    promoted = curator.post(f"{path}promote/").json()
    assert (promoted["project"], curator.get(path).json()["superseded_by"]) == (None, promoted["id"])
    assert problem(curator.post(f"memories/{promoted['id']}/promote/")) == (409, "not_project_knowledge")
    replaced = curator.post(f"memories/{promoted['id']}/supersede/", {"content": "A charges 6."}).json()
    assert ids(curator, "charges") == [replaced["id"]]


def test_a_deposit_that_waits_for_review_is_approved(curator, written):
    Memory.objects.update(status="pending_review")

    assert curator.post(f"memories/{written['id']}/approve/").json()["status"] == "active"


def test_memories_are_merged_where_all_are_seen(curator, written, world):
    second = curator.post("memories/", {"content": "A asks 5.", "project": world.project.pk}).json()
    path = f"memories/{written['id']}/merge/"

    assert problem(curator.post(path, {"memories": ["mem_none"]})) == (422, "INVALID")
    assert problem(curator.post(path, {"memories": [written["id"]]})) == (422, "INVALID")
    merged = curator.post(path, {"memories": [second["id"]]}).json()
    assert [source["memory_id"] for source in merged["metadata"]["sources"]] == [second["id"]]


@pytest.mark.parametrize(
    "body",
    [{"content": " "}, {"content": "x", "metadata": {"source": "x"}}, {"content": "x", "importance": 2}],
)
def test_what_no_memory_may_hold_is_refused(curator, body):
    assert problem(curator.post("memories/", body)) == (422, "INVALID")
    assert not Memory.objects.exists()
