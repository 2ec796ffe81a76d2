"""Move an organization to another cell: copied while it works, frozen for seconds, and then there instead.

The target's copy is one transaction until everything has arrived. At each moment at most one of the cells
works for the organization:

1. copy     a snapshot, while the organization works; the target's transaction stays open
2. leave    no call that acts outside begins any more, and those under way come to their end
3. freeze   nothing of it is written: this session alone has the lock that its writers share
4. catch up what was written since the snapshot; both cells are compared
5. arrive   the target commits, and leaves alone what has `arriving`
6. switch   the source commits that it has moved; who waited for the lock finds that out
7. begin    the target works

Until 6 the organization is where it was, whatever happens; from then on it is in the target. Whoever calls
again after the command was cut short ends what it began.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from common import sealed
from common.db import own_connection
from groups.cells import LOCK
from groups.models import MoveState
from runs.cells import copying, fence, people, tables
from runs.models.queue import lanes

DRAIN_SECONDS = 60.0  # for calls that act outside to come to their end
LOCK_SECONDS = 2  # for those who are writing to end their transactions
FROZEN_SECONDS = 60  # after which a freeze ends by itself, if whoever moves it does not come back
ATTEMPTS = 10  # at freezing while nothing is under way
BETWEEN_SECONDS = 0.2
CHANNELS = ("deputy_queue", "deputy_errands", "deputy_outbound")  # who takes work listens there

CELL = "SELECT number, address, check_text FROM groups_cell"
MIGRATIONS = "SELECT app || '.' || name FROM django_migrations"
HERE = "SELECT id, name FROM groups_organization WHERE slug = %s"
MOVE = "SELECT organization_id, name, state, address FROM groups_move WHERE organization_id = %s"
GONE = """
SELECT organization_id, name FROM groups_move WHERE slug = %s AND state = 'moved' ORDER BY since DESC LIMIT 1
"""
ALONE = "SELECT pg_try_advisory_lock(hashtextextended('deputy.move:' || %s, 0))"
KEEP = """
INSERT INTO groups_move (organization_id, slug, name, state, address, until, since)
VALUES (%s, %s, %s, %s, %s, now() + %s * interval '1 second', now())
ON CONFLICT (organization_id) DO UPDATE SET slug = EXCLUDED.slug, name = EXCLUDED.name,
    state = EXCLUDED.state, address = EXCLUDED.address, until = EXCLUDED.until, since = now()
