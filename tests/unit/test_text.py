import threading

import pytest

from common.text import MAX_TERM, is_chinese, sentences, terms
from tests.guard import ends


def shares(one: str, other: str) -> bool:
    return bool(set(terms(one)) & set(terms(other)))


def test_english_words_meet_whatever_their_form():
    assert terms("Comparing") == terms("compares") == terms("COMPARE")


def test_chinese_is_pairs_and_single_characters():
    assert terms("竞品组") == ["竞品", "品组", "竞", "品", "组"]
    assert terms("组") == ["组"]


def test_traditional_characters_meet_simplified_ones():
    assert terms("數據分析") == terms("数据分析")


def test_full_width_letters_meet_plain_ones():
    assert terms("ＡＢＣ１２３") == terms("abc123")


def test_mixed_text_keeps_both_languages():
    assert terms("用Python做数据") == ["用", "python", "做数", "数据", "做", "数", "据"]


def test_names_from_code_are_found_whole_and_in_parts():
    assert terms("send_email") == ["send_email", "send", "email"]
    assert {"getusernam", "get", "user", "name"} == set(terms("getUserName"))
    assert shares("config.settings", "the settings")


@pytest.mark.parametrize("name", ["GitHub", "YouTube", "iPhone", "PostgreSQL"])
def test_a_name_with_a_hump_is_found_in_small_letters(name):
    assert shares(name, name.lower())


def test_numbers_are_kept():
    assert terms("1,000") == ["1000"]
    assert "18.6.3" in terms("18.6.3")
    assert "2026-11-20" in terms("on 2026-11-20.")


def test_languages_with_signs_in_their_name_are_kept():
    assert terms("C++ or C#") == ["c++", "or", "c#"]


def test_hyphens_and_slashes_between_words_only_separate():
    assert terms("state-of-the-art") == ["state", "of", "the", "art"]
    assert terms("and/or") == ["and", "or"]


def test_either_apostrophe_and_the_possessive_are_one():
    assert terms("the client’s") == terms("the client's") == terms("the client")


def test_accents_are_folded_and_other_scripts_are_words():
    assert terms("café Αθήνα") == ["cafe", "αθηνα"]
    assert terms("Привет мир") == ["привет", "мир"]
    assert terms("हिन्दी भाषा") == ["हिन्दी", "भाषा"]


def test_scripts_without_spaces_are_pairs_too():
    assert "東京".translate({ord("東"): "东"}) in terms("東京タワー")
    assert shares("한국어를", "한국어")


@pytest.mark.parametrize("text", ["", " \n\t", "!!! … 。？", "____", "\x00\x01", "\ud800"])
def test_text_without_words_has_no_terms(text):
    assert terms(text) == []


def test_terms_are_bounded():
    assert all(len(term) <= MAX_TERM for term in terms("x" * 5_000 + " " + "a_b." * 5_000))


def test_the_same_text_gives_the_same_terms_in_many_threads():
    text = " ".join(f"organising{n} relational{n} comparing" for n in range(300))
    expected, found = terms(text), []
    threads = [threading.Thread(target=lambda: found.append(terms(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


@pytest.mark.parametrize(
    "piece", ["a", "_", "a.", "a'", "aB", " ", "\n ", " .", ".", "a. ", ".)", "1,", "é", "数"]
)
def test_no_text_of_a_hundred_kilobytes_takes_its_square(piece):
    text = piece * (100_000 // len(piece))
    with ends():
        terms(text), sentences(text), is_chinese(text)


def test_sentences_in_english():
    assert sentences("It works. Does it? Yes!") == ["It works.", "Does it?", "Yes!"]


def test_sentences_in_chinese():
    assert sentences("你好。“真的吗？”他说：好！") == ["你好。", "“真的吗？”", "他说：好！"]


def test_an_abbreviation_a_version_or_an_initial_does_not_end_a_sentence():
    text = "Dr. Smith of the U.S. Army met J. Doe vs. Acme Inc. about version 3.5 today."
    assert sentences(text) == [text]


def test_a_line_break_ends_a_sentence():
    assert sentences("- one\n\n- two\n") == ["- one", "- two"]


@pytest.mark.parametrize("text", ["分析这份报告", "帮我 review 这个 pull request", "資料分析"])
def test_mostly_chinese_text_is_chinese(text):
    assert is_chinese(text)


@pytest.mark.parametrize(
    "text", ["", "analyse this report", "what does 你好 mean in English", "東京タワーへ行く"]
)
def test_other_text_is_not_chinese(text):
    assert not is_chinese(text)
