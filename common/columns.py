"""Rows of models, read by statements of our own."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Model

M = TypeVar("M", bound=Model)


class Columns(Generic[M]):
    """The columns of a model under an alias, and its instance from the values they had.

    For statements that run often and are wide: the ORM takes longer to write one than the server to answer.
    `sql`: the columns, to be selected. `only`: the names of those that are, the key among them; the others
    are read when they are asked for.
    """

    def __init__(self, model: type[M], alias: str, only: tuple[str, ...] = ()) -> None:
        fields = [field for field in model._meta.concrete_fields if not only or field.attname in only]
        self.model = model
        self.sql = ", ".join(f"{alias}.{field.column}" for field in fields)
        self._names = [field.attname for field in fields]
        self._key = self._names.index(model._meta.pk.attname)
        self._read = [
            (place, read)
            for place, field in enumerate(fields)
            if (read := getattr(field, "from_db_value", None)) is not None
        ]

    def take(self, values: Iterator[Any]) -> M | None:
        """The instance made of the next values, which are used up; None where a LEFT JOIN found no row."""
        mine = [next(values) for _ in self._names]
        if mine[self._key] is None:
            return None
        connection = connections[DEFAULT_DB_ALIAS]
        for place, read in self._read:
            mine[place] = read(mine[place], None, connection)
        return self.model.from_db(DEFAULT_DB_ALIAS, self._names, mine)
