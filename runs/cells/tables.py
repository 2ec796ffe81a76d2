"""Which tables have rows of an organization, which of those go along with it, and how they are found.

Derived from the models: a table goes along if it names its organization, or a row that does (VIA). What stays
is said in STAYS, with the reason; a model in neither place is an error (tests/integration/test_cells.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Model, UniqueConstraint

from groups.models import Organization

VIA = {  # tables that name their organization by way of another row
    "memory.MemoryRevision": "memory",
    "memory.Embedding": "memory",
    "runs.ChatAccount": "channel",
    "runs.RunEvent": "run",  # which has an index, where its organization has none
}
STAYS = {
    # Of the installation
    "groups.Cell": "of the installation",
    "groups.OtherCell": "of the installation",
    "groups.Move": "of the installation",
    "groups.MovedToken": "of the installation",
    "groups.MovedPerson": "of the installation",
    "runs.InstallationKey": "of the installation",
    "runs.WorkerGroup": "of the installation",
    "runs.Carrier": "of the installation",
    "runs.EventCount": "of the installation",
    "runs.EventCountCursor": "of the installation",
    "runs.GoneMonth": "of the installation",
    "runs.DatabaseLine": "of the installation",
    "runs.OutboundTarget": "what this cell has learnt of a model",
    "runs.Follower": "who follows here follows anew there",
    # Made anew by triggers, or by upkeep
    "policy.PolicyVersion": "the target's triggers count its own",
    "memory.TextVector": "a cache of texts' vectors, by digest",
    "memory.EmbeddingProgress": "of the installation",
    "memory.TermCount": "counted from the memories",
    "memory.ScopeSize": "counted from the memories",
    "memory.PendingMemory": "written by the target's triggers",
    "memory.DepartedTerms": "of what is no longer there",
    # Sessions and what hangs on an address: people sign in again, programs connect again
    "groups.StorageUse": "measured by each cell",
    "groups.KeptSignIn": "people sign in again",
    "groups.ProviderSession": "people sign in again",
    "groups.Connection": "programs connect again, at the cell's own address",
    "groups.Reader": "of an account: runs/cells/people.py",
}
STAYING_APPS = {  # of accounts, of sessions, or of Django; what accounts need goes with runs/cells/people.py
    *("admin", "auth", "contenttypes", "sessions", "account", "mfa", "socialaccount", "usersessions"),
    *("oauth2_provider", "django_q"),
}
# What names an organization and stays: it is removed with the rest.
LEFT_BEHIND = ("groups_keptsignin", "groups_storageuse", "policy_policyversion")
EVENTS, RUNS, MESSAGES, CALLS = (
    "runs_runevent",
    "runs_run",
    "runs_queuemessage",
    "runs_outboundcall",
)


@dataclass(frozen=True)
class Table:
    """`where` finds an organization's rows, `t`, with one parameter. `columns` are those that are copied: a
    number that the database counts is not, and nobody refers to it. By `key` a row is known in both cells;
    without one (empty) all of the organization's rows are copied again where any may have changed.
    """

    name: str
    where: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    people: tuple[str, ...]  # columns that name accounts

    @property
    def chosen(self) -> str:
        """The columns of `t`."""
        return ", ".join(f't."{name}"' for name in self.columns)

    @property
    def into(self) -> str:
        return ", ".join(f'"{name}"' for name in self.columns)

    @property
    def known_by(self) -> str:
        return ", ".join(f'"{name}"' for name in self.key)


class Unknown(Exception):
    """A model that neither goes along nor is said to stay."""


def moving() -> list[type[Model]]:
    """The models whose rows go along, those that others refer to before them. Raises Unknown."""
    found = [model for model in concrete() if goes(model)]
    graph = {model: {other for other in _named(model) if other in found} - {model} for model in found}
    return _in_order(graph)


def concrete() -> list[type[Model]]:
    return [each for each in apps.get_models(include_auto_created=True) if not each._meta.proxy]


def goes(model: type[Model]) -> bool:
    """Whether its rows go along. Raises Unknown."""
    label = model._meta.label
    if label in STAYS or model._meta.app_label in STAYING_APPS:
        return False
    if model is Organization or label in VIA or label == "runs.QueueMessage":
        return True
    if not any(field.name == "organization" for field in model._meta.local_fields):
        raise Unknown(f"{label} names no organization: say in runs/cells/tables.py what becomes of it")
    return True


@cache
def tables() -> tuple[Table, ...]:
    """The tables that go along, in the order of `moving`."""
    return tuple(_table(model) for model in moving())


def table(name: str) -> Table:
    return next(each for each in tables() if each.name == name)


def _table(model: type[Model]) -> Table:
    meta = model._meta
    counted = meta.auto_field
    fields = [field for field in meta.local_concrete_fields if field is not counted and not field.generated]
    user = get_user_model()
    return Table(
        name=meta.db_table,
        where=_where(model),
        columns=tuple(str(field.column) for field in fields),
        key=_key(model),
        people=tuple(str(each.column) for each in fields if each.remote_field and each.related_model is user),
    )


def _where(model: type[Model]) -> str:
    if model is Organization:
        return "t.id = %s"
    through = VIA.get(model._meta.label)
    if through is None:
        return "t.organization_id = %s"
    field: Any = model._meta.get_field(through)
    parent = field.related_model._meta.db_table
    return f"t.{field.column} IN (SELECT id FROM {parent} WHERE organization_id = %s)"  # noqa: S608


def _key(model: type[Model]) -> tuple[str, ...]:
    """The columns by which a row is known in every cell."""
    meta = model._meta
    if meta.auto_field is None:
        return (str(meta.pk.column),)
    for constraint in meta.constraints:
        if isinstance(constraint, UniqueConstraint) and constraint.fields and not constraint.condition:
            found: list[Any] = [meta.get_field(name) for name in constraint.fields]
            if not any(field.null for field in found):
                return tuple(str(field.column) for field in found)
    return ()


def _named(model: type[Model]) -> list[Any]:
    """The models that a row has to be there of before it can be, or be found."""
    fields: Iterable[Any] = model._meta.local_fields
    return [
        field.related_model
        for field in fields
        if field.remote_field
        and not field.null
        and (field.db_constraint or field.name == VIA.get(model._meta.label))
    ]


def _in_order(graph: dict[type[Model], Any]) -> list[type[Model]]:
    return list(TopologicalSorter(graph).static_order())


def names(found: Sequence[Table]) -> list[str]:
    return [each.name for each in found]
