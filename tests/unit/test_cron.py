"""When cron expressions are due: daylight saving both ways, leap days, and what is no expression."""

import random
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from common import cron

BERLIN = ZoneInfo("Europe/Berlin")  # in 2027 forward on 28 March at 2:00, back on 31 October at 3:00
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def walls(expression, place, after, count):
    """The next times, as the clock there shows them."""
    found = islice(cron.upcoming(expression, place, after), count)
    return [moment.astimezone(place).strftime("%m-%d %H:%M %z") for moment in found]


def at(place, *numbers, fold=0):
    return datetime(*numbers, tzinfo=place, fold=fold)


def test_a_time_in_the_hour_that_does_not_exist_is_due_right_after_it():
    found = walls("30 2 * * *", BERLIN, at(BERLIN, 2027, 3, 26, 12), 3)
    assert found == ["03-27 02:30 +0100", "03-28 03:00 +0200", "03-29 02:30 +0200"]


def test_a_time_in_the_hour_that_comes_twice_is_due_the_first_time():
    found = walls("30 2 * * *", BERLIN, at(BERLIN, 2027, 10, 30, 12), 2)
    assert found == ["10-31 02:30 +0200", "11-01 02:30 +0100"]


def test_looked_at_within_the_second_of_the_two_hours_the_first_is_over():
    found = walls("30 2 * * *", BERLIN, at(BERLIN, 2027, 10, 31, 2, 15, fold=1), 1)
    assert found == ["11-01 02:30 +0100"]


def test_two_times_of_the_missing_hour_are_one():
    found = walls("0,30 2 * * *", BERLIN, at(BERLIN, 2027, 3, 27, 12), 3)
    assert found == ["03-28 03:00 +0200", "03-29 02:00 +0200", "03-29 02:30 +0200"]


def test_every_hour_goes_by_the_time_that_passes():
    spring = list(islice(cron.upcoming("0 * * * *", BERLIN, at(BERLIN, 2027, 3, 28, 0, 30)), 4))
    autumn = list(islice(cron.upcoming("0 * * * *", BERLIN, at(BERLIN, 2027, 10, 31, 0, 30)), 4))
    for found in (spring, autumn):
        assert {b - a for a, b in pairwise(found)} == {timedelta(hours=1)}
    assert walls("0 * * * *", BERLIN, at(BERLIN, 2027, 10, 31, 0, 30), 4)[1:3] == [
        "10-31 02:00 +0200",
        "10-31 02:00 +0100",
    ]


def test_a_leap_day():
    found = walls("0 9 29 2 *", BERLIN, NOW, 2)
    assert found == ["02-29 09:00 +0100", "02-29 09:00 +0100"]
    years = [m.year for m in islice(cron.upcoming("0 9 29 2 *", BERLIN, NOW), 2)]
    assert years == [2028, 2032]


def test_the_calendar_ends_and_is_no_error():
    found = list(cron.upcoming("0 9 29 2 *", BERLIN, NOW))
    assert found[-1].year == 9996


def test_a_month_without_the_day_is_left_out():
    found = [m.month for m in islice(cron.upcoming("0 9 31 * *", BERLIN, NOW), 3)]
    assert found == [12, 1, 3]


@pytest.mark.parametrize("start", [datetime(2027, 3, 5, tzinfo=UTC), datetime(2027, 4, 25, tzinfo=UTC),
                                   datetime(2027, 10, 25, tzinfo=UTC)])  # fmt: skip
@pytest.mark.parametrize("place", ["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Africa/Cairo"])
@pytest.mark.parametrize("expression", ["*/20 * * * *", "7 * * * *", "*/30 3 * * *", "0 */6 1,15 * *"])
def test_what_goes_by_the_time_that_passes_is_what_every_minute_says(place, expression, start):
    """The weeks around the changes of clocks, minute by minute; Cairo changes its clock at midnight."""
    zone = ZoneInfo(place)
    minute, hour, day, *_ = expression.split()
    expected = []
    for number in range(1, 25 * 24 * 60):
        moment = start + timedelta(minutes=number)
        wall = moment.astimezone(zone)
        if all(_matches(f, v) for f, v in ((minute, wall.minute), (hour, wall.hour), (day, wall.day))):
            expected.append(moment)
    found = list(islice(cron.upcoming(expression, zone, start), len(expected)))
    assert expected and found == expected


def _matches(field, value):
    if field.startswith("*/"):
        return value % int(field[2:]) == 0
    return field == "*" or value in map(int, field.split(","))


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "60 * * * *", "0 0 30 2 *", "@daily", "every day", "* * * * 8", "2,1",
     "0 0 L-3 * *", "٣ * * * *", "0 0 * * MON#6", "*/0 * * * *", "1 " * 200],
)  # fmt: skip
def test_what_is_no_expression_or_never_due_is_refused(expression):
    with pytest.raises(cron.BadCron):
        cron.checked(expression, BERLIN, NOW)


def test_whatever_is_written_is_read_or_refused():
    chance = random.Random(19)
    for _ in range(3_000):
        length = chance.randint(1, 12)
        text = " ".join(
            "".join(chance.choices("0159*/-,#LWMONJAN", k=chance.randint(1, length))) for _ in range(5)
        )
        try:
            clean = cron.checked(text, BERLIN, NOW)
        except cron.BadCron:
            continue
        assert next(cron.upcoming(clean, BERLIN, NOW)) > NOW


def test_an_expression_is_kept_with_single_spaces():
    assert cron.checked("  0   9 * * mon-fri ", BERLIN, NOW) == "0 9 * * mon-fri"


@pytest.mark.parametrize("name", ["", "Berlin", "../../etc/passwd", "localtime", "Europe/", "CEST+2"])
def test_a_zone_has_an_iana_name(name):
    with pytest.raises(cron.BadZone):
        cron.zone(name)


def test_a_single_time_follows_the_same_rule():
    assert cron.instant(datetime(2027, 3, 28, 2, 30), BERLIN) == at(BERLIN, 2027, 3, 28, 3, 0)
    assert cron.instant(datetime(2027, 10, 31, 2, 30), BERLIN) == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    assert cron.instant(datetime(2027, 7, 1, 9), BERLIN) == datetime(2027, 7, 1, 7, tzinfo=UTC)
    assert cron.instant(datetime(2027, 7, 1, 9, tzinfo=UTC), BERLIN) == datetime(2027, 7, 1, 9, tzinfo=UTC)


def test_the_changes_of_the_clock_are_named():
    spring, autumn = cron.shifts(BERLIN, NOW)
    assert (spring.before, spring.after) == (datetime(2027, 3, 28, 2), datetime(2027, 3, 28, 3))
    assert (autumn.before, autumn.after) == (datetime(2027, 10, 31, 3), datetime(2027, 10, 31, 2))
    assert spring.forward and not autumn.forward
    assert cron.shifts(ZoneInfo("Asia/Shanghai"), NOW) == []


@pytest.mark.parametrize(
    ("expression", "by_the_wall"),
    [("0 9 * * *", True), ("0,30 9-17 * * *", True), ("0 * * * *", False), ("*/5 9 * * *", False)],
)
def test_which_expressions_go_by_the_wall(expression, by_the_wall):
    assert cron.by_the_wall(expression) is by_the_wall
