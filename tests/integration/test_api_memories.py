"""What is known, over HTTP."""

import pytest

from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.api_client import Api, problem

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
