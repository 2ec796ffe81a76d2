"""How values, differences and times are put into words."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone, translation

from common import ids, times
from runs.admin import words


def test_what_differs_from_the_last_time_is_marked_word_by_word():
    now = words.readable({"to": ["bo@example.org"], "subject": "Prices of May", "cc": "all"})
    before = words.readable({"to": ["bo@example.org"], "subject": "Prices of April", "bcc": "none"})

    found = {line.name: line for line in words.marked(now, before)}

    assert {name: line.mark for name, line in found.items()} == {
        "to": "", "subject": "changed", "cc": "new", "bcc": "gone",
    }  # fmt: skip
    assert found["subject"].pieces == (("same", "Prices of "), ("removed", "April"), ("added", "May"))
    assert found["subject"].text == "Prices of May"  # what would run, whole


def test_chinese_is_compared_character_by_character():
    (line,) = words.marked(words.readable({"x": "周五发布"}), words.readable({"x": "周一发布"}))

    assert line.pieces == (("same", "周"), ("removed", "一"), ("added", "五"), ("same", "发布"))


def test_very_long_texts_are_only_said_to_differ():
    (line,) = words.marked(words.readable({"x": "a " * 2000}), words.readable({"x": "b " * 2000}))

    assert (line.mark, line.pieces, line.folded) == ("changed", (), True)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.42, "0.4 s"),
        (12, "12 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (200_000, "2 d"),
        (-5, "0.0 s"),
    ],
)
def test_spans_are_said_as_people_say_them(seconds, said):
    assert times.span(seconds).replace("\u00a0", " ") == said


def test_a_time_says_how_long_ago_and_keeps_the_exact_one():
    moment = timezone.now() - timedelta(minutes=5)

    said = times.ago(moment)

    assert "5\u00a0min ago" in said
    assert f'datetime="{moment.isoformat()}"' in said and f"{moment:%H:%M:%S} UTC" in said


def test_a_time_to_come_that_has_passed_is_over():
    assert ">over</time>" in times.left(datetime(2020, 1, 1, tzinfo=UTC))
    assert times.left(None) == times.ago(None) == ""


def test_times_speak_chinese():
    with translation.override("zh-hans"):
        assert "5\u00a0分钟前" in times.ago(timezone.now() - timedelta(minutes=5))


def test_ids_are_found_by_the_time_they_were_made_at():
    before, made, after = (
        timezone.now() - timedelta(seconds=1),
        ids.run_id(),
        timezone.now() + timedelta(seconds=1),
    )

    assert ids.first_of("run", before) < made < ids.first_of("run", after)
    assert len(ids.first_of("run", before)) == len(made)
