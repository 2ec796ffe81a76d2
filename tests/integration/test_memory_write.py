"""What may be written, and what the database refuses."""

import pytest
from django.db import IntegrityError, transaction

from memory.errors import MemoryRefused
from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from tests.memory_world import Place, place

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> Place:
    return place("here")


def illegal(here: Place):
    o, u, p = here.organization.id, here.agent.user_id, here.project.id
    g, a = here.group.id, here.agent.id
    preference = {"pa_preference": True}
    return [
        ("archival", Scope(o, user_id=u), {}),
        ("archival", Scope(o, project_id=p, group_id=g), {}),
        ("archival", Scope(o, project_id=p, agent_instance_id=a), {}),
        ("core", Scope(o, group_id=g), {}),
        ("episodic", Scope(o, project_id=p, group_id=g, user_id=u), {}),
        ("episodic", Scope(o, project_id=p, group_id=g, agent_instance_id=a), {}),
        ("core", Scope(o, user_id=u), preference),
        ("core", Scope(o, user_id=u, agent_instance_id=a, project_id=p), preference),
        ("episodic", Scope(o, user_id=u, agent_instance_id=a), preference),
    ]


def test_an_illegal_scope_is_refused_in_words_and_by_the_database(here):
    for type, scope, metadata in illegal(here):
        with pytest.raises(MemoryRefused) as refused:
            memory_write("x", scope, type=type, metadata=metadata)
        assert refused.value.code == "illegal_scope"
        with pytest.raises(IntegrityError), transaction.atomic():
            Memory.objects.create(
                organization_id=scope.organization_id,
                user_id=scope.user_id,
                project_id=scope.project_id,
                group_id=scope.group_id,
                agent_instance_id=scope.agent_instance_id,
                type=type,
                content="x",
                metadata=metadata,
            )


def test_another_organizations_project_is_refused_by_the_database(here):
    there = place("there")
    with pytest.raises(IntegrityError), transaction.atomic():
        memory_write("x", Scope(here.organization.id, project_id=there.project.id), type="archival")
        from django.db import connection

        connection.check_constraints()


@pytest.mark.parametrize("key", ["source_run_id", "deposited_at", "source", "original_memory_id", "sources"])
def test_a_client_cannot_set_the_lineage(here, key):
    with pytest.raises(MemoryRefused, match=f"only the platform sets metadata.{key}"):
        memory_write("x", here.project_wide, type="core", metadata={key: "forged"})


def test_organization_and_source_run_never_change(here):
    there = place("there")
    memory = memory_write("x", here.organization_wide, type="archival", source_run_id="run_1")
    for change in (
        {"organization_id": there.organization.id},
        {"source_run_id": "run_2"},
        {"original": "output"},
        {"metadata": {"deposited_at": "yesterday"}},
    ):
        with pytest.raises(IntegrityError, match="never change"), transaction.atomic():
            Memory.objects.filter(id=memory.id).update(**change)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"content": " "}, "invalid_content"),
        ({"content": "a\x00"}, "invalid_content"),
        ({"content": "a" * 200_001}, "invalid_content"),
        ({"content": None}, "invalid_content"),
        ({"type": "opinion"}, "invalid_type"),
        ({"metadata": {"n": float("nan")}}, "invalid_metadata"),
        ({"metadata": [1]}, "invalid_metadata"),
        ({"importance": 1.1}, "invalid_importance"),
        ({"importance": "high"}, "invalid_importance"),
        ({"importance": float("nan")}, "invalid_importance"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_code(here, arguments, code):
    with pytest.raises(MemoryRefused) as refused:
        memory_write(**{"content": "x", "scope": here.project_wide, "type": "core"} | arguments)
    assert refused.value.code == code
