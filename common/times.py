"""Points in time and spans as people say them: how long ago, how long still, and the exact time beside."""

from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

# (seconds in one, how it is said, from how many seconds on)
UNITS = (
    (1, gettext_lazy("{count} s"), 0),
    (60, gettext_lazy("{count} min"), 120),
    (3600, gettext_lazy("{count} h"), 7_200),
    (86_400, gettext_lazy("{count} d"), 172_800),
)
PLACE = "\u00a0"  # keeps a number and its unit on one line


def instant(text: Any) -> datetime | None:
    """The point in time that an ISO 8601 text with a zone means, in UTC; None for everything else.

    PostgreSQL takes no zone further away than sixteen hours, and no year beyond 9999 can be computed with.
    """
    try:
        found = parse_datetime(text)
        return found.astimezone(UTC) if found is not None and found.tzinfo is not None else None
    except (TypeError, ValueError, OverflowError):
        return None


def span(seconds: float | None) -> str:
    """A span of time as people say it: 0.4 s, 12 s, 3 min, 5 h, 2 d."""
    if seconds is None:
        return ""
    seconds = max(seconds, 0)
    if seconds < 10:
        return UNITS[0][1].format(count=f"{seconds:.1f}").replace(" ", PLACE)
    size, said, _least = next(unit for unit in reversed(UNITS) if seconds >= unit[2])
    return said.format(count=int(seconds // size)).replace(" ", PLACE)


def between(start: datetime | None, end: datetime | None) -> str:
    """The span from `start` to `end`; empty when one is missing."""
    return span((end - start).total_seconds()) if start and end else ""


def month(back: int = 0) -> tuple[date, date]:
    """The first day of this month, or of one so many months ago, and that of the month after it."""
    today = timezone.localdate()
    count = today.year * 12 + today.month - 1 - back
    first, after = (date(number // 12, number % 12 + 1, 1) for number in (count, count + 1))
    return first, after


def exact(moment: datetime) -> str:
    """The moment to the second, in the reader's language and time zone."""
    local = timezone.localtime(moment)
    return f"{_day(local.date(), get_language())} {local:%H:%M:%S %Z}"


@lru_cache(maxsize=1024)
def _day(day: date, language: str | None) -> str:
    """The moments of a page lie on few days. `language` is the one that is active."""
    return date_format(day, "DATE_FORMAT")


def ago(moment: datetime | None) -> str:
    """How long ago, as HTML with the exact time on hover; a script keeps it current. Empty for None."""
    if moment is None:
        return ""
    return _time(moment, _("{span} ago"), max((timezone.now() - moment).total_seconds(), 0))


def left(moment: datetime | None) -> str:
    """How long until then, as HTML with the exact time on hover. Empty for None."""
    if moment is None:
        return ""
    return _time(moment, _("in {span}"), (moment - timezone.now()).total_seconds(), _("over"))


@lru_cache(maxsize=16)
def _units(language: str | None) -> str:
    """How spans are said, from seconds to days, for the script. `language` is the one that is active."""
    return "|".join(str(said) for _size, said, _least in UNITS)


def _time(moment: datetime, said: str, seconds: float, over: str = "") -> str:
    """`over`: what a moment to come is called once it has passed; a moment in the past has none."""
    return format_html(
        '<time class="dp-when" datetime="{}" title="{}" data-units="{}" data-said="{}" data-over="{}">'
        "{}</time>",
        moment.isoformat(),
        exact(moment),
        _units(get_language()),
        said,
        over,
        over if over and seconds <= 0 else said.format(span=span(seconds)),
    )
