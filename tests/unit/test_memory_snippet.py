"""The piece of a text that answers, with what matched marked."""

from common.text import terms
from memory.snippet import MARK, WINDOW, snippet


def of(content: str, query: str) -> str:
    return snippet(content, frozenset(terms(query)))


def test_words_are_marked_as_they_stand_in_the_text():
    assert of("We sent the Reports.", "report") == "We sent the **Reports**."


def test_pairs_of_chinese_characters_are_marked_and_joined():
    assert of("本季度的竞品分析报告", "竞品分析") == "本季度的**竞品分析**报告"


def test_traditional_text_is_marked_for_a_simplified_question():
    assert of("本季度的競品分析", "竞品") == "本季度的**競品**分析"


def test_a_long_text_is_cut_around_its_matches():
    cut = of("padding " * 200 + "the deadline is Friday " + "padding " * 200, "deadline friday")
    assert "the **deadline** is **Friday**" in cut
    assert cut.startswith("…")
    assert cut.endswith("…")
    assert len(cut) <= WINDOW + 4 * len(MARK) + 2


def test_without_a_match_it_is_the_beginning():
    assert of("short text", "absent") == "short text"
    assert snippet("", frozenset({"a"})) == ""
