"""How well search finds what it should, on a set of texts and questions with known answers."""

import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from groups.models import Organization, Project
from memory import sql, statistics
from memory.embeddings import filling, questions
from memory.models import Memory, MemoryType
from memory.scope import Scope
from memory.search import memory_search

DEPTH = 10


class BadSet(Exception):
    """The folder holds no corpus.jsonl and queries.jsonl of the expected form."""


@dataclass(frozen=True)
class Report:
    """Means over the questions: recall, nDCG and MRR among the first ten hits.

    `unanswerable` questions, for which nothing is relevant, are in no mean; `empty` texts are in no memory.
    """

    texts: int
    queries: int
    unanswerable: int
    empty: int
    recall: float
    ndcg: float
    mrr: float

    def as_dict(self) -> dict[str, Any]:
        numbers = asdict(self)
        return {
            "texts": numbers["texts"],
            "queries": numbers["queries"],
            "unanswerable": numbers["unanswerable"],
            "empty": numbers["empty"],
            "recall@10": round(self.recall, 4),
            "nDCG@10": round(self.ndcg, 4),
            "MRR@10": round(self.mrr, 4),
        }


def report(folder: Path) -> Report:
    """Measure a set through the real search, by meaning too where a model embeds. All is rolled back.

    corpus.jsonl: id, store, text; queries.jsonl: id, store, text, relevant {id: grade}. Raises BadSet.
    """
    corpus = [row for _, row in rows(folder / "corpus.jsonl", ("id", "store", "text"))]
    queries = [row for _, row in rows(folder / "queries.jsonl", ("id", "store", "text", "relevant"))]
    asked = [query for query in queries if any(grade > 0 for grade in query["relevant"].values())]
    if not corpus or not asked:
        raise BadSet(f"{folder}: no texts, or no question that has an answer")
    with _rolled_back():
        scopes = write_corpus(corpus)
        scores = [score(_found(query, scopes), query["relevant"]) for query in asked]
    recall, ndcg, mrr = (sum(column) / len(scores) for column in zip(*scores, strict=True))
    empty = sum(not _text(row) for row in corpus)
    return Report(len(corpus), len(asked), len(queries) - len(asked), empty, recall, ndcg, mrr)


def _found(query: Mapping[str, Any], scopes: Mapping[str, Scope]) -> list[str]:
    """The rows that a question finds; none where it is empty, or its store has no text."""
    text, scope = _text(query), scopes.get(query["store"])
    if not text or scope is None:
        return []
    questions.warm(text, waiting=True)
    return [hit.metadata["row"] for hit in memory_search(text, scope, limit=DEPTH)]


def _text(row: Mapping[str, Any]) -> str:
    """What PostgreSQL can keep of a row's text."""
    return str(row["text"] or "").replace("\x00", "").strip()


def score(found: Sequence[str], relevant: Mapping[str, float]) -> tuple[float, float, float]:
    """recall, nDCG and reciprocal rank at ten of one ranking. A grade's gain is 2^grade - 1."""
    gains = [_gain(relevant.get(id, 0)) for id in found[:DEPTH]]
    right = {id for id, grade in relevant.items() if grade > 0}
    ideal = _discounted(sorted(map(_gain, relevant.values()), reverse=True)[:DEPTH])
    recall = sum(1 for gain in gains if gain > 0) / len(right) if right else 0.0
    first = next((rank for rank, gain in enumerate(gains, 1) if gain > 0), None)
    return recall, _discounted(gains) / ideal if ideal else 0.0, 1 / first if first else 0.0


def write_corpus(corpus: Iterable[Mapping[str, Any]]) -> dict[str, Scope]:
    """Write each text that is not empty into its store's own project; returns each store's scope."""
    slug = f"retrieval-report-{secrets.token_hex(8)}"  # two reports at once do not wait for each other
    organization = Organization.objects.create(slug=slug, name="Retrieval report")
    scopes: dict[str, Scope] = {}
    memories = []
    for row in corpus:
        if not (text := _text(row)):
            continue
        if row["store"] not in scopes:
            slug = f"store-{len(scopes)}"
            project = Project.objects.create(organization=organization, slug=slug, name=str(row["store"]))
            scopes[row["store"]] = Scope(organization.id, project_id=project.id)
        memories.append(
            Memory(
                organization_id=organization.id,
                project_id=scopes[row["store"]].project_id,
                type=MemoryType.ARCHIVAL,
                content=text,
                metadata={"row": row["id"]},
            )
        )
    Memory.objects.bulk_create(memories, batch_size=1000)
    statistics.merge_all_deltas()
    if settings.EMBEDDING_MODEL:
        connection.check_constraints()  # the vectors' index cannot be made while they wait
        filling.fill()
    _analyse()
    return scopes


def _analyse() -> None:
    """Tell the planner what was written, unless another report is doing so: ANALYZE locks until the end."""
    with connection.cursor() as cursor:
        cursor.execute(sql.TRY_LOCK, {"key": "memory.measure"})
        if cursor.fetchone()[0]:
            cursor.execute("ANALYZE memory_memory, memory_embedding")


def _gain(grade: float) -> float:
    return float(2**grade - 1) if grade > 0 else 0.0


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def rows(path: Path, fields: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, one a line, with the lines' numbers. Raises BadSet where one lacks a field."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict) or any(field not in row for field in fields):
                        raise BadSet(f"{path}, line {number}: needs {', '.join(fields)}")
                    yield number, row
    except json.JSONDecodeError as error:
        raise BadSet(f"{path}, line {number}: {error}") from None
    except (OSError, ValueError) as error:
        raise BadSet(f"{path}: {error}") from None


@contextmanager
def _rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
