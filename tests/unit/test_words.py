"""What followers are told of a model's words while it says them."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from runs.outbound import packing, words
from runs.outbound.words import Words

KEY = "sk-proj-abcdefghijklmnop1234567890"


@pytest.fixture
def told(monkeypatch):
    """Says these pieces, each in a moment of its own; what followers read of them, joined."""
    monkeypatch.setattr(words, "EVERY_SECONDS", 0)
    monkeypatch.setattr(packing, "text", lambda said: json.dumps(said))

    async def say(pieces):
        call = SimpleNamespace(
            id=1, of_model=True, rank=0, root_id="run_1", run_id="run_1", receipt='{"saw": 1, "agent": "a"}'
        )
        gathered, found = Words(), []
        gathered.follow("run_1")
        hear = gathered.of(call)
        for piece in pieces:
            hear(piece)
            try:
                tellings = await asyncio.wait_for(gathered.due(), 0.05)
            except TimeoutError:
                continue
            shown = [json.loads(said)[-1] for telling in tellings for said in telling.notifications]
            assert "".join(shown) == "".join(telling.text for telling in tellings)  # what is kept
            found += shown
        return "".join(found)

    return lambda *pieces: asyncio.run(say(pieces))


@pytest.mark.parametrize(
    "pieces",
    [
        ("The key is sk-pr", "oj-abcdefghijkl", "mnop1234567890 and no other. "),
        ("The key is s", "k-proj-abcdefghijklmnop1234567890 and no other. "),
        ("It sends Bearer ", "abcdefghijklmnop1234567890 and no other. "),
        ("It sends Bearer", " abcdefghijklmnop", "1234567890 and no other. "),
        (
            "-----BEGIN PRIVATE KEY-----\nabcdefghij",
            "klmnop1234567890\n",
            "-----END PRIVATE KEY-----\nno other. ",
        ),
        ("x " * 3000, KEY[:9], KEY[9:] + " and no other. "),
    ],
)
def test_a_key_is_masked_wherever_a_model_pauses_in_it(told, pieces):
    said = told(*pieces)
    assert "no other" in said and "[redacted]" in said
    assert "abcdef" not in said and "7890" not in said


def test_a_long_piece_is_masked_before_it_is_cut(told):
    said = told("x" * 990 + " " + KEY + " " + "y" * 50 + " ")
    assert "[redacted]" in said and "sk-" not in said


def test_words_come_as_they_are_said(told):
    assert told("Hello ", "wor", "ld ") == "Hello world "
    assert told("你好，", "世界") == "你好，世界"
