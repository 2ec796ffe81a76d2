"""Statements that a connection parses and plans once, not with every use."""

import re
from collections.abc import Mapping
from functools import cached_property
from hashlib import md5
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection

PARAMETER = re.compile(r"%\((\w+)\)s")

_there: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # names by connection of psycopg


class Prepared:
    """A statement with its parameters as `%(name)s`, each cast to its type where it stands.

    What it is planned with is planned for good (see memory.apps): nothing in it may depend on a parameter's
    value.
    """

    def __init__(self, statement: str) -> None:
        self.parameters = list(dict.fromkeys(PARAMETER.findall(statement)))
        numbers = {name: f"${number}" for number, name in enumerate(self.parameters, 1)}
        self.statement = PARAMETER.sub(lambda found: numbers[found[1]], statement)

    @cached_property
    def name(self) -> str:
        return f"deputy_{md5(self.statement.encode(), usedforsecurity=False).hexdigest()}"

    def rows(self, values: Mapping[str, Any]) -> list[Any]:
        """All rows of the statement with these values for its parameters."""
        self._prepare()
        places = ", ".join(["%s"] * len(self.parameters))
        with connection.cursor() as cursor:
            cursor.execute(f"EXECUTE {self.name} ({places})", [values[name] for name in self.parameters])
            return list(cursor.fetchall())

    def _prepare(self) -> None:
        """Once a connection, past Django: what a search costs does not depend on who searched before."""
        connection.ensure_connection()
        there = _there.setdefault(connection.connection, set())
        if self.name not in there:
            connection.connection.execute(f"PREPARE {self.name} AS {self.statement}")
            there.add(self.name)
