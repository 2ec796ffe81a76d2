"""Search by meaning: optional, beside the words, and never in the way."""

import json
import logging
from datetime import timedelta

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from common.db import own_connection, row, rows
from memory import curate, search
from memory.embeddings import filling, questions, store
from memory.embeddings.client import EmbeddingFailed, embed
from memory.embeddings.models import BadModel, configured
from memory.embeddings.questions import vector_of
from memory.models import Embedding, Memory
from memory.scope import Scope
from memory.search import memory_search, memory_search_pa
from memory.statistics import merge_all_deltas
from memory.write import memory_write
from runs.workers import tasks
from tests import embedding_server
from tests.memory_world import Place, place
from tests.model_server import Answer

pytestmark = pytest.mark.django_db

MODEL = "compatible:tiny"


@pytest.fixture
def here() -> Place:
    return place("here")


@pytest.fixture
def server(settings, monkeypatch):
    """A model that knows a few matters; the test's own transaction counts as none."""
    monkeypatch.setattr(questions, "vector_of", lambda question, *_: vector_of(question, True))
    monkeypatch.setattr(search, "vector_of", questions.vector_of)
    with embedding_server.embedding(settings, monkeypatch, MODEL) as server:
        yield server


def know(here: Place, *contents: str) -> list[Memory]:
    return [memory_write(content, here.project_wide, type="archival") for content in contents]


def found(here: Place, question: str) -> list[str]:
    return [hit.content for hit in memory_search_pa(question, here.personal)]


def test_without_a_model_nothing_is_asked_and_nothing_kept(here, settings):
    assert settings.EMBEDDING_MODEL == ""
    know(here, "The automobile is blue")
    assert filling.fill() == 0
    assert found(here, "car") == []
    assert not Embedding.objects.exists()
    assert run_checks(databases=["default"]) == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Which car do we lease?", "The automobile is blue"), ("轿车", "Our vehicle is old")],
)
def test_a_memory_is_found_by_its_meaning_without_a_common_word(here, server, question, answer):
    know(here, answer, "The cafeteria opens at noon", "竞品的价格")
    assert found(here, question) == []
    assert filling.fill() == 3
    questions.forget()
    assert found(here, question)[0] == answer


def test_words_and_meaning_together_beat_either(here, server):
    know(here, "The automobile of Bob", "The car of Ann", "A letter of Ann")
    filling.fill()
    assert found(here, "car Ann")[0] == "The car of Ann"
    scores = [hit.score for hit in memory_search_pa("car Ann", here.personal)]
    assert scores == sorted(scores, reverse=True)


def test_what_words_clearly_find_stays_before_what_is_only_near(here, server):
    """Adding ranks alone put what both ways found second before what one of them found clearly."""
    invoice = "Invoice 4711 of Bob is unpaid"
    know(here, invoice, *(f"The automobile {name} of Bob" for name in ("Ada", "Ben", "Cem")))
    filling.fill()
    hits = memory_search_pa("Which car has invoice 4711 of Bob?", here.personal)
    assert hits[0].content == invoice
    assert hits[0].score < 1  # it is not near: the share of meaning is missing


def test_what_is_filled_once_is_not_asked_for_again(here, server, monkeypatch):
    monkeypatch.setattr(filling, "BATCH", 2)
    know(here, *(f"car {number}" for number in range(5)))
    assert filling.fill() == 5
    assert [len(each.body["input"]) for each in server.received] == [2, 2, 1]
    assert filling.fill() == filling.fill(everything=True) == 0
    assert len(server.received) == 3


def test_it_goes_on_where_it_stopped(here, server, monkeypatch):
    monkeypatch.setattr(filling, "BATCH", 2)
    know(here, *(f"car {number}" for number in range(6)))
    server.script.appendleft(Answer({"error": "down"}, status=503))
    server.script.appendleft(embedding_server.answers)
    with pytest.raises(EmbeddingFailed, match="503"):
        filling.fill()
    assert Embedding.objects.count() == 2
    assert filling.fill() == 4


def test_workers_fill_in_the_background_and_a_failure_is_only_told(here, server, caplog):
    know(here, "The automobile is blue")
    tasks.embed_memories()
    assert Embedding.objects.count() == 1
    server.script[0] = Answer({"error": "down"}, status=503)
    know(here, "The car is red")
    with caplog.at_level(logging.WARNING, "memory"):
        tasks.embed_memories()
    assert Embedding.objects.count() == 1
    assert "memories wait for their vectors" in caplog.text


