"""Several at once, each on a connection of its own: nothing is counted twice, lost or joined in a circle."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from common.db import row, rows
from memory import curate, statistics
from memory.deposit import GroupResult, deposit
from memory.duplicates import join_duplicates
from memory.models import DepartedTerms, Memory, PendingMemory, ScopeSize, TermCount
from memory.search import memory_search_pa
from memory.statistics import merge_all_deltas, merge_deltas
from memory.write import memory_write
from tests.at_once import BLOCKED
from tests.memory_world import Place, place

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def here() -> Place:
    return place("here")


@pytest.fixture
def aside():
    """Run something in a thread, on a connection of its own; result() brings what it made or raised."""
    with ThreadPoolExecutor(8) as pool:

        def run(work: Callable[[], object]) -> Future:
            def alone():
                try:
                    return work()
                finally:
                    connection.close()

            return pool.submit(alone)

        yield run


def until_somebody_waits() -> None:
    """Return when a statement waits for a lock."""
    for _ in range(500):
        if row(BLOCKED)[0]:
            return
        threading.Event().wait(0.01)
    raise AssertionError("nobody waits for a lock")


def deposited(here: Place, run: str, *decisions: str) -> list[str]:
    written = deposit(
        GroupResult(run, here.organization.id, here.project.id, here.group.id, decisions=decisions)
    )
    return list(written)


def counted_by_hand() -> tuple[dict, dict]:
    """What the counts must be: from the memories themselves."""
    terms = rows(
        "SELECT scope_key, lexeme, count(*) FROM memory_memory CROSS JOIN unnest(search_vector)"
        " WHERE status = 'active' GROUP BY 1, 2"
    )
    sizes = rows(
        "SELECT scope_key, count(*), sum(length) FROM memory_memory WHERE status = 'active' GROUP BY 1"
    )
    return {(key, term): count for key, term, count in terms}, {key: rest for key, *rest in sizes}


def counts() -> tuple[dict, dict]:
    terms = TermCount.objects.filter(memories__gt=0).values_list("scope_key", "term", "memories")
    sizes = ScopeSize.objects.filter(memories__gt=0).values_list("scope_key", "memories", "terms")
    return {(key, term): count for key, term, count in terms}, {key: rest for key, *rest in sizes}


def assert_counted_exactly() -> None:
    merge_all_deltas()
    assert not PendingMemory.objects.exists()
    assert not DepartedTerms.objects.exists()
    assert counts() == counted_by_hand()


def test_edits_retractions_and_deletions_are_taken_off_the_counts(here):
    memories = [memory_write(f"report {number}", here.project_wide, type="archival") for number in range(6)]
    merge_all_deltas()
    curate.edit(memories[0].id, None, content="a journal instead")
    curate.retract(memories[1].id, None)
    curate.restore(curate.retract(memories[2].id, None).id, None)
    curate.supersede(memories[3].id, "a newer report", None)
    memories[4].delete()
    memory_write("report uncounted", here.project_wide, type="archival").delete()
    curate.edit(memories[5].id, None, importance=0.9)
    assert_counted_exactly()
    assert ScopeSize.objects.get().memories == 4
    assert TermCount.objects.get(term="journal").memories == 1


def test_deposits_do_not_wait_for_the_counting_and_none_is_lost(here, aside):
    deposited(here, "run_0", "the report of May")
    with transaction.atomic():
        merge_deltas(Memory.objects.get(type="archival").scope_key)  # counted, not committed
        late = aside(lambda: deposited(here, "run_1", "the report of June")).result(20)
    assert len(late) == 1
    assert_counted_exactly()


def test_many_deposits_edits_and_countings_at_once_count_exactly(here, aside):
    first = deposited(here, "run_0", *(f"report number {number}" for number in range(10)))
    barrier = threading.Barrier(6)

    def deposits(name):
        barrier.wait()
        for number in range(10):
            deposited(here, f"run_{name}_{number}", f"the {name} report {number}")

    def edits():
        barrier.wait()
        for memory_id in first:
            curate.edit(memory_id, None, content=f"rewritten {memory_id}")
            curate.retract(memory_id, None)
            curate.restore(memory_id, None)

    def folds():
        barrier.wait()
        for _ in range(20):
            merge_all_deltas()

    work = [aside(lambda: deposits("first")), aside(lambda: deposits("second")), aside(edits)]
    work += [aside(folds), aside(folds), aside(folds)]
    for each in work:
        each.result(60)
    assert Memory.objects.filter(type="archival").count() == 30
    assert_counted_exactly()


def test_two_countings_at_once_count_once(here, aside):
    deposited(here, "run_0", "the report of May")
    scope_key = Memory.objects.get(type="archival").scope_key
    with transaction.atomic():
        assert merge_deltas(scope_key) == 1
        assert aside(lambda: merge_deltas(scope_key)).result(20) == 0
    assert_counted_exactly()


def test_an_edit_waits_for_the_counting_and_is_counted_as_edited(here, aside):
    (memory_id,) = deposited(here, "run_0", "the report of May")
    scope_key = Memory.objects.get(id=memory_id).scope_key
    with transaction.atomic():
        merge_deltas(scope_key)
        edited = aside(lambda: curate.edit(memory_id, None, content="the journal"))
        until_somebody_waits()
    edited.result(20)
    assert_counted_exactly()
    assert TermCount.objects.get(scope_key=scope_key, term="journal").memories == 1
    assert TermCount.objects.get(scope_key=scope_key, term="report").memories == 0


def test_the_counting_leaves_what_is_being_edited_for_later(here, aside):
    (memory_id,) = deposited(here, "run_0", "the report of May")
    scope_key = Memory.objects.get(id=memory_id).scope_key
    with transaction.atomic():
        curate.edit(memory_id, None, content="the journal")
        assert aside(lambda: merge_deltas(scope_key)).result(20) == 0
    assert_counted_exactly()


def test_two_joins_in_one_project_at_once_keep_one_memory(here, aside):
    ids = [deposited(here, f"run_{number}", "The launch is on the third of May")[0] for number in range(6)]
    barrier = threading.Barrier(len(ids))

    def join(memory_id):
        barrier.wait()
        return join_duplicates([memory_id])

    joined = [pair for each in [aside(lambda id=id: join(id)) for id in ids] for pair in each.result(60)]
    (kept,) = Memory.objects.filter(type="archival", status="active")
    assert kept.id == min(ids)
    assert sorted(late for late, _ in joined) == sorted(ids[1:])
    assert {entry["source_run_id"] for entry in kept.sources} == {f"run_{n}" for n in range(1, 6)}
    assert_counted_exactly()


def test_a_join_waits_for_the_other_and_sees_what_it_did(here, aside):
    first, second, third = (
        deposited(here, f"run_{number}", "The launch is on the third of May")[0] for number in range(3)
    )
    with transaction.atomic():
        assert join_duplicates([second]) == [(second, first)]
        late = aside(lambda: join_duplicates([third]))
        until_somebody_waits()
    assert late.result(20) == [(third, first)]
    assert {entry["memory_id"] for entry in Memory.objects.get(id=first).sources} == {second, third}


def test_a_deposit_during_an_edit_of_the_same_project_waits_for_nobody(here, aside):
    (known,) = deposited(here, "run_0", "the report of May")
    with transaction.atomic():
        curate.edit(known, None, content="the journal of May")
        (new,) = aside(lambda: deposited(here, "run_1", "the report of June")).result(20)
    found = {hit.id: hit.content for hit in memory_search_pa("May June", here.personal)}
    assert found == {known: "the journal of May", new: "the report of June"}
    assert_counted_exactly()


def test_the_same_runs_deposit_twice_at_once_is_there_once(here, aside):
    barrier = threading.Barrier(4)

    def again():
        barrier.wait()
        return deposited(here, "run_0", "the report of May")

    for each in [aside(again) for _ in range(4)]:
        each.result(30)
    assert Memory.objects.filter(type="archival").count() == 1
    assert Memory.objects.filter(type="episodic").count() == 1
    assert_counted_exactly()
    assert statistics.merge_all_deltas() == 0
