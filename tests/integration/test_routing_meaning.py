"""Which group a goal goes to, where a model embeds: by words and meaning."""

import pytest
from django.db import transaction

from common.db import rows
from groups import routing
from groups.routing import learn, rank, select_group
from memory.embeddings import filling, questions, texts
from memory.models import TextVector
from memory.write import memory_write
from tests import embedding_server
from tests.factories import GroupFactory, MemberFactory
from tests.memory_world import Place, place
from tests.model_server import Answer

pytestmark = pytest.mark.django_db

vector_of = questions.vector_of


@pytest.fixture
def here() -> Place:
    routing._routers.clear()
    yield place("here")
    routing._routers.clear()


@pytest.fixture
def server(settings, monkeypatch):
    """A model that knows a few matters; the test's own transaction counts as none."""
    monkeypatch.setattr(questions, "vector_of", lambda question, *_: vector_of(question, True))
    with embedding_server.embedding(settings, monkeypatch) as server:
        yield server


@pytest.fixture
def groups(here):
    made = {}
    for name, description in (("Post", "letters"), ("Fleet", "our automobile"), ("People", "vacation")):
        made[name] = GroupFactory(project=here.project, name=name, description=description)
        MemberFactory(group=made[name], role__name=f"clerk of {name}")
    return made


def first(here: Place, goal: str) -> str:
    routing._routers.clear()
    return select_group(goal, here.project.pk)[0].name


def embed_everything(here: Place) -> int:
    memory_write("something", here.project_wide, type="archival")
    filling.fill()  # the index, without which no question is embedded
    return texts.fill(routing.texts())


def test_a_goal_finds_its_group_without_a_common_word(here, groups, server):
    assert first(here, "轿车坏了") != "Fleet"
    assert embed_everything(here) == len(set(routing.texts()))
    questions.forget()
    assert first(here, "轿车坏了") == "Fleet"
    assert first(here, "When is the next holiday?") == "People"


def test_each_text_is_embedded_once_and_forgotten_with_its_group(here, groups, server):
    embed_everything(here)
    asked = len(server.received)
    assert texts.fill(routing.texts()) == 0
    assert len(server.received) == asked
    kept = TextVector.objects.count()
    groups["Post"].delete()
    texts.fill(routing.texts())
    assert TextVector.objects.count() == kept - 1


def test_routing_waits_for_no_model_inside_a_transaction(here, groups, server, monkeypatch):
    embed_everything(here)
    questions.forget()
    monkeypatch.setattr(questions, "vector_of", vector_of)
    asked = len(server.received)
    with transaction.atomic():
        assert rank("轿车坏了", here.project.pk)
    assert len(server.received) == asked


def test_a_model_that_fails_leaves_routing_to_the_words(here, groups, server):
    embed_everything(here)
    questions.forget()
    server.script[0] = Answer({"error": "out of order"}, status=500)
    assert first(here, "letters for our automobile of letters") == "Post"


def test_what_a_person_took_away_scores_nothing_by_meaning_either(here, groups, server):
    embed_everything(here)
    goal = "轿车坏了"
    learn(here.organization.pk, groups["Fleet"].pk, goal, by=here.agent.user, fits=False)
    learn(here.organization.pk, groups["Post"].pk, goal, by=here.agent.user)
    texts.fill(routing.texts())
    found = {ranked.group.name: ranked.score for ranked in rank(goal, here.project.pk)}
    assert found["Fleet"] == 0
    assert max(found, key=found.get) == "Post"


def test_no_vector_is_read_where_no_model_is_set(here, groups, settings):
    assert settings.EMBEDDING_MODEL == ""
    assert texts.fill(routing.texts()) == 0
    assert first(here, "letters") == "Post"
    assert rows("SELECT count(*) FROM memory_textvector") == [(0,)]
