"""How much of the API one caller gets: an allowance in the database, the same for every web process.

An allowance holds a minute's worth of requests and refills steadily. A token has one, a person's session
one, and an address one for whatever nobody signs for; all tokens of a person together have TOKENS times
one's, so that issuing more of them does not help without end. One statement a request, on an unlogged
table: nothing is flushed to disk for it.
"""

from ipaddress import ip_address, ip_network
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from psycopg.errors import DiskFull, ReadOnlySqlTransaction
from rest_framework.throttling import BaseThrottle

from common.api import rate_limits
from common.db import execute, row

# full_at: when the allowance will be whole again. A request moves it by one interval, up to a minute ahead.
TAKE = """
INSERT INTO groups_throttle AS t (key, full_at)
VALUES (%(key)s, clock_timestamp() + %(interval)s * interval '1 second')
ON CONFLICT (key) DO UPDATE
    SET full_at = GREATEST(t.full_at, clock_timestamp()) + %(interval)s * interval '1 second'
    WHERE t.full_at + %(interval)s * interval '1 second'
        <= clock_timestamp() + %(whole)s * interval '1 second'
RETURNING true
"""
# A token's and then its person's, in one statement: who is refused the first takes nothing of the second.
TAKE_BOTH = """
WITH own AS (
    INSERT INTO groups_throttle AS t (key, full_at)
    VALUES (%(key)s, clock_timestamp() + %(interval)s * interval '1 second')
    ON CONFLICT (key) DO UPDATE
        SET full_at = GREATEST(t.full_at, clock_timestamp()) + %(interval)s * interval '1 second'
        WHERE t.full_at + %(interval)s * interval '1 second'
            <= clock_timestamp() + %(whole)s * interval '1 second'
    RETURNING key),
whole AS (
    INSERT INTO groups_throttle AS t (key, full_at)
    SELECT %(person)s, clock_timestamp() + %(person_interval)s * interval '1 second' FROM own
    ON CONFLICT (key) DO UPDATE
        SET full_at = GREATEST(t.full_at, clock_timestamp()) + %(person_interval)s * interval '1 second'
        WHERE t.full_at + %(person_interval)s * interval '1 second'
            <= clock_timestamp() + %(whole)s * interval '1 second'
    RETURNING key)
SELECT (SELECT count(*) FROM own), (SELECT count(*) FROM whole)
"""
LEFT = """
SELECT EXTRACT(epoch FROM full_at + %(interval)s * interval '1 second'
                          - clock_timestamp() - %(whole)s * interval '1 second')::float8
FROM groups_throttle WHERE key = %(key)s
"""
WHOLE = "DELETE FROM groups_throttle WHERE key = %s"
FORGET = "DELETE FROM groups_throttle WHERE full_at < clock_timestamp() - interval '1 minute'"


MINUTE = 60.0
TOKENS = 4  # a person's tokens altogether ask as often as so many
SOON = 0.001  # seconds: an allowance may have refilled since it was found empty


class Allowance(BaseThrottle):
    """DRF's throttle: refuses with 429 and Retry-After."""

    seconds: float = 0.0

    def allow_request(self, request: Any, view: Any) -> bool:
        key, per_minute = self.caller(request)
        if not per_minute:
            return True
        if request.auth is not None:
            self.seconds = take_both(key, f"person {request.user.pk}", per_minute, MINUTE)
        else:
            self.seconds = take(key, per_minute, MINUTE)
        return not self.seconds

    def caller(self, request: Any) -> tuple[str, int]:
        """Whose allowance it is, and how much of it there is a minute; 0: no limit."""
        if request.auth is not None:
            return f"token {request.auth.pk}", settings.API_PER_MINUTE
        if request.user and request.user.is_authenticated:
            return f"user {request.user.pk}", settings.API_PER_MINUTE
        return f"address {network_of(self.get_ident(request))}", settings.API_PER_MINUTE_UNKNOWN

    def headers(self, request: Any, wait: float) -> dict[str, str]:
        """What a refusal tells: the allowance, and when one of it is left."""
        return rate_limits.refused(self.caller(request)[1], MINUTE, wait)

    def wait(self) -> float:
        return max(self.seconds, 0.0)


def take(key: str, most: int, seconds: float) -> float:
    """Take one of an allowance of `most` in so many seconds: 0, or how long until one is left."""
    asked = {"key": key, "interval": seconds / most, "whole": seconds}
    return 0.0 if _taken(TAKE, asked) is not None else _left(asked)


def take_both(key: str, person: str, most: int, seconds: float) -> float:
    """Take one of an allowance of `most`, and one of its person's: 0, or how long until one is left."""
    asked = {"key": key, "interval": seconds / most, "whole": seconds}
    theirs = {"person": person, "person_interval": seconds / (TOKENS * most)}
    own, whole = _taken(TAKE_BOTH, asked | theirs) or (0, 0)
    if own and whole:
        return 0.0
    return _left({**asked, "key": person, "interval": theirs["person_interval"]} if own else asked)


def _left(asked: dict[str, Any]) -> float:
    (left,) = row(LEFT, asked) or (0.0,)
    return max(float(left), SOON)


def give_back(key: str) -> None:
    """Make an allowance whole again."""
    execute(WHOLE, [key])


def _taken(statement: str, asked: dict[str, Any]) -> Any:
    """What the statement gives; as many as are asked for while the database can keep nothing."""
    try:
        return row(statement, asked)
    except DatabaseError as error:
        if isinstance(error.__cause__, (ReadOnlySqlTransaction, DiskFull)):
            return 1, 1
        raise


def network_of(address: str) -> str:
    """The address, or the network a single customer of IPv6 is given; what is no address stays as it is."""
    try:
        found = ip_address((address or "").strip())
    except ValueError:
        return str(address)[:64]
    return str(found) if found.version == 4 else str(ip_network(f"{found}/64", strict=False))


def forget() -> int:
    """Drop the allowances that are whole again; how many. For the sweeper."""
    return execute(FORGET)
