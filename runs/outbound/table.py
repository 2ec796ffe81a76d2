"""The carrier's side of the table: take calls, hold them, write their answers. All of it awaited."""

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from common.db import own_async_connection
from common.ids import shown_words_id
from groups.cells import AWAY, NOT_TO_BEGIN
from runs.models.operations import LEVEL
from runs.models.outbound import OPEN_AT, CallKind
from runs.outbound import following
from runs.providers import keys

# One carrier takes at a time, so that limits hold for all of them together.
TURN = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.outbound', 0))"
LOCK_SECONDS = 2  # nobody's lock holds up a carrier for longer
AGED_SECONDS = 30  # background work that has waited this long goes with what people wait for:
AGED_TURN = 4  # every so many calls one of it

BEAT = f"""
INSERT INTO runs_carrier (name, host, in_flight, started_at, seen_at, lease_expires_at, level)
VALUES (%(name)s, %(host)s, %(in_flight)s, now(), now(), now() + %(lease)s * interval '1 second', {LEVEL})
ON CONFLICT (name) DO UPDATE SET in_flight = EXCLUDED.in_flight, seen_at = EXCLUDED.seen_at,
    lease_expires_at = EXCLUDED.lease_expires_at
"""  # noqa: S608 - a number of our own
GOODBYE = "DELETE FROM runs_carrier WHERE name = %s"
ANYTHING = """
SELECT EXISTS (SELECT FROM runs_outboundcall WHERE holder = '' AND answered_at IS NULL AND due_at <= now())
"""
# The organizations and targets that something waits for come from a loose scan of the index, the first few
# calls of each from the index too: a long queue costs no more than a short one. Then turns: whose
# organization has the fewest under way and before it goes first, as far as each limit allows.
TAKE = f"""
WITH RECURSIVE lanes AS (
    (SELECT organization_id, target, rank FROM runs_outboundcall WHERE holder = '' AND answered_at IS NULL
     ORDER BY organization_id, target, rank LIMIT 1)
    UNION ALL
    SELECT following.* FROM lanes, LATERAL (
        SELECT c.organization_id, c.target, c.rank FROM runs_outboundcall c
        WHERE c.holder = '' AND c.answered_at IS NULL
          AND (c.organization_id, c.target, c.rank) > (lanes.organization_id, lanes.target, lanes.rank)
        ORDER BY c.organization_id, c.target, c.rank LIMIT 1) following
),
flying AS MATERIALIZED (
    SELECT organization_id, target, host, count(*) AS calls FROM runs_outboundcall
    WHERE holder <> '' AND answered_at IS NULL GROUP BY 1, 2, 3
),
of_organization AS (SELECT organization_id, sum(calls) AS calls FROM flying GROUP BY 1),
of_target AS (SELECT target, sum(calls) AS calls FROM flying GROUP BY 1),
of_host AS (SELECT host, sum(calls) AS calls FROM flying GROUP BY 1),
waiting AS (
    SELECT first.*, COALESCE(o.calls, 0) AS organization_calls,
        LEAST(%(organization)s, g.calls_limit) AS organization_most,
        row_number() OVER (PARTITION BY first.organization_id, first.rank ORDER BY first.id)
            * CASE WHEN first.rank > 0 AND first.urgent THEN %(aged_turn)s ELSE 1 END
            + COALESCE(o.calls, 0) AS turn
    FROM lanes
    LEFT JOIN of_organization o ON o.organization_id = lanes.organization_id
    LEFT JOIN groups_organization g ON g.id = lanes.organization_id
    JOIN LATERAL (
        SELECT c.id, c.organization_id, c.target, c.host, c.rank, c.threaded, c.most, c.host_most,
               c.rank = 0 OR c.due_at < now() - %(aged)s * interval '1 second' AS urgent
        FROM runs_outboundcall c
        WHERE c.organization_id = lanes.organization_id AND c.target = lanes.target AND c.rank = lanes.rank
          AND c.holder = '' AND c.answered_at IS NULL AND c.due_at <= now()
          AND NOT {NOT_TO_BEGIN.format("c", "c.kind = 'tool'")}
        -- no more than its organization may begin: what waits behind its limit costs the others nothing
        ORDER BY c.id LIMIT GREATEST(
            0, LEAST(%(room)s, LEAST(%(organization)s, g.calls_limit) - COALESCE(o.calls, 0)))
    ) first ON true
    WHERE NOT EXISTS (SELECT FROM runs_outboundtarget t
                      WHERE t.target = lanes.target AND t.paused_until > now())
),
within_target AS (
    SELECT * FROM (
        SELECT w.*, row_number() OVER (PARTITION BY w.target ORDER BY w.urgent DESC, w.turn, w.id)
                + COALESCE(t.calls, 0)
            <= CASE WHEN s.failures >= %(open)s THEN 1 ELSE w.most END AS target_fits
        FROM waiting w LEFT JOIN of_target t ON t.target = w.target
        LEFT JOIN runs_outboundtarget s ON s.target = w.target
    ) targeted WHERE target_fits
),
within_host AS (
    SELECT * FROM (
        SELECT w.*, row_number() OVER (PARTITION BY w.host ORDER BY w.urgent DESC, w.turn, w.id)
                + COALESCE(h.calls, 0) <= w.host_most AS host_fits
        FROM within_target w LEFT JOIN of_host h ON h.host = w.host
    ) hosted WHERE host_fits
),
within_organization AS (
    SELECT * FROM (
        SELECT w.*, row_number() OVER (PARTITION BY w.organization_id ORDER BY w.urgent DESC, w.turn, w.id)
                + w.organization_calls <= w.organization_most AS organization_fits
        FROM within_host w
    ) organized WHERE organization_fits
),
chosen AS (
    SELECT id FROM (
        SELECT w.*, row_number() OVER (PARTITION BY threaded ORDER BY urgent DESC, turn, id)
            <= CASE WHEN threaded THEN %(threads)s ELSE %(room)s END AS roomy
        FROM within_organization w
    ) roomed WHERE roomy ORDER BY urgent DESC, turn, id LIMIT %(room)s
)
UPDATE runs_outboundcall c SET holder = %(name)s, begun_at = clock_timestamp()
WHERE id = ANY(ARRAY(SELECT id FROM runs_outboundcall
                     WHERE id IN (SELECT id FROM chosen) AND holder = '' AND answered_at IS NULL
                     FOR UPDATE SKIP LOCKED))
RETURNING id, organization_id, run_id, root_id, kind, call_id, target, rank, threaded, request, receipt,
    seconds, EXTRACT(epoch FROM expires_at - clock_timestamp())::float8,
    EXISTS (SELECT FROM runs_outboundtarget t WHERE t.target = c.target),
    (SELECT ARRAY[k.sealed_key, k.base_url] FROM runs_modelkey k
     WHERE c.kind = 'model' AND k.organization_id = c.organization_id
       AND k.provider = split_part(replace(c.target, c.organization_id || '/', ''), ':', 1))
"""  # noqa: S608 - our own text
NEXT_DUE = """
SELECT EXTRACT(epoch FROM LEAST(
    (SELECT min(due_at) FROM runs_outboundcall WHERE holder = '' AND answered_at IS NULL AND due_at > now()),
    (SELECT min(paused_until) FROM runs_outboundtarget WHERE paused_until > now())
) - now())::float8
"""
HELD = "SELECT id FROM runs_outboundcall WHERE holder = %s AND answered_at IS NULL"
# The message that wakes the run commits with its answer. What nobody holds for us any more is not written,
# and what somebody has locked (a cancel that is under way), or is frozen with its organization, neither: it
# is looked at again.
ANSWER = f"""
WITH ours AS (
    SELECT id FROM runs_outboundcall
    WHERE id = ANY(%(ids)s) AND holder = %(name)s AND answered_at IS NULL
), free AS (
    SELECT id FROM runs_outboundcall
    WHERE id = ANY(%(ids)s) AND holder = %(name)s AND answered_at IS NULL
        AND NOT {AWAY.format("runs_outboundcall")} FOR UPDATE SKIP LOCKED
), answers AS (
    UPDATE runs_outboundcall c SET answer = a.answer, answered_at = clock_timestamp()
    FROM unnest(%(ids)s::bigint[], %(answers)s::text[]) AS a (id, answer), free
    WHERE c.id = a.id AND c.id = free.id
    RETURNING c.id, c.run_id, c.wake, c.organization_id, c.rank
), woken AS (
    INSERT INTO runs_queuemessage (queue, payload, run_id, organization_id, priority, due_at)
    SELECT %(queue)s, wake, run_id, organization_id, rank, clock_timestamp() FROM answers
)
SELECT ours.id, answers.id IS NOT NULL FROM ours LEFT JOIN answers ON answers.id = ours.id
"""  # noqa: S608
EVIDENCE = """
UPDATE runs_toolcall SET evidence = %s WHERE run_id = %s AND call_id = %s AND ended_at IS NULL
"""
GIVE_BACK = """
UPDATE runs_outboundcall SET holder = '', begun_at = NULL
WHERE id = ANY(%s) AND holder = %s AND answered_at IS NULL
"""
GIVE_BACK_OTHERS = """
UPDATE runs_outboundcall SET holder = '', begun_at = NULL
WHERE holder = %s AND answered_at IS NULL AND NOT id = ANY(%s)
"""
FAILED = """
INSERT INTO runs_outboundtarget (target, failures, reason, paused_until, changed_at)
VALUES (%(target)s, %(failures)s, %(reason)s, now() + %(pause)s * interval '1 second', now())
ON CONFLICT (target) DO UPDATE SET failures = runs_outboundtarget.failures + EXCLUDED.failures,
    reason = EXCLUDED.reason, changed_at = EXCLUDED.changed_at,
    paused_until = GREATEST(runs_outboundtarget.paused_until, EXCLUDED.paused_until)
RETURNING failures
"""
PAUSE = """
UPDATE runs_outboundtarget SET paused_until = GREATEST(paused_until, now() + %s * interval '1 second')
WHERE target = %s
"""
WORKS = "DELETE FROM runs_outboundtarget WHERE target = ANY(%s) AND NOT COALESCE(paused_until > now(), false)"
TROUBLED = "SELECT target FROM runs_outboundtarget"
FOLLOWED = "SELECT root_id FROM runs_follower WHERE root_id = ANY(%s) AND until > now()"
# What is told is kept in the same commit, and of what nobody holds for us any more nothing is told.
TELL = f"""
WITH kept AS (
    INSERT INTO runs_shownwords (id, organization_id, run_id, reply, text)
    SELECT w.id, c.organization_id, c.run_id, w.reply, w.text
    FROM unnest(%(ids)s::text[], %(calls)s::bigint[], %(replies)s::text[], %(texts)s::text[])
        AS w (id, call, reply, text)
    JOIN runs_outboundcall c ON c.id = w.call
    WHERE c.holder = %(name)s AND c.answered_at IS NULL AND NOT {AWAY.format("c")}
    RETURNING reply
), due AS (
    SELECT said FROM unnest(%(of)s::text[], %(said)s::text[]) WITH ORDINALITY AS d (reply, said, place)
    JOIN kept USING (reply) ORDER BY place
)
SELECT pg_notify(%(channel)s, said) FROM due
"""  # noqa: S608
NOTIFY = "SELECT pg_notify(channel, payload) FROM unnest(%s::text[], %s::text[]) AS due (channel, payload)"


