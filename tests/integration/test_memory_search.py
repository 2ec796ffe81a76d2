"""Who finds what, in which tier."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory import curate
from memory.errors import MemoryRefused
from memory.models import MemoryStatus, PendingMemory
from memory.scope import PREFERENCE, Scope
from memory.search import memory_search, memory_search_pa, memory_search_tiered
from memory.statistics import merge_all_deltas
from memory.write import memory_write
from tests.memory_world import Place, place

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> Place:
    return place("here")


def contents(hits):
    return [hit.content for hit in hits]


def prefer(here: Place, content: str):
    return memory_write(content, here.preferences, type="core", metadata={"pa_preference": True})


def test_a_personal_agent_finds_preferences_then_knowledge_then_history(here):
    memory_write("The quarterly report was sent to finance", here.history, type="episodic")
    memory_write("A report names its sources", here.organization_wide, type="archival")
    memory_write("Report numbers come from the register", here.project_wide, type="archival")
    prefer(here, "Prefers a concise report")

    hits = memory_search_pa("write the report", here.personal)

    assert [hit.tier for hit in hits] == [1, 2, 2, 3]
    assert hits[0].content == "Prefers a concise report"


def test_the_work_of_groups_does_not_pollute_what_a_personal_agent_finds(here):
    memory_write("report draft on the blackboard", here.board, type="core")
    memory_write("report decision", here.board, type="episodic")
    memory_write("report of the expert", here.expert_own, type="episodic")
    memory_write("report of the project's core", here.project_wide, type="core")
    memory_write("unmarked core report", here.preferences, type="core")

    assert memory_search_pa("report", here.personal) == []


def test_a_group_finds_its_blackboard_first_and_no_preferences(here):
    prefer(here, "Prefers a concise report")
    memory_write("report for the person", here.history, type="episodic")
    memory_write("report knowledge", here.project_wide, type="archival")
    memory_write("report of the expert", here.expert_own, type="episodic")
    memory_write("report rule of the project", here.project_wide, type="core")
    memory_write("report decision", here.board, type="episodic")
    other_board = Scope(here.organization.id, project_id=here.project.id, group_id=here.other_group.id)
    memory_write("report of another group", other_board, type="core")

    hits = memory_search_tiered("report", here.in_group)

    assert [(hit.tier, hit.content) for hit in hits] == [
        (1, "report decision"),
        (2, "report rule of the project"),
        (3, "report of the expert"),
        (4, "report knowledge"),
    ]


def test_tier_quotas_are_ceilings_cut_at_the_limit(here):
    for number in range(8):
        prefer(here, f"report preference {number}")
        memory_write(f"report knowledge {number}", here.project_wide, type="archival")
        memory_write(f"report task {number}", here.history, type="episodic")

    assert [hit.tier for hit in memory_search_pa("report", here.personal)] == [1] * 3 + [2] * 4 + [3] * 3
    assert [hit.tier for hit in memory_search_pa("report", here.personal, 5)] == [1, 1, 2, 2, 3]
    assert [hit.tier for hit in memory_search_pa("report", here.personal, 1)] == [1]


def test_a_search_asks_the_database_once(here, django_assert_num_queries):
    prefer(here, "report")
    with django_assert_num_queries(1):
        memory_search_pa("report", here.personal)
    with django_assert_num_queries(1):
        memory_search_tiered("report", here.in_group)


def test_no_statement_is_compiled_and_a_rollback_harms_no_search(here):
    memory_write("report", here.project_wide, type="archival")
    for _ in range(5):
        with transaction.atomic():
            assert memory_search_pa("report", here.personal)
            transaction.set_rollback(True)
    with connection.cursor() as cursor:
        cursor.execute("SHOW jit")
        assert cursor.fetchone() == ("off",)


def test_a_question_of_common_words_finds_something_and_its_rare_word_decides(here, monkeypatch):
    monkeypatch.setattr("memory.search.REACH", 5)
    monkeypatch.setattr("memory.search.SMALL", 0)
    for number in range(40):
        memory_write(f"the report of the week {number}", here.project_wide, type="archival")
    rare = memory_write("the owl of the week", here.project_wide, type="archival")
    merge_all_deltas()

    assert len(memory_search_pa("the report", here.personal)) == 4
    assert memory_search_pa("the owl", here.personal)[0].id == rare.id
    assert memory_search_pa("the heron", here.personal) == []


def test_what_is_not_counted_yet_is_found_beside_much_that_is(here):
    for number in range(60):
        memory_write(f"the report of week {number}", here.project_wide, type="archival")
    merge_all_deltas()
    late = memory_write("the report of the owl", here.project_wide, type="archival")

    assert PendingMemory.objects.count() == 1
    assert memory_search_pa("the owl", here.personal)[0].id == late.id


@pytest.mark.parametrize("without", ["ENOUGH", "PAIRS"])
def test_words_of_which_none_is_rare_bring_in_what_has_several(here, monkeypatch, without):
    """Two by two, or where that is too little, the common ones together: each way alone."""
    monkeypatch.setattr("memory.search.REACH", 9)
    monkeypatch.setattr("memory.search.SMALL", 0)
    monkeypatch.setattr(f"memory.search.{without}", 0)
    colours = ("blue", "red", "green", "white", "black")
    for number in range(50):
        content = f"the {colours[number % 5]} report of {number // 5 % 5} o'clock"
        memory_write(content, here.project_wide, type="archival")
    merge_all_deltas()

    found = contents(memory_search("green 3", here.project_wide, limit=50))

    assert found == ["the green report of 3 o'clock"] * 2


def test_flat_search_is_of_exactly_one_scope(here):
    memory_write("report of the project", here.project_wide, type="archival")
    memory_write("report of the organization", here.organization_wide, type="archival")
    memory_write("report core", here.project_wide, type="core")

    assert set(contents(memory_search("report", here.project_wide))) == {
        "report of the project",
        "report core",
    }
    assert contents(memory_search("report", here.project_wide, type="archival")) == ["report of the project"]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("How do we reimburse travellers?", "Travel is reimbursed within ten days."),
        ("竞品分析由谁负责？", "竞品分析的负责人是王敏。"),
        ("競品分析由誰負責？", "竞品分析的负责人是王敏。"),
        ("Atlas 的报价 deadline 是什么时候", "Atlas 项目报价 deadline 是周五。"),
    ],
)
def test_questions_are_found_in_english_and_chinese(here, question, found):
    for content in (
        "Travel is reimbursed within ten days.",
        "竞品分析的负责人是王敏。",
        "Atlas 项目报价 deadline 是周五。",
        "The cafeteria opens at noon.",
        "会议室需要提前预订。",
    ):
        memory_write(content, here.project_wide, type="archival")

    assert memory_search_pa(question, here.personal)[0].content == found


def test_what_only_repeats_the_question_comes_last(here):
    echo = "Group Run Result: When does Atlas launch?"
    for content in (echo, "Atlas is a large project", "Atlas 何时发布？"):
        memory_write(content, here.project_wide, type="archival")

    assert contents(memory_search_pa("When does Atlas launch?", here.personal))[-1] == echo
    assert contents(memory_search_pa("Atlas 何時發布", here.personal))[-1] == "Atlas 何时发布？"


def test_a_hit_marks_what_matched_and_says_where_it_came_from(here):
    memory = memory_write(
        "先看竞品分析，then the Reports.", here.project_wide, type="archival", source_run_id="run_1"
    )
    hit = memory_search_pa("竞品 report", here.personal)[0]

    assert hit.snippet == "先看**竞品**分析，then the **Reports**."
    assert (hit.id, hit.source_run_id) == (memory.id, "run_1")
    assert hit.as_dict()["created_at"].startswith(str(timezone.now().year))


def test_what_is_not_active_or_has_expired_is_not_found(here):
    for status in set(MemoryStatus.values) - {"active"}:
        memory = memory_write(f"report {status}", here.project_wide, type="archival")
        memory.status = status
        memory.save()
    past = timezone.now() - timedelta(seconds=1)
    memory_write("report expired", here.project_wide, type="archival", expires_at=past)

    assert memory_search_pa("report", here.personal) == []


@pytest.mark.parametrize("limit", [0, 51, -1, True, 1.5])
def test_a_limit_outside_1_to_50_is_refused(here, limit):
    with pytest.raises(MemoryRefused) as refused:
        memory_search_pa("report", here.personal, limit)
    assert refused.value.code == "invalid_limit"


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_is_refused(here, query):
    for search in (memory_search, memory_search_pa, memory_search_tiered):
        with pytest.raises(MemoryRefused) as refused:
            search(query, here.personal)
        assert refused.value.code == "empty_query"


@pytest.mark.parametrize("query", ["'", "\\", "a' | 'b", "!!!", "report & !x", "%s {} \x00", "😀"])
def test_no_query_breaks_the_statement(here, query):
    memory_write("report \\ ' a b", here.project_wide, type="archival")
    memory_search_pa(query, here.personal)


def test_python_and_the_database_agree_on_every_scope_key(here):
    preference = prefer(here, "a")
    core = memory_write("b", here.preferences, type="core")
    board = memory_write("c", here.board, type="episodic")
    assert preference.scope_key == here.preferences.key(PREFERENCE)
    assert core.scope_key == here.preferences.key("core")
    assert board.scope_key == here.board.key("episodic")


def test_what_a_long_question_says_again_and_again_decides(here):
    """And its function words say nothing: a memory made of them is not found."""
    wanted = memory_write("How the refund of a ticket works", here.project_wide, type="archival")
    for town in ("Bonn", "Lyon", "Graz", "Turin"):
        memory_write(f"Opening hours of our office in {town}", here.project_wide, type="archival")
    chatter = memory_write("You will have what they want, and so would I", here.project_wide, type="archival")
    merge_all_deltas()
    story = " ".join(f"Detail number{n} of my trip came up in hall{n}." for n in range(30))
    question = f"I was in Bonn and Lyon. {story} You would want the refund. So my ticket: a refund, a refund?"

    found = [hit.id for hit in memory_search(question, here.project_wide, limit=10)]

    assert found[0] == wanted.id
    assert chatter.id not in found


@pytest.mark.parametrize(
    ("file", "first"), [("talk.md", "before"), ("other.md", "after")], ids=["same file", "another file"]
)
def test_a_turn_beside_a_hit_of_the_same_file_counts_for_more(here, file, first):
    """Of two that match alike the later one comes first, unless the earlier one stands beside a hit."""
    turns = [
        ("before", "talk.md", "Bob: rain fell all night"),
        ("hit", file, "Ann: an owl sat in the garden"),
        ("between", file, "Cid: we had soup"),
        ("after", "talk.md", "Bob: rain fell all day"),
    ]
    names = {
        memory_write(text, here.project_wide, type="archival", metadata={"file": file}).id: name
        for name, file, text in turns
    }
    merge_all_deltas()

    found = [names[hit.id] for hit in memory_search("owl garden rain", here.project_wide)]

    assert found[:2] == ["hit", first]


def test_in_long_texts_saying_it_often_counts_for_more(here):
    """And in short ones hardly: who names a thing twice in a breath says no more about it."""

    def advantage(words: int) -> float:
        for number in range(12):
            filler = " ".join(f"w{number}x{n}" for n in range(words))
            memory_write(f"{filler} owl" + " owl owl owl" * (number == 0), here.board, type="episodic")
        hits = memory_search("owl", here.board, type="episodic", limit=12)
        for hit in hits:
            curate.retract(hit.id, None)
        merge_all_deltas()
        return hits[0].score / hits[1].score

    assert advantage(200) > advantage(6) * 1.2
