"""What people, and the platform, do with knowledge afterwards."""

from datetime import timedelta

import pytest
from django.utils import timezone

from memory import curate
from memory.deposit import GroupResult, deposit
from memory.duplicates import join_duplicates
from memory.errors import MemoryRefused
from memory.models import Memory, PendingMemory, ScopeSize, TermCount
from memory.search import memory_search_pa
from memory.statistics import merge_all_deltas
from memory.upkeep import upkeep
from memory.write import memory_write
from tests.acting import at_the_pages
from tests.embedding_server import embedding
from tests.factories import MembershipFactory
from tests.integration.api_client import permit
from tests.memory_world import Place, place
from tests.model_server import Answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> Place:
    return place("here")


@pytest.fixture
def curator(here):
    MembershipFactory(organization=here.organization, user=here.agent.user)
    return at_the_pages(permit(here.agent.user, "curate_memory"), here.organization.id)


def deposited(here: Place, run: str, *decisions: str, review: bool = False) -> list[Memory]:
    ids = deposit(
        GroupResult(
            run, here.organization.id, here.project.id, here.group.id, decisions=decisions, review=review
        )
    )
    return [Memory.objects.get(id=id) for id in ids]


def found(here: Place, question: str = "report") -> list[str]:
    return [hit.id for hit in memory_search_pa(question, here.personal)]


def test_an_approved_deposit_is_found(here, curator):
    (memory,) = deposited(here, "run_1", "the report", review=True)
    assert found(here) == []
    curate.approve(memory.id, curator)
    assert found(here) == [memory.id]
    with pytest.raises(MemoryRefused, match="active"):
        curate.approve(memory.id, curator)


def test_a_retracted_memory_is_not_found_until_it_is_restored(here, curator):
    (memory,) = deposited(here, "run_1", "the report")
    curate.retract(memory.id, curator)
    assert found(here) == []
    curate.restore(memory.id, curator)
    assert found(here) == [memory.id]
    assert [(revision.action, revision.by) for revision in memory.revisions.all()] == [
        ("restore", curator.user),
        ("retract", curator.user),
    ]


def test_an_edit_keeps_what_was_and_the_lineage(here, curator):
    (memory,) = deposited(here, "run_1", "the report")
    deposited_at = memory.metadata["deposited_at"]
    curate.edit(memory.id, curator, content="the register", metadata={"topic": "money"})
    memory.refresh_from_db()
    assert found(here) == []
    assert found(here, "register") == [memory.id]
    assert memory.metadata["topic"] == "money"
    assert memory.metadata["deposited_at"] == deposited_at
    assert memory.revisions.get().before["content"] == "the report"
    with pytest.raises(MemoryRefused, match="only the platform"):
        curate.edit(memory.id, curator, metadata={"deposited_at": "forged"})
    with pytest.raises(MemoryRefused, match="cannot be changed"):
        curate.edit(memory.id, curator, organization_id="org_other")


def test_superseding_keeps_the_old_one_as_history(here, curator):
    old = memory_write("report is due in May", here.project_wide, type="archival")
    new = curate.supersede(old.id, "report is due in June", curator)
    assert found(here) == [new.id]
    old.refresh_from_db()
    assert (old.status, old.superseded_by) == ("superseded", new)


def test_what_is_put_in_the_place_of_a_memory_says_where_that_came_from(here, curator):
    """What its run had read goes on being known, such as a password; the words are the curator's."""
    (memory,) = deposited(here, "run_1", "the report")
    new = curate.supersede(curate.supersede(memory.id, "a report", curator).id, "the news", curator)
    assert [one["source_run_id"] for one in new.sources] == [None, "run_1"]
    assert new.source_run_id is None


def test_promoted_knowledge_is_found_in_every_project_and_keeps_its_run(here, curator):
    (memory,) = deposited(here, "run_1", "the report")
    new = curate.promote(memory.id, curator)
    assert (new.scope, new.source_run_id) == (here.organization_wide, "run_1")
    assert new.metadata["deposited_at"] == memory.metadata["deposited_at"]
    assert found(here) == [new.id]
    with pytest.raises(MemoryRefused, match="only a project's"):
        curate.promote(new.id, curator)


def test_merged_memories_are_one_with_all_their_sources_until_one_is_restored(here, curator):
    (first,) = deposited(here, "run_1", "report one")
    (second,) = deposited(here, "run_2", "report two")
    curate.merge(first.id, [second.id], curator)
    assert found(here) == [first.id]
    first.refresh_from_db()
    assert [source["source_run_id"] for source in first.sources] == ["run_2"]
    assert set(Memory.objects.from_run("run_2").filter(type="archival")) == {first, second}
    curate.restore(second.id, curator)
    first.refresh_from_db()
    assert first.sources == []
    assert set(found(here)) == {first.id, second.id}


