"""manage.py cell [--number N --address URL]"""

from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from common.db import own_connection, row
from groups.models import Cell, OtherCell
from groups.models.cells import ACCOUNTS, MOST_CELLS
from runs.cells import fence

NEXT_ACCOUNT = """
SELECT setval(numbers, GREATEST(%s, nextval(numbers)))
FROM (SELECT pg_get_serial_sequence('auth_user', 'id')::regclass AS numbers) accounts
"""


class Command(BaseCommand):
    help = (
        "What this installation is among its cells: its number, and the address that people and programs use."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--number", type=int, help=f"0 for the first cell, up to {MOST_CELLS - 1}")
        parser.add_argument(
            "--other",
            nargs=2,
            metavar=("N", "URL"),
            help="another cell: requests with tokens issued there are sent there",
        )
        parser.add_argument("--address", help="such as https://cell-2.example.com")

    def handle(self, *args: Any, **options: Any) -> None:
        number, address = options["number"], options["address"]
        if number is not None or address is not None:
            keep(number, address)
        if options["other"]:
            other(*options["other"])
        found = Cell.objects.first()
        if found is None:
            raise CommandError("This is no cell yet: give its --number and --address.")
        with closing(own_connection()) as own:
            fence.build(own)
        self.stdout.write(f"Cell {found.number}, {found.address}")


def keep(number: int | None, address: str | None) -> Cell:
    """Write what this cell is. Raises CommandError."""
    with transaction.atomic():
        cell = Cell.objects.select_for_update().first()
        if cell is None:
            if number is None or address is None:
                raise CommandError("A new cell takes both --number and --address.")
            cell = Cell(number=checked(number))
        elif number not in (None, cell.number):
            raise CommandError(f"This is cell {cell.number}, and accounts have their numbers from that.")
        cell.address = origin(address) if address is not None else cell.address
        cell.keep_check()
        cell.save()
    return cell


def other(number: str, address: str) -> None:
    """Note where another cell is. Raises CommandError."""
    if not number.isdecimal() or int(number) >= MOST_CELLS:
        raise CommandError(f"--other begins with a number up to {MOST_CELLS - 1}.")
    OtherCell.objects.update_or_create(number=int(number), defaults={"address": origin(address)})


def checked(number: int) -> int:
    """The number, with accounts numbered from it on. Raises CommandError."""
    if not 0 <= number < MOST_CELLS:
        raise CommandError(f"--number is from 0 to {MOST_CELLS - 1}.")
    least = number * ACCOUNTS
    foreign = get_user_model()._default_manager.exclude(pk__gte=least, pk__lt=least + ACCOUNTS)
    if foreign.exists():
        raise CommandError(
            f"There are accounts here that are not numbered as those of cell {number}: a cell gets its "
            "number before its first account. One that has been at work alone can only be cell 0."
        )
    row(NEXT_ACCOUNT, [max(1, least)])
    return number


def origin(address: str) -> str:
    """Raises CommandError."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
        raise CommandError("--address is scheme and host alone, such as https://cell-2.example.com.")
    if parts.username or parts.password:
        raise CommandError("--address is shown to everybody: no user and no password in it.")
    return f"{parts.scheme}://{parts.netloc}"