@dataclass(frozen=True, slots=True)
class Taken:
    """A call this carrier holds. `left` are the seconds until its run's time is over, None for no end;
    `troubled`: failures or a pause of its target are on record; `set_here` is what its organization has set
    for the model's provider, its key still sealed.
    """

    id: int
    organization_id: str
    run_id: str
    root_id: str
    kind: str
    call_id: str
    target: str
    rank: int
    threaded: bool
    request: str
    receipt: str
    seconds: float
    left: float | None
    troubled: bool = False
    set_here: list[str] | None = None

    @property
    def of_model(self) -> bool:
        return self.kind == CallKind.MODEL

    @property
    def model(self) -> str:
        """The model, or the tool, whoever's key it is asked by."""
        return self.target.removeprefix(f"{self.organization_id}/")

    @property
    def own(self) -> keys.Own | None:
        """What the organization has set for the model's provider."""
        return keys.read(*self.set_here) if self.set_here else None

    @property
    def limit(self) -> float:
        """Seconds it may take from now on."""
        return self.seconds if self.left is None else max(0.0, min(self.seconds, self.left))


@dataclass(frozen=True, slots=True)
class Telling:
    """Words of a call, of one moment. `reply`: all that this carrier tells of it."""

    call: int
    reply: str
    text: str
    notifications: list[str]


