"""What a group's run leaves behind."""

from dataclasses import replace

import pytest

from common.db import execute
from memory import curate
from memory.deposit import GroupResult, deposit, remember_outcome
from memory.models import Memory
from memory.search import memory_search_pa, memory_search_tiered
from memory.write import memory_write
from tests.memory_world import Place, place

pytestmark = pytest.mark.django_db

RUN = "run_00000000000000000000000001"


@pytest.fixture
def here() -> Place:
    return place("here")


def result(here: Place, **fields) -> GroupResult:
    return GroupResult(RUN, here.organization.id, here.project.id, here.group.id, **fields)


def archival():
    return Memory.objects.filter(type="archival").order_by("id")


def test_decisions_conclusions_and_the_output_become_the_projects_knowledge(here):
    memory_write("The market is saturated", here.board, type="core", source_run_id=RUN)
    written = deposit(
        result(
            here,
            output="We enter the market in May",
            decisions=("Enter in May",),
            evidence=("Three rivals left",),
            todos=("Hire a lead",),
        )
    )

    assert [memory.id for memory in archival()] == sorted(written)
    assert {memory.content: memory.metadata["source"] for memory in archival()} == {
        "Enter in May": "group_run",
        "The market is saturated": "group_run",
        "Group Run Result: We enter the market in May": "group_run_output",
    }
    for memory in archival():
        assert memory.scope == here.project_wide
        assert memory.metadata["source_run_id"] == memory.source_run_id == RUN
        assert memory.metadata["deposited_at"]
    decision = archival().get(content="Enter in May")
    assert Memory.objects.get(id=decision.metadata["original_memory_id"]).scope == here.board


def test_decision_evidence_and_todo_are_episodic_on_the_blackboard(here):
    deposit(result(here, decisions=("D",), evidence=("E",), todos=("T",)))
    entries = Memory.objects.filter(type="episodic")
    assert {(entry.metadata["memory_type"], entry.content) for entry in entries} == {
        ("DECISION", "D"),
        ("EVIDENCE", "E"),
        ("TODO", "T"),
    }
    assert {entry.scope for entry in entries} == {here.board}


def test_the_next_question_finds_what_a_group_decided_and_from_which_run(here):
    deposit(result(here, decisions=("The launch of Atlas is on the third of May",)))
    (hit,) = memory_search_pa("When does Atlas launch?", here.personal)
    assert (hit.tier, hit.source_run_id) == (2, RUN)


def test_a_redelivery_adds_nothing(here):
    first = deposit(result(here, output="Done", decisions=("D",), todos=("T",)))
    before = set(Memory.objects.values_list("id", flat=True))
    assert len(first) == 2
    assert deposit(result(here, output="Done", decisions=("D",), todos=("T",))) == {}
    assert set(Memory.objects.values_list("id", flat=True)) == before


def test_only_what_this_run_wrote_is_deposited(here):
    memory_write("Of an earlier run", here.board, type="core", source_run_id="run_0")
    memory_write(
        "Of an earlier run",
        here.board,
        type="episodic",
        metadata={"memory_type": "DECISION"},
        source_run_id="run_0",
    )
    memory_write("A note", here.board, type="episodic", source_run_id=RUN)
    assert deposit(result(here)) == {}


def test_a_decision_an_agent_wrote_during_the_run_is_deposited_once(here):
    memory_write("D", here.board, type="episodic", metadata={"memory_type": "DECISION"}, source_run_id=RUN)
    deposit(result(here, decisions=("D", "D")))
    assert [memory.content for memory in archival()] == ["D"]


NOTHING = "Nothing that is known here settles this; a person has to."


def test_what_seems_to_say_nothing_waits_for_a_curator_and_says_why(here):
    empty = result(here, goal="What now?", output=f"DECISION: {NOTHING}\nTODO: ask Ann")
    empty = replace(empty, decisions=(NOTHING,), todos=("ask Ann",))
    assert list(deposit(empty).values()) == ["says_nothing"]
    assert deposit(empty) == {}
    (memory,) = archival()
    assert (memory.status, memory.metadata["review_reason"]) == ("pending_review", "says_nothing")
    assert memory_search_pa("settles", here.personal) == []
    curate.approve(memory.id, None)
    assert [hit.id for hit in memory_search_pa("settles", here.personal)] == [memory.id]


@pytest.mark.parametrize(
    "decision",
    [
        "暂无风险，可以上线。",
        "Nothing was found in the logs that shows a breach.",
        "The root cause is still unknown; restart the queue nightly.",
    ],
)
def test_a_finding_in_the_words_of_not_knowing_is_knowledge(here, decision):
    assert list(deposit(result(here, goal="Can we launch?", decisions=(decision,))).values()) == [""]


def test_a_decision_that_makes_up_the_output_is_known_once(here):
    said = "DECISION: Enter in May\nEVIDENCE: Three rivals left\nTODO: Hire a lead"
    deposit(
        result(
            here,
            output=said,
            decisions=("Enter in May",),
            evidence=("Three rivals left",),
            todos=("Hire a lead",),
        )
    )
    (memory,) = archival()
    assert memory.content == f"Group Run Result: {said}"
    assert memory.title == "Enter in May"
    (source,) = memory.sources
    assert source["source"] == "group_run"
    assert Memory.objects.get(id=source["original_memory_id"]).content == "Enter in May"


def test_of_several_decisions_each_is_known_by_itself(here):
    decisions = ("Enter the market in May", "Hire a lead for the north")
    output = "\n".join(f"DECISION: {decision}" for decision in decisions)
    deposit(result(here, output=output, decisions=decisions))
    assert set(decisions) < set(archival().values_list("content", flat=True))


def test_with_evidence_an_open_question_is_knowledge(here):
    found = result(here, goal="What now?", decisions=(NOTHING,), evidence=("Ann knows the price",))
    assert {Memory.objects.get(id=id).content: why for id, why in deposit(found).items()} == {NOTHING: ""}


def test_evidence_that_says_nothing_is_none(here):
    empty = result(here, decisions=(NOTHING,), evidence=("I found nothing about this.",))
    assert list(deposit(empty).values()) == ["says_nothing"]


@pytest.mark.parametrize("output", [None, "", " \n"])
def test_a_run_without_output_deposits_none(here, output):
    assert deposit(result(here, output=output)) == {}


def test_strange_characters_do_not_fail_the_end_of_a_run(here):
    deposit(result(here, output="a\x00b\ud800c"))
    assert archival().get().content == "Group Run Result: ab?c"


def test_under_review_no_search_sees_a_deposit(here):
    deposit(result(here, output="Atlas launches in May", review=True))
    assert archival().get().status == "pending_review"
    assert memory_search_pa("Atlas", here.personal) == []
    assert memory_search_tiered("Atlas", here.in_group) == []


def test_a_personal_runs_outcome_is_found_by_its_persons_next_task(here):
    statements = []
    for _ in range(2):
        remember_outcome(RUN, here.personal, "Compare rivals", "Two are ahead of us", statements)
    assert [execute(*statement) for statement in statements] == [1, 0]
    assert Memory.objects.get(source_run_id=RUN).scope == here.history
    (hit,) = memory_search_pa("who are our rivals", here.personal)
    assert (hit.tier, hit.content) == (3, "Goal: Compare rivals\nOutcome: Two are ahead of us")


def test_a_deposit_costs_two_statements(here, django_assert_num_queries, monkeypatch):
    monkeypatch.setattr("memory.statistics.FOLD_ONE_IN", 10**9)
    with django_assert_num_queries(2):
        deposit(result(here, output="Done", decisions=("D",), evidence=("E",)))