def test_what_is_left_to_another_is_not_done_twice(here, server):
    know(here, "The automobile is blue")
    other = own_connection()
    try:
        other.execute(f"SELECT pg_advisory_lock({filling.ALONE})")
        assert filling.fill() == 0
        assert server.received == []
        other.execute(f"SELECT pg_advisory_unlock({filling.ALONE})")
        assert filling.fill() == 1
    finally:
        other.close()


def test_an_edited_text_is_embedded_again(here, server):
    (memory,) = know(here, "The automobile is blue")
    filling.fill()
    curate.edit(memory.id, None, content="The vacation is long")
    assert filling.fill() == 1
    assert found(here, "holiday") == ["The vacation is long"]


def test_an_edit_while_its_vector_is_made_wins(here, server):
    (memory,) = know(here, "The automobile is blue")
    text = store.Text(memory.id, "what it said before")
    store.write(configured(), [text], [[1.0, 2.0]])
    connection.check_constraints()  # an index cannot be made while they wait
    assert found(here, "car") == []
    assert filling.fill() == 1
    questions.forget()
    assert found(here, "car") == ["The automobile is blue"]


def test_the_background_goes_on_from_where_nobody_may_still_be_writing(here, server):
    old, late = know(here, "car 1", "car 2")
    filling.fill()
    assert store.reached(configured()) == ""
    Memory.objects.filter(id=old.id).update(created_at=timezone.now() - timedelta(minutes=11))
    filling.fill()
    assert store.reached(configured()) == old.id < late.id


def test_a_text_the_model_refuses_is_found_by_words_and_asked_once(here, server):
    def answers(request):
        if any("poison" in text for text in request.body["input"]):
            return Answer({"error": "too long"}, status=400)
        return embedding_server.answers(request)

    server.script[0] = answers
    know(here, "car one", "poison", "car two")
    assert filling.fill() == 3
    asked = len(server.received)
    assert filling.fill(everything=True) == 0
    assert len(server.received) == asked
    assert Embedding.objects.get(vector=None).memory.content == "poison"
    assert found(here, "poison")[0] == "poison"


def test_a_server_that_fails_leaves_words_alone_and_is_left_alone(here, server, caplog):
    know(here, "The car is blue", "The automobile is red")
    filling.fill()
    server.script[0] = Answer({"error": "out of order"}, status=500)
    asked = len(server.received)
    with caplog.at_level(logging.WARNING, "memory"):
        assert found(here, "car") == found(here, "car?") == ["The car is blue"]
    assert len(server.received) == asked + 1
    assert "search by words alone for 30 seconds" in caplog.text
    assert "out of order" in caplog.text


def test_no_model_is_asked_inside_a_transaction(here, settings, monkeypatch):
    with embedding_server.embedding(settings, monkeypatch) as server, transaction.atomic():
        know(here, "The car is blue")
        assert found(here, "car") == ["The car is blue"]
        assert server.received == []


def test_what_was_asked_beforehand_counts_inside_a_transaction(here, server, monkeypatch):
    know(here, "The automobile is red")
    filling.fill()
    questions.warm("car")
    monkeypatch.setattr(search, "vector_of", vector_of)
    assert found(here, "car") == ["The automobile is red"]


def test_a_search_by_meaning_asks_the_database_once(here, server, django_assert_num_queries):
    know(here, "The automobile is red")
    filling.fill()
    questions.warm("car")
    with django_assert_num_queries(1):
        assert found(here, "car") == ["The automobile is red"]


@pytest.fixture
def crowd(here, server, monkeypatch):
    """A small scope, whose memories are the farthest from the question, among many nearer ones."""
    other = Scope(here.organization.id, project_id=here.other_project.id)
    for number in range(300):
        memory_write(f"car {number}", other, type="archival")
    mine = know(here, *(f"a vehicle on holiday, holiday, holiday {number}" for number in range(5)))
    filling.fill()
    merge_all_deltas()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_embedding")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    return {memory.id for memory in mine}


def explained(here: Place, question: str) -> str:
    seen = []

    def keep(execute, statement, parameters, many, context):
        seen.append((statement, parameters))
        return execute(statement, parameters, many, context)

    with connection.execute_wrapper(keep):
        memory_search(question, here.project_wide, type="archival")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT TEXT) {seen[0][0]}", seen[0][1])
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.parametrize("exact", [5_000, 0], ids=["distances computed", "through the index"])
def test_a_small_scope_among_many_loses_nothing(here, crowd, monkeypatch, exact):
    monkeypatch.setattr(search, "EXACT", exact)
    monkeypatch.setattr(search, "SHARE", 10**9)
    hits = memory_search("automobile", here.project_wide, type="archival", limit=50)
    assert {hit.id for hit in hits} == crowd
    (index,) = rows("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'memory_near_%%'")[0]
    used = [line for line in explained(here, "automobile").splitlines() if index in line]
    assert len(used) == 1
    assert ("never executed" in used[0]) == bool(exact)


