"""What the sweep does for carriers' work: brings back what a dead carrier held, and what nobody woke.

It re-queues and marks by the clock; what a run does next is the run's own business.
"""

from django.conf import settings

from common import notifications
from common.db import execute, row, rows
from groups.cells import AWAY
from runs.models.queue import lanes
from runs.outbound import packing
from runs.outbound.calls import CHANNEL
from runs.queue import put

HOLDER_GONE = f"""
    c.holder <> '' AND c.answered_at IS NULL AND NOT EXISTS (
        SELECT FROM runs_carrier k WHERE k.name = c.holder AND k.lease_expires_at > now())
    AND NOT {AWAY.format("c")}
"""
# A question to a model is asked again; the call of a tool may have had its effect.
ASK_AGAIN = f"""
UPDATE runs_outboundcall c SET holder = '', begun_at = NULL WHERE id = ANY(ARRAY(
    SELECT id FROM runs_outboundcall c WHERE kind = 'model' AND {HOLDER_GONE} FOR UPDATE SKIP LOCKED))
"""  # noqa: S608 - the text above
MARK = """
UPDATE runs_outboundcall SET answer = %s, answered_at = clock_timestamp() WHERE id = ANY(ARRAY(
    SELECT id FROM runs_outboundcall c WHERE {which} FOR UPDATE SKIP LOCKED))
RETURNING run_id
"""
TOOL_LOST = f"kind = 'tool' AND {HOLDER_GONE}"
TOOLS_OF = """
UPDATE runs_outboundcall SET answer = %s, answered_at = COALESCE(answered_at, clock_timestamp())
WHERE run_id = %s AND kind = 'tool' AND (answered_at IS NULL OR answer = ANY(%s))
RETURNING call_id
"""
TIME_OVER = f"c.holder = '' AND c.answered_at IS NULL AND c.expires_at < now() AND NOT {AWAY.format('c')}"
NO_MESSAGE = "NOT EXISTS (SELECT FROM runs_queuemessage m WHERE m.run_id = {run} AND m.due_at <= now())"
# Answered, and not taken up since: the worker that was woken has died.
UNHEARD = f"""
SELECT DISTINCT c.run_id FROM runs_outboundcall c
WHERE c.answered_at < now() - %s * interval '1 second' AND {NO_MESSAGE.format(run="c.run_id")}
    AND NOT {AWAY.format("c")}
    AND NOT EXISTS (SELECT FROM runs_outboundcall o WHERE o.run_id = c.run_id AND o.answered_at IS NULL)
LIMIT %s
"""  # noqa: S608
# Held by no worker, with nothing to wait for: a question was taken back, and its message is lost.
IN_NO_HANDS = f"""
SELECT r.id FROM runs_run r
WHERE r.status = 'running' AND r.driver = 'internal' AND r.lease_expires_at IS NULL
    AND NOT {AWAY.format("r")}
    AND NOT EXISTS (SELECT FROM runs_outboundcall c WHERE c.run_id = r.id)
    AND {NO_MESSAGE.format(run="r.id")}
LIMIT %s
"""  # noqa: S608
# Its run has ended, or has been claimed again: nothing will take the answer.
ORPHANS = f"""
DELETE FROM runs_outboundcall c WHERE NOT EXISTS (
    SELECT FROM runs_run r WHERE r.id = c.run_id AND r.status = 'running' AND r.attempt = c.attempt)
    AND NOT {AWAY.format("c")}
"""  # noqa: S608
FORGET = "DELETE FROM runs_carrier WHERE lease_expires_at < now() - interval '1 hour'"
# Of a run that asks nothing any more, what one of its messages begins with. What none does after a day stays.
FORGET_SHOWN = f"""
WITH shown AS (
    SELECT reply, run_id, string_agg(text, '' ORDER BY id) AS said FROM runs_shownwords w
    WHERE created_at > now() - interval '1 day' AND NOT {AWAY.format("w")}
        AND NOT EXISTS (SELECT FROM runs_outboundcall c WHERE c.run_id = w.run_id)
    GROUP BY reply, run_id
)
DELETE FROM runs_shownwords w USING shown JOIN runs_runevent e ON e.run_id = shown.run_id
WHERE w.run_id = shown.run_id AND w.reply = shown.reply AND e.type = 'message.created'
    AND starts_with(e.payload ->> 'content', shown.said)
"""  # noqa: S608
FORGET_FOLLOWERS = "DELETE FROM runs_follower WHERE until < now() - interval '1 minute'"
# Those that had errands: nobody else takes from these lanes.
DEAD = """
SELECT DISTINCT holder FROM runs_queuemessage m
WHERE queue = ANY(%s) AND holder <> '' AND NOT EXISTS (
    SELECT FROM runs_carrier k WHERE k.name = m.holder AND k.lease_expires_at > now())
"""
LEASE_OVER = "UPDATE runs_carrier SET lease_expires_at = now() WHERE name = %s AND lease_expires_at > now()"
ANYTHING = f"""
SELECT EXISTS (SELECT FROM runs_outboundcall c WHERE {HOLDER_GONE})
    OR EXISTS (SELECT FROM runs_outboundcall c WHERE {TIME_OVER})
    OR EXISTS ({UNHEARD}) OR EXISTS ({IN_NO_HANDS}) OR EXISTS ({DEAD})
"""  # noqa: S608


def anything() -> bool:
    """Whether `sweep` would find something."""
    return bool(row(ANYTHING, [settings.LEASE_SECONDS, 1, 1, lanes()])[0])


def dead_carriers() -> list[str]:
    """The names of those that died in the middle of errands."""
    return [name for (name,) in rows(DEAD, [lanes()])]


def end_lease(carrier: str) -> None:
    """This carrier has died: what it held is nobody's at once."""
    execute(LEASE_OVER, [carrier])


def sweep(most: int) -> int:
    """One round, in the caller's transaction; returns how many calls or runs it touched."""
    again = execute(ASK_AGAIN)
    if again:
        notifications.after_commit(CHANNEL)
    woken = {
        run_id
        for which, answer in ((TOOL_LOST, packing.LOST), (TIME_OVER, packing.LATE))
        for (run_id,) in rows(MARK.format(which=which), [packing.text(answer)])
    }
    woken.update(run_id for (run_id,) in rows(UNHEARD, [settings.LEASE_SECONDS, most]))
    woken.update(run_id for (run_id,) in rows(IN_NO_HANDS, [most]))
    for run_id in sorted(woken):
        put.resume(run_id)
    return again + len(woken)


def lose(run_id: str) -> list[str]:
    """Nobody knows what became of the run's calls of tools that have no result; returns their ids."""
    without_result = [packing.text(packing.HELD_BACK), packing.text(packing.LATE)]
    return [call_id for (call_id,) in rows(TOOLS_OF, [packing.text(packing.LOST), run_id, without_result])]


def forget() -> None:
    """Drop what nobody asks for any more: calls of runs that went on, words that have become messages,
    carriers long gone, followers.
    """
    for statement in (ORPHANS, FORGET, FORGET_SHOWN, FORGET_FOLLOWERS):
        execute(statement)