"""
FORGET = "DELETE FROM groups_move WHERE organization_id = %s AND state = ANY(%s)"
FORGET_ROUTES = (
    "DELETE FROM groups_movedtoken WHERE move_id = %s",
    "DELETE FROM groups_movedperson WHERE move_id = %s",
)
TOKENS = """
INSERT INTO groups_movedtoken (secret_hash, move_id)
SELECT secret_hash, organization_id FROM groups_token WHERE organization_id = %s AND revoked_at IS NULL
ON CONFLICT (secret_hash) DO UPDATE SET move_id = EXCLUDED.move_id
"""
KNOWN = """
INSERT INTO groups_othercell (number, address) VALUES (%s, %s)
ON CONFLICT (number) DO UPDATE SET address = EXCLUDED.address
"""
HASHES = "SELECT secret_hash FROM groups_movedtoken WHERE move_id = %s"
TOLD = """
INSERT INTO groups_movedtoken (secret_hash, move_id) SELECT unnest(%s::text[]), %s
ON CONFLICT (secret_hash) DO UPDATE SET move_id = EXCLUDED.move_id
"""
PERSONS = """
INSERT INTO groups_movedperson (user_id, move_id)
SELECT user_id, organization_id FROM groups_membership WHERE organization_id = %s AND active
ON CONFLICT (user_id, move_id) DO NOTHING
"""
MOVING = "SELECT set_config('deputy.moving', %s, true)"
# What acts outside and has not come back. A question to a model is not among it: it is asked again.
UNDER_WAY = """
SELECT 'call ' || call_id || ' of ' || run_id FROM runs_outboundcall
WHERE organization_id = %(one)s AND kind = 'tool' AND holder <> '' AND answered_at IS NULL
UNION ALL
SELECT 'call ' || call_id || ' of ' || run_id FROM runs_toolcall
WHERE organization_id = %(one)s AND status = 'running' AND lease_expires_at > now()
UNION ALL
SELECT 'an errand (' || queue || ')' FROM runs_queuemessage
WHERE organization_id = %(one)s AND holder <> '' AND queue = ANY(%(lanes)s)
"""
# In nobody's hands: what the source's workers and carriers had is the target's to take.
LET_GO = (
    "UPDATE runs_run SET lease_expires_at = now() WHERE organization_id = %s AND status = 'running' "
    "AND lease_expires_at IS NOT NULL",
    "UPDATE runs_outboundcall SET holder = '', begun_at = NULL WHERE organization_id = %s AND holder <> '' "
    "AND answered_at IS NULL",
    "UPDATE runs_queuemessage SET holder = '', due_at = now() WHERE organization_id = %s AND holder <> ''",
    "UPDATE runs_approvalnotice SET status = 'pending', holder = '', due_at = now() "
    "WHERE organization_id = %s AND status = 'sending'",
    "UPDATE runs_webhookendpoint SET sending_until = NULL WHERE organization_id = %s",
    # who remembers a catalog of an earlier stay by its version reads it anew
    "UPDATE groups_project SET catalog_version = "
    "GREATEST(catalog_version, EXTRACT(epoch FROM now())::bigint) WHERE organization_id = %s",
)
UNFINISHED = [MoveState.LEAVING.value, MoveState.FROZEN.value]


class CannotMove(Exception):
    """Why the organization stays where it is. Nothing has changed."""


@dataclass
class Report:
    """What a move did. Times in seconds: `copying` while the organization worked, `pause` from the freeze
    until the target works. `rows` by table.
    """

    name: str
    address: str
    copying: float = 0.0
    leaving: float = 0.0
    pause: float = 0.0
    removing: float = 0.0
    rows: dict[str, int] = field(default_factory=dict)
    caught_up: int = 0
    arrived: people.Arrived = field(default_factory=people.Arrived)
    resumed: bool = False


@dataclass(frozen=True)
class Side:
    """A cell: its connection, number and address."""

    connection: Any
    number: int
    address: str
    check_text: str


def move(
    slug: str, to: str, *, drain: float = DRAIN_SECONDS, say: Callable[[str], None] = lambda words: None
) -> Report:
    """Move the organization to the cell whose database is at `to`. Raises CannotMove, and before it nothing
    has changed.
    """
    with _connected(to) as (here, there):
        source, target = _side(here, "this database"), _side(there, "the target")
        check_cells(source, target)
        found = here.execute(HERE, [slug]).fetchone()
        gone = here.execute(GONE, [slug]).fetchone()
        if gone and (found is None or found[0] == gone[0]):
            return _end(source, target, *gone)
        if found is None:
            raise CannotMove(f"There is no organization '{slug}' in this cell.")
        if not here.execute(ALONE, [found[0]]).fetchone()[0]:
            raise CannotMove("Another command is moving it.")
        return Moving(source, target, slug, found[0], found[1], drain, say).run()


@contextmanager
def _connected(to: str) -> Iterator[tuple[Any, Any]]:
    here = own_connection()
    try:
        there = psycopg.connect(to, autocommit=True, connect_timeout=10)
    except psycopg.Error as error:
        here.close()
        raise CannotMove(f"The target's database does not answer: {error}") from None
    try:
        for one in (here, there):
            one.execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET statement_timeout = 0")
            one.execute("SET idle_in_transaction_session_timeout = 0")
        here.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        yield here, there
    finally:
        here.close()
        there.close()


def _side(connection: Any, what: str) -> Side:
    try:
        found = connection.execute(CELL).fetchone()
    except psycopg.errors.UndefinedTable:
        raise CannotMove(f"{what} is no Deputy of this release: run manage.py migrate there.") from None
    if found is None:
        raise CannotMove(f"{what} is no cell yet: run manage.py cell --number N --address URL there.")
    return Side(connection, *found)


def check_cells(source: Side, target: Side) -> None:
    """Raises CannotMove where the target cannot carry on what is here."""
    if source.number == target.number:
        raise CannotMove(f"Both databases are cell {source.number}.")
    for side in (source, target):
        if fence.missing(side.connection):
            raise CannotMove(f"Cell {side.number} lacks triggers: run manage.py cell there once more.")
    try:
        sealed.unseal(target.check_text)
    except sealed.Unreadable:
        raise CannotMove(
            "The target has another SECRET_KEY: what is encrypted here could not be read there. Give it this "
            "one, or put this one into its SECRET_KEY_FALLBACKS, and run manage.py cell there again."
        ) from None
    here, there = ({name for (name,) in each.connection.execute(MIGRATIONS)} for each in (source, target))
    if here != there:
        missing = ", ".join(sorted(here ^ there)[:3])
        raise CannotMove(f"The cells have different releases: bring both up to date ({missing}).")


class Moving:
    """One move, from its checks to its end."""

    def __init__(
        self,
        source: Side,
        target: Side,
        slug: str,
        organization: str,
        name: str,
        drain: float,
        say: Callable[[str], None],
    ) -> None:
        self.source, self.target, self.slug, self.drain, self.say = source, target, slug, drain, say
        self.organization, self.name = organization, name
        self.here, self.there = source.connection, target.connection
        self.report = Report(name, target.address)
        self.since = ""

    def run(self) -> Report:
        try:
            self._check_target()
            self._until_the_switch()
        except copying.Differ as error:
            raise CannotMove(f"What arrived is not what was sent ({error}); try again.") from None
        except people.Collision as error:
            raise CannotMove(str(error)) from None
        except psycopg.Error as error:
            raise CannotMove(
                f"A database did not do what it was asked: {error}. The organization goes on in one of the "
                "cells; call again to end what was begun."
            ) from error
        finally:
            self._unfreeze()
        _begin(self.there, self.organization)
        self.report.pause = time.monotonic() - self.frozen_at
        events = tables.table(tables.EVENTS)
        self.report.rows[tables.EVENTS] = copying.count(self.there, events, self.organization)
        begun = time.monotonic()
        _remove(self.here, self.organization)
        self.report.removing = time.monotonic() - begun
        return self.report

    def _check_target(self) -> None:
        """Raises CannotMove. What an earlier attempt left there is removed."""
        state = self.there.execute(MOVE, [self.organization]).fetchone()
        if state and state[2] == MoveState.ARRIVING:
            self.say("Removing what an earlier attempt left in the target.")
            discard(self.there, self.organization)
        found = self.there.execute(HERE, [self.slug]).fetchone()
        if found:
            raise CannotMove(f"The target has an organization '{self.slug}' already.")
        people.check(
            self.here, self.there, copying.people_of(self.here, self.organization), self.target.number
        )

    def _until_the_switch(self) -> None:
        with self.there.transaction():
            self._announce()
            self._copy()
            self._leave()
            self._freeze()
            self._catch_up()
        try:
            self._switch()
        except psycopg.Error:
            self._undo_arrival()
            raise

    def _announce(self) -> None:
        """In the target's transaction: what comes is not there yet."""
        self.there.execute(MOVING, [self.organization])
        arriving = [self.organization, self.slug, self.name, MoveState.ARRIVING.value, "", None]
        self.there.execute(KEEP, arriving)
        for statement in FORGET_ROUTES:
            self.there.execute(statement, [self.organization])

    def _copy(self) -> None:
        begun = time.monotonic()
        with self.here.transaction():
            self.here.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            (self.since,) = self.here.execute(copying.HORIZON).fetchone()
            self._bring_people()
            for each in tables.tables():
                count = copying.whole(self.here, self.there, each, self.organization)
                self.say(f"{each.name}: {count}") if count else None
            self.report.rows = copying.compare(self.here, self.there, self.organization)
        self.there.execute("SET CONSTRAINTS ALL IMMEDIATE")
        self.there.execute("SET CONSTRAINTS ALL DEFERRED")
        self.report.copying = time.monotonic() - begun

    def _bring_people(self) -> None:
        found = copying.people_of(self.here, self.organization)
        missing = people.check(self.here, self.there, found, self.target.number)
        arrived = people.bring(self.here, self.there, missing)
        self.report.arrived.new += arrived.new
        self.report.arrived.renamed |= arrived.renamed

    def _keep(self, state: MoveState, seconds: float) -> None:
        row = [self.organization, self.slug, self.name, state.value, self.target.address, seconds]
        self.here.execute(KEEP, row)

    def _leave(self) -> None:
        """Wait until nothing is under way whose outcome nobody would know."""
        begun = time.monotonic()
        self._keep(MoveState.LEAVING, self.drain + FROZEN_SECONDS)
        while under_way := self._under_way():
            if time.monotonic() - begun > self.drain:
                raise CannotMove(
                    f"Still under way after {self.drain:.0f} s: {', '.join(under_way[:5])}. The organization "
                    "goes on here; try again later, or with a longer --drain."
                )
            time.sleep(BETWEEN_SECONDS)
        self.report.leaving = time.monotonic() - begun

    def _under_way(self) -> list[str]:
        values = {"one": self.organization, "lanes": lanes()}
        return [words for (words,) in self.here.execute(UNDER_WAY, values)]

    def _freeze(self) -> None:
        for _ in range(ATTEMPTS):
            self.frozen_at = time.monotonic()
            self._keep(MoveState.FROZEN, FROZEN_SECONDS)
            try:
                self.here.execute(f"SELECT pg_advisory_lock({LOCK.format('%s')})", [self.organization])
            except psycopg.errors.LockNotAvailable:
                self._keep(MoveState.LEAVING, self.drain + FROZEN_SECONDS)
                continue
            if not self._under_way():
                return
            self._unlock()
            self._keep(MoveState.LEAVING, self.drain + FROZEN_SECONDS)
            time.sleep(BETWEEN_SECONDS)
        raise CannotMove(
            "Somebody writes to the organization all the time; it goes on here. Try again later."
        )

    def _catch_up(self) -> None:
        self._bring_people()
        for each in tables.tables():
            self.report.caught_up += copying.changes(
                self.here, self.there, each, self.organization, self.since
            )
        self.there.execute("SET CONSTRAINTS ALL IMMEDIATE")
        counted = copying.compare(self.here, self.there, self.organization, self.since)
        self.report.rows |= {name: rows for name, rows in counted.items() if name != tables.EVENTS}
        for statement in LET_GO:
            self.there.execute(statement, [self.organization])

    def _switch(self) -> None:
        """In the session that has the lock: where that was lost, this fails."""
        with self.here.transaction():
            self.here.execute(MOVING, [self.organization])
            self._keep(MoveState.MOVED, None)  # type: ignore[arg-type]
            self.here.execute(KNOWN, [self.target.number, self.target.address])
            self.here.execute(TOKENS, [self.organization])
            self.here.execute(PERSONS, [self.organization])

    def _undo_arrival(self) -> None:
        """The switch failed. Where that is certain, the target's copy goes; otherwise the next call sees."""
        with suppress(psycopg.Error):
            look = own_connection()
            state = look.execute(MOVE, [self.organization]).fetchone()
            look.close()
            if state is None or state[2] != MoveState.MOVED:
                discard(self.there, self.organization)

    def _unfreeze(self) -> None:
        """Nothing to do where the organization has moved, but that nobody need wait for the lock any more."""
        with suppress(psycopg.Error):
            self.here.execute(FORGET, [self.organization, UNFINISHED])
            self._unlock()  # of a lock that it has not, the server only warns

    def _unlock(self) -> None:
        self.here.execute(f"SELECT pg_advisory_unlock({LOCK.format('%s')})", [self.organization])


