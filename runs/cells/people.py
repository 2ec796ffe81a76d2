"""The accounts of an organization's people, in another cell.

An account has the same number in every cell, since each cell numbers those that are made there from a range
of its own (groups/models/cells.py): what a run's log says of account 20000017 is true wherever the run is. An
account that is there already stays as it is. A new one gets its name, address, password's hash, second
factors and providers' identities, and nothing that it may do: neither superuser nor staff.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from common.db import jsonb
from groups.models.cells import ACCOUNTS

COLUMNS = "id, username, first_name, last_name, email, password, is_active, date_joined"
ACCOUNT = f"SELECT {COLUMNS} FROM auth_user WHERE id = ANY(%s) ORDER BY id"  # noqa: S608
THERE = "SELECT id, date_joined FROM auth_user WHERE id = ANY(%s)"
TAKEN = "SELECT EXISTS (SELECT FROM auth_user WHERE username = %s)"
INSERT = f"""
INSERT INTO auth_user ({COLUMNS}, is_superuser, is_staff)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, false, false)
"""  # noqa: S608
# What goes with an account that is new: table, columns. What another account has there already is not taken.
BELONGINGS = {
    "account_emailaddress": 'email, verified, "primary"',
    "mfa_authenticator": "type, data, created_at, last_used_at",
    "socialaccount_socialaccount": "provider, uid, last_login, date_joined, extra_data",
    "groups_reader": "language",
}
LONGEST = 150  # of a user's name


class Collision(Exception):
    """The target has another account of this number."""


@dataclass
class Arrived:
    """How many accounts are new there, and under which other name those whose own was taken."""

    new: int = 0
    renamed: dict[str, str] = field(default_factory=dict)


def check(source: Any, target: Any, ids: set[int], target_number: int) -> list[int]:
    """Those of the accounts that the target has not. Raises Collision."""
    wanted = dict(source.execute(THERE, [sorted(ids)]).fetchall())
    there = dict(target.execute(THERE, [sorted(ids)]).fetchall())
    for number, joined in there.items():
        if wanted.get(number) != joined:
            raise Collision(
                f"Account {number} is somebody else there: the cell numbers its accounts from the same "
                "range. Only a cell that got its number before its first account takes others' organizations."
            )
    missing = sorted(wanted.keys() - there.keys())
    own = range(target_number * ACCOUNTS, (target_number + 1) * ACCOUNTS)
    for number in missing:
        if number in own:
            raise Collision(f"Account {number} has a number that the target gives to accounts of its own.")
    return missing


def bring(source: Any, target: Any, missing: Sequence[int]) -> Arrived:
    """Make the accounts in the target, in its transaction."""
    arrived = Arrived()
    for number, name, *rest in source.execute(ACCOUNT, [list(missing)]).fetchall():
        given = free_name(target, name, number)
        target.execute(INSERT, [number, given, *rest])
        arrived.new += 1
        if given != name:
            arrived.renamed[name] = given
    for table, columns in BELONGINGS.items():
        _bring_belongings(source, target, missing, table, columns)
    return arrived


def free_name(target: Any, name: str, number: int) -> str:
    """The name, or with the account's number where somebody has it there."""
    if not target.execute(TAKEN, [name]).fetchone()[0]:
        return name
    ending = f"-{number}"
    return name[: LONGEST - len(ending)] + ending


def _bring_belongings(source: Any, target: Any, ids: Sequence[int], table: str, columns: str) -> None:
    query = f"SELECT user_id, {columns} FROM {table} WHERE user_id = ANY(%s)"  # noqa: S608
    rows = source.execute(query, [list(ids)]).fetchall()
    places = ", ".join(["%s"] * (1 + len(columns.split(", "))))
    with target.cursor() as writing:
        writing.executemany(
            f"INSERT INTO {table} (user_id, {columns}) VALUES ({places}) ON CONFLICT DO NOTHING",  # noqa: S608
            [[_as_parameter(value) for value in row] for row in rows],
        )


def _as_parameter(value: Any) -> Any:
    return jsonb(value) if isinstance(value, dict | list) else value
