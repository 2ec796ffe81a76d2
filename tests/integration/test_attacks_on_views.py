"""Ways to read what an agent keeps of its person by rearranging its view."""

import json

import pytest

from groups.models import AgentInstance
from memory.scope import Scope
from memory.write import memory_write
from tests.admin_world import drive, person, tenant
from tests.integration.api_client import Api, problem
from tests.scripted import by_role, call

pytestmark = pytest.mark.django_db

SECRET = "allergic to walnuts"


@pytest.fixture
def made():
    return tenant()


@pytest.fixture
def run(made):
    """A run at work whose agent has looked up its person's memory, and keeps a preference of theirs."""
    own = Scope(made.organization.pk, user_id=made.user.pk, project_id=made.project.pk)
    memory_write(f"{SECRET}. " + "Much about the office and its windows. " * 200, own, type="episodic")
    replies = [
        call(("memory_search", {"query": "office windows walnuts"})),
        call(("context_find", {"query": "memory_search"})),
        call(("ask_user", {"question": "Which office?"})),
    ]
    AgentInstance.objects.filter(pk=made.run.agent_instance_id).update(preferences={"food": SECRET})
    return drive(made, "What do I like in an office?", by_role(Personal_agent=replies))


@pytest.fixture
def colleague(made):
    """Somebody who may steer everybody's runs."""
    return Api(person(made, "lou", "runs.view_run", "runs.cancel_run"), made.organization)


def operate(api, run, operation, **arguments):
    return api.post(f"runs/{run.pk}/context/", {"operation": operation, "arguments": arguments})


def pages(api, run):
    """Every page of the view, after what was folded has been opened."""
    for _ in range(4):
        folded = [page["index"] for page in seen(api, run) if page["folded"]]
        for index in folded:
            operate(api, run, "expandDetails", index=index)
    return seen(api, run)


def seen(api, run):
    found = [segment["page"] for segment in api.get(f"runs/{run.pk}/context/").json()["segments"]]
    for page in found:
        found += page["pages"]
    return found


def private(made, run):
    """The indexes of the pages in which the person reads of walnuts."""
    own = Api(made.user, made.organization)
    return [page["index"] for page in pages(own, run) if "walnuts" in json.dumps(page["detail"])]


def parents(made, run):
    """The lists that they stand in."""
    own = Api(made.user, made.organization)
    inside = {page["index"]: one["index"] for one in pages(own, run) for page in one["pages"]}
    above = {inside[index] for index in private(made, run)}
    return sorted(index for index in above if not index.endswith("-0"))


def shown(api, run):
    return api.get(f"runs/{run.pk}/context/").content.decode()


def test_the_person_has_such_pages(made, run):
    assert {index.partition("-")[0] for index in private(made, run)} >= {"usr", "tool"}


@pytest.mark.parametrize("target", ["task-0", "tool-0", "usr-0"])
def test_a_colleague_moves_no_page_to_where_they_could_read_it(made, run, colleague, target):
    operate(colleague, run, "movePage", index=parents(made, run)[0], parent=target)
    for index in private(made, run):
        operate(colleague, run, "movePage", index=index, parent=target)
    pages(colleague, run)
    assert "walnuts" not in shown(colleague, run)


def test_nor_gives_one_another_name(made, run, colleague):
    for index in private(made, run):
        operate(colleague, run, "updatePage", index=index, name="Harmless")
    for index in parents(made, run):
        operate(colleague, run, "updatePage", index=index, name="Harmless")
    pages(colleague, run)
    assert "walnuts" not in shown(colleague, run)


def test_nor_puts_a_list_around_them(made, run, colleague):
    indexes = private(made, run)
    for children in (indexes, parents(made, run)):  # the pages, or the lists they stand in
        answer = operate(
            colleague, run, "createContentsPage", parent="task-0", name="Mine", children=children
        )
        assert problem(answer) == (403, "PERMISSION_DENIED")
    pages(colleague, run)
    assert "walnuts" not in shown(colleague, run)