def test_other_scopes_and_retracted_memories_are_not_near(here, server):
    kept, retracted = know(here, "The automobile is red", "The automobile is lost")
    memory_write("Their automobile", place("there").project_wide, type="archival")
    memory_write("A private automobile", here.preferences, type="core")
    filling.fill()
    curate.retract(retracted.id, None)
    assert [hit.id for hit in memory_search_pa("car", here.personal)] == [kept.id]


def test_another_model_starts_anew_and_the_old_index_goes(here, server, settings):
    know(here, "The automobile is red")
    filling.fill()
    connection.check_constraints()  # an index cannot be made while they wait
    settings.EMBEDDING_MODEL = "compatible:other"
    assert found(here, "car") == []
    call_command("embed")
    questions.forget()
    assert found(here, "car") == ["The automobile is red"]
    assert {row[0] for row in Embedding.objects.values_list("model")} == {"compatible:other"}
    assert len(rows("SELECT 1 FROM pg_indexes WHERE indexname LIKE 'memory_near_%%'")) == 1


def test_the_command_shows_how_far_it_is(here, server, capsys, monkeypatch):
    monkeypatch.setattr(filling, "BATCH", 2)
    know(here, "car 1", "car 2", "car 3")
    call_command("embed")
    assert capsys.readouterr().out.splitlines() == [
        "0 of 3 (0 %)",
        "2 of 3 (66 %)",
        "3 of 3 (100 %)",
        f"3 memories embedded by {MODEL}.",
    ]


@pytest.mark.parametrize(
    ("available", "why"), [(None, "has no pgvector"), (("0.7.4",), "has pgvector 0.7.4")], ids=["none", "old"]
)
def test_a_server_without_pgvector_is_refused_in_words(here, server, monkeypatch, available, why):
    monkeypatch.setattr(
        store, "row", lambda query, *rest: available if query == store.AVAILABLE else row(query, *rest)
    )
    know(here, "The car is blue")
    with pytest.raises(CommandError, match=why):
        call_command("embed")
    (warning,) = run_checks(databases=["default"])
    assert (warning.id, why in warning.msg) == ("memory.W001", True)
    assert found(here, "car") == ["The car is blue"]


@pytest.mark.parametrize(
    ("name", "environment", "why"),
    [
        ("tiny", {}, "EMBEDDING_MODEL is none of"),
        ("openai:", {}, "EMBEDDING_MODEL is none of"),
        ("openai:small", {}, "set OPENAI_API_KEY"),
        ("compatible:tiny", {"EMBEDDING_BASE_URL": "nowhere"}, "EMBEDDING_BASE_URL"),
        ("compatible:tiny", {"EMBEDDING_BASE_URL": "http://a:b@c/v1"}, "EMBEDDING_BASE_URL"),
        ("ollama:tiny", {"OLLAMA_API_KEY": "two words"}, "OLLAMA_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_asked_is_named_at_the_start(settings, monkeypatch, name, environment, why):
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "EMBEDDING_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    settings.EMBEDDING_MODEL = name
    (error,) = run_checks()
    assert error.id == "memory.E001"
    assert why in error.msg
    with pytest.raises(BadModel):
        configured()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"not json"),
        Answer([]),
        Answer({"data": []}),
        Answer({"data": [{"index": 1, "embedding": [1.0]}]}),
        Answer({"data": [{"index": 0, "embedding": [0.0, 0.0]}]}),
        Answer({"data": [{"index": 0, "embedding": ["a"]}]}),
        Answer(b'{"data": [{"index": 0, "embedding": [NaN]}]}'),
        Answer({}, status=302, headers={"Location": "http://127.0.0.1:1/"}),
        Answer({"error": "the key secret-key is wrong"}, status=401),
    ],
)
def test_a_strange_answer_is_a_failure_without_the_key(server, answer):
    server.script[0] = answer
    with pytest.raises(EmbeddingFailed) as failed:
        embed(configured(), ["text"], 5)
    assert "secret-key" not in str(failed.value)
    assert failed.value.retryable


def test_the_request_is_as_openai_has_it(server):
    (vector,) = embed(configured(), ["car " * 5_000], 5)
    (asked,) = server.received
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == "Bearer secret-key"
    assert (asked.body["model"], asked.body["encoding_format"]) == ("tiny", "float")
    assert len(asked.body["input"][0]) == 4_000
    assert len(vector) == len(embedding_server.MATTERS) + 1
    assert json.loads(store.literal(vector)) == pytest.approx(vector)
