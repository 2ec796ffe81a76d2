"""No search finds what its scope does not name: random worlds against a search that looks at every row."""

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.embeddings import store
from memory.embeddings.models import EmbeddingModel
from memory.embeddings.questions import Asked
from memory.models import Memory
from memory.scope import Scope
from memory.search import memory_search, memory_search_pa, memory_search_tiered
from tests.memory_world import place

pytestmark = pytest.mark.django_db

WORDS = ("report", "reports 报告", "报告", "竞品报告 report")


@pytest.fixture
def world():
    """Two organizations with everything twice, so that each column can be right or wrong alone."""
    places = [place("here"), place("there")]
    for number, here in enumerate(places):
        there = places[1 - number]
        here.users = [None, here.agent.user_id, there.agent.user_id]
        here.projects = [None, here.project.id, here.other_project.id]
        here.groups = [None, here.group.id, here.other_group.id]
        here.agents = [None, here.agent.id, here.expert.id]
    return places


index = st.integers(0, 2)
scopes = st.tuples(st.integers(0, 1), index, index, index, index)
memories = st.lists(
    st.tuples(
        scopes,
        st.sampled_from(["core", "episodic", "archival", "preference"]),
        st.sampled_from(WORDS),
        st.sampled_from(["active", "active", "active", "retracted", "pending_review", "superseded"]),
    ),
    max_size=24,
)


def scope_of(world, drawn) -> Scope:
    here = world[drawn[0]]
    return Scope(
        here.organization.id,
        here.users[drawn[1]],
        here.projects[drawn[2]],
        here.groups[drawn[3]],
        here.agents[drawn[4]],
    )


def legal(scope: Scope, kind: str) -> bool:
    if scope.group_id and (scope.user_id or scope.agent_instance_id or not scope.project_id):
        return False
    if kind == "archival":
        return not (scope.user_id or scope.group_id or scope.agent_instance_id)
    if kind == "preference":
        return bool(scope.user_id and scope.agent_instance_id and not scope.project_id and not scope.group_id)
    return True


def fields(memory: Memory) -> tuple:
    return (memory.user_id, memory.project_id, memory.group_id, memory.agent_instance_id)


def pa_tier(memory: Memory, asked: Scope) -> int | None:
    """The tiers as 000, 2.1 and rulings 20 to 22 have them, column by column."""
    preference = memory.metadata.get("pa_preference") is True
    if memory.type == "core" and preference and asked.user_id and asked.agent_instance_id:
        return 1 if fields(memory) == (asked.user_id, None, None, asked.agent_instance_id) else None
    if memory.type == "archival":
        return (
            2 if fields(memory) in ((None, None, None, None), (None, asked.project_id, None, None)) else None
        )
    if memory.type == "episodic" and asked.user_id and asked.project_id:
        return 3 if fields(memory) == (asked.user_id, asked.project_id, None, None) else None
    return None


def group_tier(memory: Memory, asked: Scope) -> int | None:
    project = asked.project_id
    if memory.metadata.get("pa_preference") is True:
        return None
    if memory.type == "archival":
        return 4 if fields(memory) in ((None, None, None, None), (None, project, None, None)) else None
    if project is None:
        return None
    if asked.group_id and fields(memory) == (None, project, asked.group_id, None):
        return 1
    if memory.type == "core" and fields(memory) == (None, project, None, None):
        return 2
    if memory.type == "episodic" and asked.agent_instance_id:
        return 3 if fields(memory) == (None, project, None, asked.agent_instance_id) else None
    return None


def flat_tier(memory: Memory, asked: Scope) -> int | None:
    wanted = (asked.user_id, asked.project_id, asked.group_id, asked.agent_instance_id)
    return 1 if fields(memory) == wanted else None


def brute_force(asked: Scope, tier) -> set[tuple[str, int]]:
    found = set()
    for memory in Memory.objects.all():
        number = tier(memory, asked)
        if memory.organization_id == asked.organization_id and memory.status == "active" and number:
            found.add((memory.id, number))
    return found


def write(world, written) -> None:
    """Fewer memories than the smallest quota at limit 50 can cut off."""
    Memory.objects.all().delete()
    legally = [each for each in written if legal(scope_of(world, each[0]), each[1])]
    for drawn, kind, content, status in legally[:9]:
        scope = scope_of(world, drawn)
        Memory.objects.create(
            organization_id=scope.organization_id,
            user_id=scope.user_id,
            project_id=scope.project_id,
            group_id=scope.group_id,
            agent_instance_id=scope.agent_instance_id,
            type="core" if kind == "preference" else kind,
            content=f"{content} report 报告",
            metadata={"pa_preference": True} if kind == "preference" else {},
            status=status,
        )


def assert_finds_what_it_names(scope: Scope, question: str) -> None:
    for search, tier in (
        (memory_search_pa, pa_tier),
        (memory_search_tiered, group_tier),
        (memory_search, flat_tier),
    ):
        hits = search(question, scope, limit=50)
        assert {(hit.id, hit.tier) for hit in hits} == brute_force(scope, tier)
        assert [hit.tier for hit in hits] == sorted(hit.tier for hit in hits)


def examples(count: int):
    return settings(
        max_examples=count, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )


@examples(120)
@given(written=memories, asked=scopes, question=st.sampled_from(WORDS))
def test_a_search_finds_exactly_what_its_scope_names(world, written, asked, question):
    write(world, written)
    assert_finds_what_it_names(scope_of(world, asked), question)


@pytest.fixture
def by_meaning(world, monkeypatch):
    """Every question is about the same as every memory, and has no word of any."""
    model = EmbeddingModel("compatible:tiny", "tiny", "http://127.0.0.1:1")
    connection.check_constraints()  # an index cannot be made while they wait
    store.prepare(model, 2)
    monkeypatch.setattr("memory.search.vector_of", lambda question: Asked(model.name, "[1,0.5]", 2))
    return model


@examples(40)
@given(written=memories, asked=scopes, exact=st.sampled_from([-1, 5_000]))
def test_so_does_a_search_by_meaning_alone(world, by_meaning, written, asked, exact):
    write(world, written)
    texts = [store.Text(memory.id, memory.content) for memory in Memory.objects.all()]
    store.write(by_meaning, texts, [[1.0, 0.25]] * len(texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memory.search.EXACT", exact)  # -1: the index is asked first for every scope
        patch.setattr("memory.search.SHARE", 10**6)
        assert_finds_what_it_names(scope_of(world, asked), "owl")