def tell(slug: str, others: Sequence[str]) -> None:
    """Tell further cells, by their databases' addresses, where an organization that was here has gone, so
    that their directories lead there at once and not by way of this cell. Raises CannotMove.
    """
    for url in others:
        with _connected(url) as (here, other):
            organization, name = here.execute(GONE, [slug]).fetchone()
            address = here.execute(MOVE, [organization]).fetchone()[3]
            if _side(other, "a cell to be told").address == address:
                continue
            hashes = [found for (found,) in here.execute(HASHES, [organization])]
            with other.transaction():
                moved = [organization, slug, name, MoveState.MOVED.value, address, None]
                other.execute(KEEP, moved)
                other.execute(TOLD, [hashes, organization])
                for known in here.execute("SELECT number, address FROM groups_othercell"):
                    other.execute(KNOWN, known)


def _begin(there: Any, organization: str) -> None:
    """The target works from now on."""
    there.execute(FORGET, [organization, [MoveState.ARRIVING.value]])
    for channel in CHANNELS:
        there.execute("SELECT pg_notify(%s, '')", [channel])


def _remove(here: Any, organization: str) -> None:
    """What moved is removed where it was; a note of where it went stays."""
    with here.transaction():
        here.execute("SET LOCAL lock_timeout = '60s'")
        here.execute(MOVING, [organization])
        copying.remove(here, organization)


def discard(there: Any, organization: str) -> None:
    """Remove what has arrived and was never worked for."""
    with there.transaction():
        there.execute(MOVING, [organization])
        copying.remove(there, organization)
        there.execute(FORGET, [organization, [MoveState.ARRIVING.value]])


def _end(source: Side, target: Side, organization: str, name: str) -> Report:
    """The organization has moved; what the command was cut short of is done. Raises CannotMove."""
    state = source.connection.execute(MOVE, [organization]).fetchone()
    if state is None or state[3] != target.address:
        raise CannotMove(f"It has moved to {state[3] if state else 'another cell'} already.")
    _begin(target.connection, organization)
    _remove(source.connection, organization)
    return Report(name, target.address, resumed=True)
