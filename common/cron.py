"""Cron expressions in a time zone: when they are due, and what daylight saving does to them.

Five fields, as Debian's cron reads them. An expression with fixed hours and minutes goes by the clock on the
wall: a time that does not exist is due at the first minute after the gap, one that comes twice only the first
time. One whose hours or minutes begin with a star goes by the time that passes: what does not exist is left
out, what comes twice is due twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

LONGEST = 100  # characters of an expression
FIELDS = 5
LOOK_AHEAD = timedelta(days=400)  # in which a zone's next changes of the clock are looked for
NO_ZONES = {"Factory", "localtime"}  # in the list of zones, and none: a machine's own, and a placeholder


class BadCron(ValueError):
    """This is no cron expression, or none that is ever due."""


class BadZone(ValueError):
    """No time zone has this name."""


@cache
def zones() -> frozenset[str]:
    """The names of the time zones there are."""
    return frozenset(available_timezones() - NO_ZONES)


def zone(name: str) -> ZoneInfo:
    """The time zone of this name. Raises BadZone."""
    if name not in zones():
        raise BadZone(name)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadZone(name) from error


def checked(expression: str, zone: ZoneInfo, now: datetime) -> str:
    """The expression with single spaces. Raises BadCron."""
    fields = expression.split()
    if len(expression) > LONGEST or len(fields) != FIELDS or not expression.isascii():
        raise BadCron(expression)
    clean = " ".join(fields)
    try:
        first = next(upcoming(clean, zone, now), None)
    except CronSimError as error:
        raise BadCron(expression) from error
    if first is None:
        raise BadCron(expression)
    return clean


def upcoming(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The times after `after` at which the expression is due, in UTC, each once and in order."""
    last = after.astimezone(UTC)
    try:
        for found in CronSim(expression, after.astimezone(zone)):
            moment = found.astimezone(UTC)
            if moment > last:  # within the hour that comes twice, the first of it is over
                yield moment
                last = moment
    except OverflowError:  # the calendar ends with the year 9999
        return


def by_the_wall(expression: str) -> bool:
    """Whether the expression names hours and minutes, so that daylight saving moves them."""
    minute, hour, *_ = expression.split()
    return not minute.startswith("*") and not hour.startswith("*")


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which the clock there shows this, in UTC; what has a zone of its own is that moment.

    By the same rule as expressions: after a gap, and the first of two.
    """
    if wall.tzinfo is not None:
        return wall.astimezone(UTC)
    there = wall.replace(tzinfo=zone, fold=0)
    while there.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wall:
        wall = wall.replace(second=0, microsecond=0) + timedelta(minutes=1)
        there = wall.replace(tzinfo=zone, fold=0)
    return there.astimezone(UTC)


@dataclass(frozen=True)
class Shift:
    """The clock is changed: at this moment it goes from one time on the wall to another."""

    at: datetime
    before: datetime
    after: datetime

    @property
    def forward(self) -> bool:
        return self.after > self.before


def shifts(zone: ZoneInfo, after: datetime) -> list[Shift]:
    """The changes of the clock in the coming year and a bit."""
    found: list[Shift] = []
    day = after.astimezone(UTC).replace(second=0, microsecond=0)
    end = day + LOOK_AHEAD
    while day < end:
        tomorrow = day + timedelta(days=1)
        if _offset(day, zone) != _offset(tomorrow, zone):
            found.append(_between(day, tomorrow, zone))
        day = tomorrow
    return found


def _between(low: datetime, high: datetime, zone: ZoneInfo) -> Shift:
    before, after = _offset(low, zone), _offset(high, zone)
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) // 2
        middle = middle.replace(second=0, microsecond=0)
        if _offset(middle, zone) == before:
            low = middle
        else:
            high = middle
    wall = high.replace(tzinfo=None)
    return Shift(high, wall + before, wall + after)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()
