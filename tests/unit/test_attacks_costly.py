"""Ways to keep Deputy busy, so that others wait."""

from common.canonical import canonical
from runs.deciding import words
from runs.tools import registry
from runs.tools.base import Tool
from runs.tools.call import check_arguments
from runs.tools.mcp.definitions import checker

CHOICES = {"type": "array", "items": {"anyOf": [{"const": number} for number in range(3000)]}}
DIFFERENT = {"type": "array", "uniqueItems": True}


def outsiders(schema):
    parameters = {"type": "object", "properties": {"items": schema}}
    return Tool("shop.order", "Orders.", parameters, lambda *_: None, checker=checker)


def test_arguments_that_take_too_long_to_check_are_refused():
    refused = check_arguments(outsiders(CHOICES), {"items": ["none"] * 1000})
    assert refused.code == "INVALID_ARGUMENTS" and "too long" in refused.message


def test_many_different_objects_are_looked_at_once_each():
    many = [{"number": number} for number in range(20_000)]
    assert check_arguments(outsiders(DIFFERENT), {"items": many}) is None
    twice = check_arguments(outsiders(DIFFERENT), {"items": [*many, {"number": 7}]})
    assert "the same item twice" in twice.message


def test_of_a_hundred_thousand_mistakes_some_are_told():
    arguments = {"to": [1] * 100_000, "subject": "s", "body": "b"}
    refused = check_arguments(registry.get("send_email"), arguments)
    assert len(canonical(refused.details)) < 10_000 and "/to/0" in refused.message


def test_texts_of_a_few_words_ten_thousand_times_are_not_compared_word_by_word():
    """Python's comparison takes minutes for them: nothing of them is marked, and both are shown whole."""
    was, now = "a\nb\n" * 4_000, "b\na\na\n" * 2_700
    (line,) = words.marked([words.Line("body", now)], [words.Line("body", was)])
    assert (line.text, line.mark, line.pieces) == (now, "", ())
    (short,) = words.marked([words.Line("body", "one two three four")], [words.Line("body", "one two three")])
    assert ("same", "one two ") in short.pieces
