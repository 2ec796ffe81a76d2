"""What is left out of an address never is what says whom it reaches."""

import pytest

from common.whom import host_of, short

FRONT = "bank.example.with.a.long.way.to.go.before"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("ada@example.org", "ada@", "example.org"),
        (f"https://{FRONT}.evil.org/pay?to=bank.example", "…", "before.evil.org/…"),
        (f"https://bank.example:{'x' * 40}@evil.org/", "evil", ".org/…"),
        (f"https://evil.org/?mail={'a' * 40}@bank.example", "evil", ".org/…"),
        (f"ada@{FRONT}.evil.org", "…", "before.evil.org"),
        (f"{'a' * 40}@evil.org", "aaaa", "a…@evil.org"),
        (f'"ada@bank.example {"x" * 40}" <bo@evil.org>', '"ada', "x…@evil.org>"),
        (f"{FRONT}.evil.org", "…", "before.evil.org"),
        (f"/etc/{'x' * 40}/../passwd", "/etc/", "/../passwd"),
        ("DE02" + "1" * 40 + "99", "DE02", "1199"),
        ("A sentence of some words that goes on and on.", "A sentence", "on a…"),
        ("Write to ada@example.org, who knows all of it.", "Write to ada@", "…"),
        ("\u202e" * 4 + "gro.elpmaxe@" + "a" * 20, "⟨U+202E⟩", "…@aaaaaaaaaaaaaaaaaaaa"),
    ],
)
def test_an_address_is_short_and_its_end_is_there(text, start, end):
    found = short(text, 40)
    assert found.startswith(start) and found.endswith(end) and len(found) <= 40


@pytest.mark.parametrize("text", ["https://evil.org/a/b/c", "ada.lovelace@evil.org", "a b c d e f g h"])
def test_no_text_gets_longer_than_there_is_room(text):
    assert all(len(short(text, most)) <= most for most in range(4, 40))


def test_what_has_no_host_has_none():
    assert [host_of(text) for text in ("", "@x", "http://[", "Call Ada")] == [""] * 4