def told(name: str, in_flight: int) -> dict[str, Any]:
    """The values of BEAT: this carrier lives, and holds what it holds for LEASE_SECONDS more."""
    lease = settings.LEASE_SECONDS
    return {"name": name, "host": socket.gethostname()[:200], "in_flight": in_flight, "lease": lease}


class Table:
    """One connection for all that a carrier reads and writes; opened again after it was lost."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._connection: Any = None

    async def connection(self) -> Any:
        if self._connection is None or self._connection.closed:
            self._connection = await own_async_connection()
            self._connection.prepare_threshold = 1
            await self._connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        return self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _rows(self, sql: str, values: Any = ()) -> list[Any]:
        return list(await (await (await self.connection()).execute(sql, values)).fetchall())

    async def _do(self, sql: str, values: Any = ()) -> None:
        await (await self.connection()).execute(sql, values)

    async def take(self, room: int, threads: int, in_flight: int) -> tuple[list[Taken], float | None]:
        """Calls to carry, and the seconds until there may be others by the clock; None for no such time."""
        if (await self._rows(ANYTHING))[0][0]:
            own = await self.connection()
            async with own.transaction():
                await own.execute(TURN)
                await own.execute(BEAT, told(self.name, in_flight))
                values = {
                    "room": room,
                    "threads": threads,
                    "aged": AGED_SECONDS,
                    "aged_turn": AGED_TURN,
                    "organization": settings.ORGANIZATION_CALLS,
                    "open": OPEN_AT,
                    "name": self.name,
                }
                found = await self._rows(TAKE, values)
        else:
            found = []
        taken = sorted((Taken(*one) for one in found), key=lambda call: (call.rank, call.id))
        return taken, (await self._rows(NEXT_DUE))[0][0]

    async def held(self) -> set[int]:
        """The calls that are this carrier's; others it has must be let go of."""
        return {number for (number,) in await self._rows(HELD, [self.name])}

    async def answer(self, answers: Sequence[tuple[int, str]], queue: str) -> dict[int, bool]:
        """Write answers and wake their runs, in one commit. Returns the ids of those still wanted, each with
        whether it was written; one that was not, somebody has locked.
        """
        values = {"ids": [number for number, _ in answers], "answers": [answer for _, answer in answers]}
        return dict(await self._rows(ANSWER, values | {"name": self.name, "queue": queue}))

    async def leave_evidence(self, call: Taken, answer: str) -> None:
        """What was learnt of a tool's effect after its run had ended: kept beside the log."""
        await self._do(EVIDENCE, [answer, call.run_id, call.call_id])

    async def give_back(self, ids: list[int]) -> None:
        await self._do(GIVE_BACK, [ids, self.name])

    async def give_back_others(self, ids: list[int]) -> None:
        """All that this carrier has but these. What a lost connection was taking it has by then or never."""
        own = await self.connection()
        async with own.transaction():
            await own.execute(TURN)
            await own.execute(GIVE_BACK_OTHERS, [self.name, ids])

    async def failed(self, target: str, failures: int, reason: str, pause: float) -> int:
        """Note a model's failures and a pause in asking it; returns how many there are in a row now."""
        values = {"target": target, "failures": failures, "reason": reason[:300], "pause": pause}
        return int((await self._rows(FAILED, values))[0][0])

    async def pause(self, target: str, seconds: float) -> None:
        await self._do(PAUSE, [seconds, target])

    async def works(self, targets: Iterable[str]) -> None:
        await self._do(WORKS, [list(targets)])

    async def troubled(self) -> set[str]:
        """The models with failures or a pause on record."""
        return {target for (target,) in await self._rows(TROUBLED)}

    async def followed(self, roots: Iterable[str]) -> set[str]:
        """Those of the trees that somebody follows."""
        return {root for (root,) in await self._rows(FOLLOWED, [list(roots)])}

    async def tell(self, tellings: Sequence[Telling]) -> None:
        """Words of models to who follows their runs, kept with it; of a reply once at most."""
        said = [(each.reply, part) for each in tellings for part in each.notifications]
        values = {
            "ids": [shown_words_id() for _ in tellings],
            "calls": [each.call for each in tellings],
            "replies": [each.reply for each in tellings],
            "texts": [each.text for each in tellings],
            "of": [reply for reply, _ in said],
            "said": [part for _, part in said],
            "channel": following.CHANNEL,
            "name": self.name,
        }
        await self._do(TELL, values)

    async def notify(self, notifications: Sequence[tuple[str, str]]) -> None:
        await self._do(NOTIFY, [list(part) for part in zip(*notifications, strict=True)])

    async def leave(self) -> None:
        await self._do(GOODBYE, [self.name])
