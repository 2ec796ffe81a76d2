"""Whose message comes next: what people wait for before the rest, and organizations in turn.

A message has a priority and an organization. Those that people wait for are taken first, but every fourth or
so is one of the rest while there are any. Within a priority, organizations take turns by their ids, from the
one that follows whoever had the last turn. The index finds an organization's oldest message, and the next
organization, with one look each, however many messages there are.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from groups.cells import NOT_TO_BEGIN

PEOPLE, BACKGROUND = 0, 1  # priorities
NOBODY = "-"  # where an organization's id would be: of the installation
SHARE = 3  # messages of people to one of the background, while there are both

# Who takes messages has no use for any other plan, whatever the statistics of a table that empties say.
PLAIN = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan"

# The organizations with a message that is due, from the one after `last` on and round, no more than wanted.
# now(), here the time of the statement: clock_timestamp() would keep the index from being used.
WALK = """
    SELECT organization_id FROM (
        WITH RECURSIVE {name}_after AS (
            (SELECT organization_id, due_at FROM runs_queuemessage
             WHERE queue = %(queue)s AND priority = {priority} AND organization_id > {last}
             ORDER BY organization_id, due_at LIMIT 1)
            UNION ALL
            SELECT following.* FROM {name}_after walked, LATERAL (
                SELECT m.organization_id, m.due_at FROM runs_queuemessage m
                WHERE m.queue = %(queue)s AND m.priority = {priority}
                  AND m.organization_id > walked.organization_id
                ORDER BY m.organization_id, m.due_at LIMIT 1) following)
        SELECT organization_id, due_at FROM {name}_after) after
    WHERE due_at <= now() AND NOT {after_away}
    UNION ALL
    SELECT organization_id FROM (
        WITH RECURSIVE {name}_before AS (
            (SELECT organization_id, due_at FROM runs_queuemessage
             WHERE queue = %(queue)s AND priority = {priority} AND organization_id <= {last}
             ORDER BY organization_id, due_at LIMIT 1)
            UNION ALL
            SELECT following.* FROM {name}_before walked, LATERAL (
                SELECT m.organization_id, m.due_at FROM runs_queuemessage m
                WHERE m.queue = %(queue)s AND m.priority = {priority}
                  AND m.organization_id > walked.organization_id AND m.organization_id <= {last}
                ORDER BY m.organization_id, m.due_at LIMIT 1) following)
        SELECT organization_id, due_at FROM {name}_before) before
    WHERE due_at <= now() AND NOT {before_away}
    LIMIT {room}
"""
AN_ERRAND = "strpos(%(queue)s, '.') > 0"  # a lane of errands, which act outside (runs/models/queue.py)
AWAYS = {f"{part}_away": NOT_TO_BEGIN.format(part, AN_ERRAND) for part in ("after", "before")}
# Each of them gets the same number of places. What another is just taking is passed over.
CHOOSE = """
{name}_whose AS MATERIALIZED (
    SELECT organization_id, row_number() OVER () AS turn FROM ({walk}) walk),
{name} AS MATERIALIZED (
    SELECT chosen.id, whose.organization_id, whose.turn
    FROM {name}_whose whose, LATERAL (
        SELECT m.id FROM runs_queuemessage m
        WHERE m.queue = %(queue)s AND m.priority = {priority} AND m.organization_id = whose.organization_id
          AND m.due_at <= now()
        ORDER BY m.due_at, m.id
        LIMIT (SELECT ceil({room}::float8 / GREATEST(count(*), 1))::int FROM {name}_whose)
        FOR UPDATE SKIP LOCKED) chosen
    LIMIT {room})
