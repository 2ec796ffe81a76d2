"""Who follows a tree of runs, and how its models' words reach them."""

import json
from dataclasses import dataclass

CHANNEL = "deputy_deltas"
FOLLOW = "deputy_follow"  # says the root of a tree that somebody has begun to follow
KEPT_SECONDS = 30  # a follower says so again, more often than this

# Carriers hear of it at once, and find it in the table should the notification be lost.
ANNOUNCE = f"""
INSERT INTO runs_follower (root_id, until)
SELECT unnest(%s::text[]), now() + {KEPT_SECONDS} * interval '1 second'
ON CONFLICT (root_id) DO UPDATE SET until = EXCLUDED.until
RETURNING pg_notify('{FOLLOW}', root_id)
"""


@dataclass(frozen=True, slots=True)
class Delta:
    """Some words of a model that is still speaking. `after` is the last seq of its run's log it had seen."""

    root_id: str
    run_id: str
    after: int
    agent: str
    text: str


def read(payload: str) -> Delta | None:
    """The notification's words; None for what is no such notification."""
    try:
        return Delta(*json.loads(payload))
    except (ValueError, TypeError):
        return None
