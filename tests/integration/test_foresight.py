"""A step's transaction waits for no model: what it searches for is embedded beforehand."""

import pytest

from memory.embeddings import filling
from memory.scope import Scope
from memory.write import memory_write
from runs.models import ToolCall
from tests.acting import request_call
from tests.embedding_server import embedding
from tests.scripted import Scripted, call, in_order, say

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "The automobile is blue"


@pytest.fixture
def server(world, settings, monkeypatch):
    with embedding(settings, monkeypatch) as server:
        scope = Scope(world.organization.pk, project_id=world.project.pk)
        memory_write(FACT, scope, type="archival")
        filling.fill()
        server.received.clear()
        yield server


def asked(server):
    return [text for each in server.received for text in each.body["input"]]


def test_a_runs_goal_and_its_searches_find_by_meaning(ask, server):
    search = call(("memory_search", {"query": "轿车"}))
    run = ask(in_order(search, say("It is blue.")), goal="Which car is ours?")
    assert run.status == "completed"
    assert FACT in Scripted.asked[0][0][0].content
    assert [hit["content"] for hit in ToolCall.objects.get().result["results"]] == [FACT]
    assert asked(server) == ["Which car is ours?", "轿车"]


def test_a_search_of_an_outside_agent_finds_by_meaning(ask, server):
    run = ask(None, driver="external", drive=False)
    request_call(run.pk, "c1", "memory_search", {"query": "vehicle"})
    assert [hit["content"] for hit in ToolCall.objects.get().result["results"]] == [FACT]
    assert asked(server) == ["vehicle"]