def test_only_active_memories_of_one_scope_are_merged(here, curator):
    one = memory_write("a", here.project_wide, type="archival")
    other = memory_write("b", here.organization_wide, type="archival")
    with pytest.raises(MemoryRefused, match="one scope"):
        curate.merge(one.id, [other.id], curator)
    with pytest.raises(MemoryRefused, match="two memories"):
        curate.merge(one.id, [], curator)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (
            "The launch of Atlas is planned for the third of May in Lisbon",
            "The launch of Atlas is planned for the third of May, in Lisbon.",
        ),
        ("竞品分析的结论是我们应当在五月进入市场", "競品分析的結論是我們應當在五月進入市場。"),
    ],
)
def test_what_a_second_run_finds_out_alike_joins_the_first(here, first, again):
    (kept,) = deposited(here, "run_1", first)
    (late,) = deposited(here, "run_2", again)
    assert join_duplicates([late.id]) == [(late.id, kept.id)]
    assert join_duplicates([late.id]) == []
    assert found(here, first) == [kept.id]
    assert set(Memory.objects.from_run("run_2").filter(type="archival")) == {kept, late}


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (
            "The launch of Atlas is planned for May 3 in Lisbon",
            "The launch of Atlas is planned for May 4 in Lisbon",
        ),
        ("We should enter the market in May", "We should not enter the market in May"),
        ("我们应当在五月进入市场", "我们不应当在五月进入市场"),
    ],
)
def test_another_number_or_a_negation_is_no_duplicate(here, first, again):
    deposited(here, "run_1", first)
    (late,) = deposited(here, "run_2", again)
    assert join_duplicates([late.id]) == []


def test_a_duplicate_joins_neither_its_own_run_nor_what_was_retracted(here, curator):
    (first,) = deposited(here, "run_1", "The launch is in May")
    (same_run,) = deposited(here, "run_1", "The launch is in May.")
    assert join_duplicates([same_run.id]) == []
    curate.retract(first.id, curator)
    curate.retract(same_run.id, curator)
    (late,) = deposited(here, "run_2", "The launch is in May")
    assert join_duplicates([late.id]) == []


def test_counting_changes_no_result_and_is_done_once(here):
    for number in range(5):
        memory_write(f"report {number}", here.project_wide, type="archival")
    before = [(hit.id, hit.score) for hit in memory_search_pa("report 3", here.personal)]
    assert merge_all_deltas() == PendingMemory.objects.count() + 5
    assert merge_all_deltas() == 0
    assert ScopeSize.objects.get().memories == 5
    assert TermCount.objects.get(term="report").memories == 5
    assert [(hit.id, hit.score) for hit in memory_search_pa("report 3", here.personal)] == before


def test_upkeep_removes_what_expired_over_a_week_ago(here):
    now = timezone.now()
    memory_write("old", here.history, type="episodic", expires_at=now - timedelta(days=8))
    late = memory_write("late", here.history, type="episodic", expires_at=now - timedelta(days=6))
    assert upkeep()["removed"] == 1
    assert Memory.objects.get() == late


def test_the_same_words_in_another_order_are_another_fact(here):
    deposited(here, "run_1", "The Argeș is a tributary of the Danube in Romania")
    (swapped,) = deposited(here, "run_2", "The Danube is a tributary of the Argeș in Romania")
    assert join_duplicates([swapped.id]) == []


def test_a_model_decides_where_words_leave_it_open(here, settings, monkeypatch):
    (kept,) = deposited(here, "run_1", "Each car is washed weekly")
    (added,) = deposited(here, "run_2", "Each company car is washed weekly")
    assert join_duplicates([added.id]) == []
    with embedding(settings, monkeypatch) as server:
        assert join_duplicates([added.id]) == [(added.id, kept.id)]
        assert server.received


@pytest.mark.parametrize("other", ["Each car and its price are washed weekly", "Each bus is washed weekly"])
def test_nor_does_a_model_join_what_it_finds_apart_or_what_replaces_a_word(
    here, settings, monkeypatch, other
):
    deposited(here, "run_1", "Each car is washed weekly")
    (late,) = deposited(here, "run_2", other)
    with embedding(settings, monkeypatch):
        assert join_duplicates([late.id]) == []


def test_without_an_answer_of_the_model_words_decide(here, settings, monkeypatch):
    (kept,) = deposited(here, "run_1", "Each car is washed weekly")
    (added,) = deposited(here, "run_2", "Each company car is washed weekly")
    (again,) = deposited(here, "run_3", "Each car is washed weekly.")
    with embedding(settings, monkeypatch) as server:
        server.script.extend([Answer({"error": "overloaded"}, status=503)] * 9)
        server.script.popleft()
        assert join_duplicates([added.id, again.id]) == [(again.id, kept.id)]


def test_a_deposit_that_denies_what_is_known_goes_to_a_curator(here):
    (known,) = (memory.id for memory in deposited(here, "run_1", "The export of Atlas contains invoices"))
    (denies,) = (
        memory.id for memory in deposited(here, "run_2", "The export of Atlas does not contain invoices")
    )

    assert join_duplicates([denies]) == []

    memory = Memory.objects.get(id=denies)
    assert (memory.status, memory.metadata["review_reason"]) == ("pending_review", "contradicts")
    assert memory.metadata["contradicts"] == [known]
    assert Memory.objects.get(id=known).status == "active"
    assert curate.approve(denies, None).status == "active"
