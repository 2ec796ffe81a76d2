"""The figures of a retrieval report."""

import pytest

from memory.measure import score


def test_a_perfect_ranking_scores_one():
    assert score(["a", "b"], {"a": 2, "b": 1}) == (1, pytest.approx(1), 1)


def test_a_lower_place_discounts():
    recall, ndcg, reciprocal = score(["x", "a"], {"a": 1})
    assert (recall, ndcg, reciprocal) == (1, pytest.approx(0.6309, abs=1e-4), 0.5)


def test_what_is_not_among_the_first_ten_is_not_found():
    assert score([*"0123456789", "a"], {"a": 1}) == (0, 0, 0)


def test_half_of_what_is_relevant_is_half_the_recall():
    assert score(["a"], {"a": 1, "b": 1, "c": 0})[0] == 0.5


def test_a_higher_grade_gains_exponentially():
    """Grade 2 gains 3, grade 1 gains 1."""
    worse, better = score(["one", "two"], {"two": 2, "one": 1}), score(["two", "one"], {"two": 2, "one": 1})
    assert better[1] == pytest.approx(1)
    assert worse[1] == pytest.approx((1 + 3 / 1.58496) / (3 + 1 / 1.58496), abs=1e-4)
