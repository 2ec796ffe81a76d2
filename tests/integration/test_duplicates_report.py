"""`manage.py duplicates_report`: figures for near-duplicates, on pairs that people judged."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.embedding_server import embedding

PAIRS = [
    {"one": "The launch is in May", "other": "The launch will be in May", "same": True},
    {"one": "Each car is washed", "other": "Each company car is washed", "same": True},
    {"one": "What does it cost?", "other": "How much do we pay?", "same": True},
    {"one": "The launch is on", "other": "The launch is on.", "same": False},
    {"one": "Ann pays Bob", "other": "Bob pays Ann", "same": False},
]


@pytest.fixture
def measured(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, PAIRS)))

    def measured():
        out = StringIO()
        call_command("duplicates_report", str(path), "--json", stdout=out)
        return json.loads(out.getvalue())

    return measured


def test_precision_and_recall_by_words_alone(measured):
    assert measured() == {
        "set": "pairs.jsonl",
        "pairs": 5,
        "same": 3,
        "joined": 2,
        "right": 1,
        "precision": 0.5,
        "recall": pytest.approx(1 / 3),
    }


def test_and_with_a_model(measured, settings, monkeypatch):
    with embedding(settings, monkeypatch):
        numbers = measured()
    assert (numbers["joined"], numbers["right"]) == (3, 2)


@pytest.mark.parametrize(
    "line", ["[]", "[", '{"one": "a", "other": "b"}', '{"one": 1, "other": "b", "same": true}']
)
def test_a_line_that_is_no_pair_is_named(tmp_path, line):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(PAIRS[0]) + "\n" + line + "\n")
    with pytest.raises(CommandError, match="line 2: "):
        call_command("duplicates_report", str(path))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nothing.jsonl: .*No such file"):
        call_command("duplicates_report", str(tmp_path / "nothing.jsonl"))
