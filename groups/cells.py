"""Whether an organization is in this cell, and where it is otherwise. The one place that says so.

An organization that is here has no row in `groups_move`, which is empty nearly always. What is written is
stopped by the database itself: a trigger on every table that moves (runs/migrations/0043_cells.py) holds a
shared lock of the organization until the transaction ends, and refuses those who come after it has left.
"""

import re
from typing import Any

from common.db import row, rows
from groups.models.tokens import hash_secret

LOCK = "hashtextextended('deputy.cell:' || {}, 0)"  # what writers share, and a move has alone

# Organizations whose work nobody takes here: of a statement over those of many, what is to be left out.
AWAY = """EXISTS (SELECT FROM groups_move away WHERE away.organization_id = {}.organization_id
    AND away.state <> 'leaving' AND (away.until IS NULL OR away.until > now()))"""
# The same, and of those that are about to leave, what acts outside: the condition says what does.
NOT_TO_BEGIN = """EXISTS (SELECT FROM groups_move away WHERE away.organization_id = {}.organization_id
    AND (away.state <> 'leaving' OR {}) AND (away.until IS NULL OR away.until > now()))"""
# Gone, or not here yet: a request is turned away. While it is frozen only writing waits.
ELSEWHERE = """EXISTS (SELECT FROM groups_move away WHERE away.organization_id = {}
    AND away.state IN ('moved', 'arriving'))"""

OF_TOKEN = """
SELECT m.address FROM groups_movedtoken t JOIN groups_move m ON m.organization_id = t.move_id
WHERE t.secret_hash = %s AND m.state = 'moved'
"""  # noqa: S105 - no secret
OF_NUMBER = "SELECT address FROM groups_othercell WHERE number = %s"
OF_PERSON = """
SELECT m.slug, m.name, m.address FROM groups_movedperson p JOIN groups_move m ON m.organization_id = p.move_id
WHERE p.user_id = %s AND m.state = 'moved' ORDER BY m.name
"""
OF_SLUG = "SELECT address FROM groups_move WHERE slug = %s AND state = 'moved' ORDER BY since DESC LIMIT 1"
OWN = "SELECT address FROM groups_cell"
ISSUED_IN = re.compile(r"dpt_(\d{1,3})_")  # the number of the cell that issued the token


def address_of_token(secret: str) -> str | None:
    """The cell of a token that does not work here; None where there is none to name."""
    found = row(OF_TOKEN, [hash_secret(secret)])
    if found is None and (issued := ISSUED_IN.match(secret)):
        found = row(OF_NUMBER, [int(issued[1])])
    return str(found[0]) if found else None


def own_address() -> str | None:
    """This cell's; None where this installation is none."""
    found = row(OWN)
    return str(found[0]) if found else None


def address_of_slug(slug: str) -> str | None:
    """The cell of an organization that was here once."""
    found = row(OF_SLUG, [slug])
    return str(found[0]) if found else None


def organizations_elsewhere(user: Any) -> list[tuple[str, str, str]]:
    """Of the person's organizations, those that have gone: slug, name and the address of their cell."""
    return [tuple(found) for found in rows(OF_PERSON, [user.pk])]