"""


def choose(name: str, room: str) -> str:
    """The CTEs that choose up to `room` messages of the priority that the parameter of this name has."""
    places = {"name": name, "priority": f"%({name})s", "last": f"%({name}_last)s", "room": room}
    return CHOOSE.format(walk=WALK.format(**places, **AWAYS), **places)


TAKE = f"""
WITH {choose("first", "%(first_room)s")},
left_over AS MATERIALIZED (SELECT %(room)s - count(*) AS room FROM first),
{choose("second", "(SELECT room FROM left_over)")},
chosen AS MATERIALIZED (
    SELECT id, organization_id, turn, %(first)s AS priority FROM first
    UNION ALL SELECT id, organization_id, turn, %(second)s FROM second),
taken AS (
    UPDATE runs_queuemessage SET due_at = now() + %(lease)s * interval '1 second', holder = %(holder)s
    WHERE id = ANY(ARRAY(SELECT id FROM chosen))
    RETURNING id, payload
)
SELECT id, payload, organization_id, chosen.priority, turn FROM taken JOIN chosen USING (id)
UNION ALL
SELECT NULL, (SELECT EXTRACT(epoch FROM min(due_at) - now())::text FROM runs_queuemessage
              WHERE queue = %(queue)s AND later AND due_at > now()),
       NULL, (SELECT count(*) FROM first_whose), (SELECT count(*) FROM second_whose)
"""  # noqa: S608 - the text above


class Turn(NamedTuple):
    """Whose a message is, and its priority."""

    organization_id: str
    priority: int


class Turns:
    """Whose turn it is for one who takes messages. `more`: whether there may be more to take at once."""

    def __init__(self) -> None:
        self.last = {PEOPLE: "", BACKGROUND: ""}  # the organizations that had the last turns
        self.owed = 0  # messages of people since the background had its turn
        self.room = self.first_room = 0
        self.first = PEOPLE
        self.more = False

    def ask(self, room: int) -> dict[str, Any]:
        """TAKE's values for so many messages; those of queue, holder and lease are to be added."""
        self.room = self.first_room = room
        self.first = BACKGROUND if self.owed >= SHARE else PEOPLE
        if self.first == BACKGROUND:
            self.first_room = min(room, self.owed // SHARE)
        second = BACKGROUND - self.first
        return {
            "room": room,
            "first": self.first,
            "first_room": self.first_room,
            "first_last": self.last[self.first],
            "second": second,
            "second_last": self.last[second],
        }

    def told(self, found: Sequence[Any]) -> tuple[list[tuple[int, str]], float | None]:
        """What TAKE gave: the messages (number, payload) in their order, and the seconds until a later one
        is due, None where none is to come.
        """
        *taken, (_, until, _, whose_first, whose_second) = found
        first = [row for row in taken if row[3] == self.first]
        second = [row for row in taken if row[3] != self.first]
        self._count(first, second)
        self.more = len(taken) == self.room or (
            _full(first, self.first_room, whose_first) or _full(second, self.room - len(first), whose_second)
        )
        ordered = [(number, payload) for number, payload, *_ in [*_in_turn(first), *_in_turn(second)]]
        return ordered, None if until is None else float(until)

    def _count(self, first: list[Any], second: list[Any]) -> None:
        of_people = len(first if self.first == PEOPLE else second)
        self.owed = of_people if self.first == BACKGROUND else self.owed + of_people
        for priority, rows in ((self.first, first), (BACKGROUND - self.first, second)):
            if rows:
                self.last[priority] = max(rows, key=lambda row: int(row[4]))[2]


def _full(rows: list[Any], room: int, whose: int) -> bool:
    """Whether some organization has taken all of its places, so that it may have more."""
    if not rows:
        return False
    share = -(-room // max(whose, 1))
    by = [row[2] for row in rows]
    return whose >= room or any(by.count(organization) >= share for organization in set(by))


def _in_turn(rows: list[Any]) -> list[Any]:
    """Each organization's first message, then each one's second, and so on."""
    seen: dict[str, int] = {}
    ranked = []
    for row in sorted(rows, key=lambda row: int(row[0])):
        seen[row[2]] = seen.get(row[2], 0) + 1
        ranked.append((seen[row[2]], row[4], row))
    return [row for *_, row in sorted(ranked, key=lambda one: one[:2])]
