"""manage.py retrieval_report."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from groups.models import Organization
from memory import measure
from memory.models import Memory, TermCount

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_set(tmp_path):
    texts = [
        ("1", "en", "Travel is reimbursed"),
        ("2", "zh", "差旅费十天内报销"),
        ("3", "en", "Lunch is free"),
    ]
    corpus = [{"id": id, "store": store, "text": text} for id, store, text in texts]
    queries = [
        {"id": "q1", "store": "en", "text": "how is travelling reimbursed", "relevant": {"1": 1}},
        {"id": "q2", "store": "zh", "text": "報銷要幾天", "relevant": {"2": 1}},
        {"id": "q3", "store": "zh", "text": "lunch", "relevant": {"3": 1}},
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def test_it_measures_through_the_real_search_and_leaves_nothing(small_set, capsys):
    call_command("retrieval_report", small_set, json=True)
    numbers = json.loads(capsys.readouterr().out)
    assert (numbers["texts"], numbers["queries"]) == (3, 3)
    assert numbers["recall@10"] == numbers["nDCG@10"] == numbers["MRR@10"] == 0.6667
    assert not Memory.objects.exists()
    assert not TermCount.objects.exists()
    assert not Organization.objects.exists()


def test_it_prints_for_people_too(small_set, capsys):
    call_command("retrieval_report", small_set)
    assert "recall@10  0.6667" in capsys.readouterr().out


def test_a_bad_set_is_named(small_set):
    (small_set / "queries.jsonl").write_text('{"id": "q"}')
    with pytest.raises(CommandError, match=r"queries.jsonl, line 1: needs id, store, text, relevant"):
        call_command("retrieval_report", small_set)
    with pytest.raises(CommandError, match="No such file"):
        call_command("retrieval_report", small_set / "nowhere")


def test_empty_texts_and_questions_without_an_answer_are_left_out(small_set, capsys):
    with (small_set / "corpus.jsonl").open("a") as corpus:
        corpus.write(
            '\n{"id": "4", "store": "en", "text": " "}\n{"id": "5", "store": "en", "text": "a\\u0000"}'
        )
    with (small_set / "queries.jsonl").open("a") as queries:
        queries.write('\n{"id": "q4", "store": "en", "text": "lunch", "relevant": {}}')
        queries.write('\n{"id": "q5", "store": "en", "text": "lunch", "relevant": {"3": 0}}')
        queries.write('\n{"id": "q6", "store": "gone", "text": "lunch", "relevant": {"3": 1}}')
        queries.write('\n{"id": "q7", "store": "en", "text": "", "relevant": {"3": 1}}')
    call_command("retrieval_report", small_set, json=True)
    numbers = json.loads(capsys.readouterr().out)
    assert (numbers["queries"], numbers["unanswerable"], numbers["empty"]) == (5, 2, 1)
    assert numbers["recall@10"] == 0.4


@pytest.mark.django_db(transaction=True)
def test_two_reports_may_run_at_once(small_set):
    """Neither waits for what the other has written, or holds."""
    corpus = [json.loads(line) for line in (small_set / "corpus.jsonl").read_text().splitlines()]

    def in_another_connection() -> object:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
            return measure.report(small_set)
        finally:
            connection.close()

    with measure._rolled_back():
        measure.write_corpus(corpus)
        with ThreadPoolExecutor(1) as other:
            found = other.submit(in_another_connection).result()
    assert found.queries == 3
