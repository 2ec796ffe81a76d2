"""Names in safety settings that mean nothing now: tools, models and member roles that are misspelt, gone, or
to come.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Tags, Warning
from django.db import DatabaseError

from groups import known

SETTINGS = (
    *("groups.Role", "groups.Membership"),
    *("policy.CapabilityRule", "policy.ToolBinding", "policy.ToolDeclaration"),
)
MOST = 100  # shown at once


@dataclass(frozen=True)
class Unknown:
    """A row, and what is wrong with its names."""

    row: Any
    problem: str

    @property
    def label(self) -> str:
        return f"{self.row._meta.verbose_name} {self.row}".strip()


def everywhere() -> list[Unknown]:
    """The first hundred, in every organization."""
    with known.asked_once():
        return list(islice(_all(), MOST))


def _all() -> Iterator[Unknown]:
    for label in SETTINGS:
        for row in apps.get_model(label).objects.order_by("pk").iterator():
            for problems in row.unknown_names().values():
                yield from (Unknown(row, problem) for problem in problems)


def check(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """For `manage.py check --deploy`. Where there is no database to ask, nothing is said."""
    try:
        found = everywhere()
    except DatabaseError:
        return []
    hint = "Correct the name, or make what it names; a name nobody knows restricts and allows nothing."
    return [Warning(f"{one.label}: {one.problem}", hint=hint, id="deputy.W001") for one in found]


def register() -> None:
    from django.core import checks

    checks.register(check, Tags.security, deploy=True)
