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


def test_texts_with_little_in_common_are_two_texts_and_not_compared():
    (line,) = words.marked(words.readable({"x": "a " * 2000}), words.readable({"x": "b " * 2000}))
    (short,) = words.marked(words.readable({"x": "one"}), words.readable({"x": "another"}))

    assert (line.mark, line.pieces, line.folded) == ("", (), True)
    assert (short.mark, short.pieces, short.was) == ("changed", (), "another")


def test_long_texts_that_have_much_in_common_are_compared_word_by_word():
    old = "".join(f"Line {n} of a long letter to everybody.\n" for n in range(120))
    new = old.replace("Line 60 of", "Line sixty of")

    (line,) = words.marked(words.readable({"x": new}), words.readable({"x": old}))

    assert [piece for piece in line.pieces if piece[0] != "same"] == [("removed", "60 "), ("added", "sixty ")]
    assert "".join(text for kind, text in line.pieces if kind != "removed") == new


SCHEMA = {
    "properties": {
        "to": {
            "type": "array",
            "title": "Recipients",
            "description": "Who gets it",
            "items": {"type": "string"},
        },
        "subject": {"type": "string"},
        "body": {"type": "string"},
    }
}


def test_fields_stand_in_the_order_of_the_tools_schema_with_its_words():
    found = words.readable({"zzz": 1, "body": "B", "to": ["a@x.org", "b@y.org"]}, SCHEMA)

    assert [line.name for line in found] == ["to", "body", "zzz"]
    assert (found[0].label, found[0].description) == ("Recipients", "Who gets it")
    assert [item.text for item in found[0].items] == ["a@x.org", "b@y.org"]


def test_a_value_of_very_many_lines_is_shown_whole_as_json():
    (line,) = words.readable({"rows": [{"number": n} for n in range(3000)]})

    assert line.name == "rows" and '"number": 2999' in line.text


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
