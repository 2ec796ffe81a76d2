"""Columns that follow from others: the terms of a text, their number, and the key of a scope."""

from collections import Counter
from typing import Any

from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.sql.compiler import SQLCompiler

from common.text import terms

MOST_OCCURRENCES = 10  # of one term that count; the eleventh would change a score by half a percent
MOST_TERMS = 20_000  # of one text that are indexed: a tsvector ends at one megabyte


def as_tsvector(counts: Counter[str]) -> str:
    """Terms and how often each occurs, as the text of a tsvector: `'term':1,2 'other':1`."""
    return " ".join(
        f"{quoted(term)}:{','.join(str(n) for n in range(1, min(count, MOST_OCCURRENCES) + 1))}"
        for term, count in counts.most_common(MOST_TERMS)
    )


def quoted(term: str) -> str:
    """`term` as one lexeme of a tsvector or tsquery."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


class TermVectorField(SearchVectorField):
    """The terms of `content`. PostgreSQL's own parser knows no Chinese, so they come from common.text."""

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        return as_tsvector(Counter(terms(model_instance.content)))  # type: ignore[attr-defined]

    def get_placeholder(self, value: Any, compiler: SQLCompiler, connection: Any) -> str:
        return "%s::tsvector"


class LengthField(models.PositiveIntegerField):
    """How many terms `content` has; BM25 holds a long text's matches for less."""

    def pre_save(self, model_instance: models.Model, add: bool) -> int:
        return len(terms(model_instance.content))  # type: ignore[attr-defined]


class ScopeKey(models.Func):
    """`Scope.key` of a row, computed by the database: no program can set it, or set it wrong."""

    template = (
        "md5(organization_id || '/' || coalesce(user_id::text, '') || '/' || coalesce(project_id, '')"
        " || '/' || coalesce(group_id, '') || '/' || coalesce(agent_instance_id, '') || '/' || CASE"
        " WHEN metadata @> '{\"pa_preference\": true}'::jsonb THEN 'preference' ELSE type END)::uuid"
    )
    output_field = models.UUIDField()

    def as_sql(self, *args: Any, **kwargs: Any) -> tuple[str, tuple[str | int, ...]]:
        return self.template, ()
