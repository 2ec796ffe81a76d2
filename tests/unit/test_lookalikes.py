"""Characters that deceive are said in words, and ordinary texts of any language are left alone."""

import sys
import unicodedata

import pytest

from common.lookalikes import LOOKS, SPELLED, findings, skeleton, visible


def test_every_control_and_format_character_is_spelled_out():
    kinds = ("Cc", "Cf", "Zl", "Zp")
    hidden = (chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in kinds)

    missed = [hex(ord(one)) for one in hidden if not SPELLED.match(one) and one not in "\n\t"]

    assert missed == []
    assert visible("a\u200bb\u202ec") == "a⟨U+200B⟩b⟨U+202E⟩c"
    assert visible("two\r\nlines\r") == "two\r\nlines⟨U+000D⟩"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pay\u200bpal", "invisible character: zero width space U+200B"),
        ("pay\u3164pal", "invisible character: hangul filler U+3164"),
        ("invoice\u202efdp.exe", "direction of reading"),
        ("p\u0430ypal", "mixes Latin and Cyrillic letters"),
        ("pr\u03bffit", "mixes Latin and Greek letters"),
        ("see xn--pypal-4ve.com", "is how “p⁠аypal” is written".replace("\u2060", "")),
        ("ann@\u0430\u0440\u0440\u04cf\u0435.com", "looks like apple.com and is another address"),
        ("https://ex\uff41mple.org/x", "it leads to example.org"),
    ],
)
def test_what_is_odd_is_said(text, said):
    assert said in " ".join(findings(text))


@pytest.mark.parametrize(
    "text",
    [
        "Dear Ada,\r\n\r\nsix.\n",
        "使用API接口，周五发布。ｆｕｌｌｗｉｄｔｈ",
        "Привет, как дела? Оса сор хор",
        "Ελληνικά κείμενο",
        "Δx = 3 µm, 5 kΩ, naïve Café",
        "日本語とカタカナと漢字",
        "Fine 👍🏽 ❤️ 👨‍👩‍👧 1️⃣",
        "https://пример.рф/a and ann@müller.de",
    ],
)
def test_ordinary_texts_are_left_alone(text):
    assert findings(text) == []


def test_letters_that_look_like_latin_ones_are_letters_of_other_scripts():
    assert all(other.isascii() and not letter.isascii() for letter, other in LOOKS.items())
    assert LOOKS["\u0430"] == "a" and LOOKS["\u03bf"] == "o"


@pytest.mark.parametrize("host", ["examp1e.org", "exarnple.org", "ex\u0430mple.org", "EXAMPLE.ORG"])
def test_hosts_that_look_alike_have_the_same_skeleton(host):
    assert skeleton(host) == skeleton("example.org")


def test_a_long_text_is_read_in_one_pass():
    assert findings("a" * 900_000 + "\u0430") and findings("xn--" * 200_000) is not None
