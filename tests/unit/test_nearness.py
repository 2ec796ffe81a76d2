"""Routing by meaning, without a database: vectors drawn so that what must count is known."""

import numpy
import pytest

from groups import meaning
from groups.meaning import Basis, FusedRouter, profile
from groups.nearness import ALIKE, NEAREST, Rows, Space, slots
from groups.routing_report import report
from groups.scoring import Candidate, Router

SIZE = 16


def axis(*numbers: tuple[int, float]) -> list[float]:
    vector = [0.0] * SIZE
    for place, value in numbers:
        vector[place] = value
    return vector


def world(groups: int = 6, goals: int = 30, noise: float = 1.0):
    """Groups differ in an axis each; goals of one group differ in one axis that says nothing of the group."""
    draw = numpy.random.default_rng(4)
    own, past, group_of = [], [], []
    for group in range(groups):
        own.append(axis((group, 1.0)))
        for _ in range(goals):
            past.append(axis((group, 0.5), (SIZE - 1, float(draw.normal(0, noise)))))
            group_of.append(group)
    return own, past, group_of


def test_ways_in_which_goals_of_one_group_differ_count_less():
    rows = Rows(*world())
    plain, shaped = Space(rows, numpy.eye(SIZE)), Space(rows, rows.whitening())
    goal = rows.centred(axis((2, 0.5), (SIZE - 1, 1.5)))
    margins = []
    for space in (plain, shaped):
        near = space.near(space.place(goal))
        margins.append(near[2] - numpy.delete(near, 2).max())
    assert margins[1] > 2 * max(margins[0], 0.01)


def test_without_past_goals_the_space_is_as_it_was():
    own, _, _ = world()
    assert (Rows(own, [], []).whitening() == numpy.eye(SIZE)).all()


def test_few_past_goals_change_the_space_less_than_many():
    def change(goals: int) -> float:
        shape = Rows(*world(goals=goals)).whitening()
        values = numpy.linalg.svd(shape, compute_uv=False)
        return float(values.max() / values.min())

    assert 1 < change(2) < change(50)


def test_equal_past_goals_do_not_stop_it():
    rows = Rows([axis((0, 1.0)), axis((1, 1.0))], [axis((0, 1.0)), axis((1, 1.0))], [0, 1])
    assert numpy.isfinite(Space(rows, rows.whitening()).near(rows.own[0])).all()


def test_a_past_goal_asked_again_does_not_find_itself():
    own, past, group_of = world(groups=2, goals=1, noise=0.0)
    past[0] = axis((7, 1.0))  # like nothing else
    rows = Rows(own, past, group_of)
    space = Space(rows, numpy.eye(SIZE))
    known, new = space.near(space.past[0]), space.near(space.past[0], 0)
    assert known[0] > new[0]
    assert new[0] == pytest.approx(float(space.own[0] @ space.past[0]))
    assert known[1] == new[1]


def test_a_group_without_past_goals_is_as_near_as_what_it_says_of_itself():
    rows = Rows([axis((0, 1.0)), axis((1, 1.0))], [axis((0, 1.0), (5, 0.2))], [0])
    space = Space(rows, numpy.eye(SIZE))
    asked = rows.centred(axis((1, 1.0), (5, 1.0)))
    assert space.near(asked)[1] == pytest.approx(float(space.own[1] @ asked))


def test_only_the_nearest_past_goals_count_one_by_one():
    past = [axis((0, 1.0))] * NEAREST + [axis((9, 1.0))] * 20
    rows = Rows([axis((0, 1.0)), axis((1, 1.0))], past, [0] * len(past))
    space = Space(rows, numpy.eye(SIZE))
    asked = space.past[0]
    centre = space.near(asked)[0] * 2 - 1  # the nearest three are the goal itself: their mean is 1
    assert -1 <= centre < 1


def test_each_groups_past_goals_are_found_however_many_others_have():
    assert slots([1, 0, 1, 1], 3).tolist() == [[1, 4, 4], [0, 2, 3], [4, 4, 4]]
    assert slots([], 2).shape == (2, 0)


def test_a_few_groups_are_told_apart_by_what_is_unlike_among_them():
    """Two groups share all but a little, and of that the goal has some of the second's."""
    first, second = axis((0, 1.0), (1, 0.3)), axis((0, 1.0), (2, 0.3))
    rows = Rows([first, second, axis((5, 1.0))], [first, second], [0, 1])
    space = Space(rows, numpy.eye(SIZE))
    asked = space.place(rows.centred(axis((0, 1.0), (2, 0.2))))
    one, other = space.apart(asked, [0, 1])
    assert other > one
    assert one + other == pytest.approx(1)
    assert other - one > space.near(asked)[1] - space.near(asked)[0]
    assert space.apart(asked, [1, 0]) == pytest.approx([other, one])


def test_a_group_is_not_likelier_for_having_more_past_goals():
    one, other = axis((0, 1.0)), axis((1, 1.0))
    few = Rows([one, other], [one, other], [0, 1])
    many = Rows([one, other], [one] * 10 + [other], [0] * 10 + [1])
    for rows in (few, many):
        space = Space(rows, numpy.eye(SIZE))
        between = space.own[0] + space.own[1]
        assert space.apart(between, [0, 1]) == pytest.approx([0.5, 0.5], abs=0.05)


def test_groups_are_told_apart_by_their_past_goals_most_like_this_one():
    past = [axis((3, 1.0))] * 40 + [axis((1, 1.0))] * ALIKE
    rows = Rows([axis((0, 1.0)), axis((2, 1.0))], past, [0] * len(past))
    space = Space(rows, numpy.eye(SIZE))
    told, whose = space._texts(space.past[-1], [1, 0])
    assert whose.tolist() == [0, 1] + [1] * ALIKE
    assert numpy.allclose(told[2:] @ space.past[-1], 1)


# Through the router


def candidates(goals: int = 8) -> tuple[list[Candidate], dict[str, list[float]]]:
    """Groups whose goals share no word: only their vectors tell."""
    own, past, _ = world(goals=goals, noise=0.3)
    made = [
        Candidate(f"g{n}", f"name{n}", examples=tuple(f"goal{n}x{k}" for k in range(goals)))
        for n in range(len(own))
    ]
    texts = [profile(each) for each in made] + [text for each in made for text in each.examples]
    return made, dict(zip(texts, [*own, *past], strict=True))


def test_few_past_goals_lie_below_the_threshold(monkeypatch):
    """Where groups are so near to each other that nothing parts them, goals are routed, not refused."""
    monkeypatch.setattr(meaning, "best_cut", lambda *_: 1e9)
    made, vectors = candidates(goals=10)
    router = FusedRouter(Router(made), made, Basis(vectors, vectors.get))
    meant = [float(router._joined(words, near).max()) for _, words, near in router._past_asked_again()]
    below = sum(value < router._threshold for value in meant) / len(meant)
    assert 0 < below <= meaning.REFUSED + 1 / len(meant)


def test_a_past_goal_is_not_asked_in_a_space_that_knows_it(monkeypatch):
    made, vectors = candidates()
    asked: list[tuple[set[int], int]] = []
    whitening, near = Rows.whitening, Space.near
    without: list[set[int]] = [set()]

    def spied(self, without_these=()):
        without.append(set(without_these))
        return whitening(self, without_these)

    monkeypatch.setattr(Rows, "whitening", lambda self, without=(): spied(self, without))
    monkeypatch.setattr(
        Space,
        "near",
        lambda self, goal, less=None: (asked.append((without[-1], less)), near(self, goal, less))[1],
    )
    FusedRouter(Router(made), made, Basis(vectors, vectors.get))
    assert len(asked) == 48
    assert all(less in left_out for left_out, less in asked)


def test_a_router_is_kept_while_nothing_changed(monkeypatch):
    made, vectors = candidates()
    known = dict(vectors)

    class Source:
        def known(self, texts):
            return {text: known[text] for text in texts if text in known}

        def of_goal(self, goal):
            return None

        embed = known

    monkeypatch.setattr(meaning, "_sources", [Source()])
    first = meaning.router(made)
    assert isinstance(first, FusedRouter)
    assert meaning.router(list(made), first) is first
    assert meaning.router(made[:-1], first) is not first
    missing = made[0].examples[0]
    del known[missing]
    assert meaning.router(made, first) is not first
    known.clear()
    words = meaning.router(made, first)
    assert isinstance(words, Router)
    assert meaning.router(made, words) is words
    assert meaning.router(made[1:], words) is not words


def test_goals_are_routed_by_vectors_alone_where_they_share_no_word(monkeypatch):
    made, vectors = candidates()
    goals = {f"asked{n}": axis((n, 0.5), (SIZE - 1, 0.4)) for n in range(6)}

    class Source:
        def embed(self, texts):
            return {text: (vectors | goals)[text] for text in texts}

    monkeypatch.setattr(meaning, "_sources", [Source()])
    groups = [{"id": each.id, "name": each.name, "examples": each.examples} for each in made]
    found = report(groups, [{"text": text, "gold": [f"g{text[-1]}"]} for text in goals], True)
    assert found["by_meaning"]
    assert found["accuracy_at_1"] == 1
    assert found["joint_accuracy"] == 1


def test_the_few_best_hand_their_values_out_anew(monkeypatch):
    """So whether the best fits does not depend on how they are told apart."""
    made, vectors = candidates()
    router = FusedRouter(Router(made), made, Basis(vectors, vectors.get))
    values = numpy.array([0.1, 0.9, 0.3, 0.8, 0.7, 0.2])
    monkeypatch.setattr(Space, "apart", lambda *_: numpy.array([0.0, 0.2, 0.8]))
    assert router._told_apart(None, values.copy()).tolist() == [0.1, 0.7, 0.3, 0.8, 0.9, 0.2]
    monkeypatch.setattr(Space, "apart", lambda *_: numpy.array([0.34, 0.33, 0.33]))
    assert router._told_apart(None, values.copy()).tolist() == values.tolist()


def test_words_vectors_tell_no_groups_apart(monkeypatch):
    made, vectors = candidates()
    monkeypatch.setattr(Space, "apart", lambda *_: pytest.fail("only a model's vectors do"))
    router = FusedRouter(Router(made), made, Basis(vectors, vectors.get, by_model=False))
    assert router.score(made[2].examples[0])[0].id == "g2"


def test_where_nobody_has_said_what_belongs_where_groups_are_not_told_apart(monkeypatch):
    made, vectors = candidates(goals=0)
    monkeypatch.setattr(Space, "apart", lambda *_: pytest.fail("there is nothing to learn from"))
    router = FusedRouter(Router(made), made, Basis(vectors, vectors.get))
    assert router._share == meaning.WORDS
    assert router.score(profile(made[2]))[0].id == "g2"


def test_where_nobody_has_said_so_a_goal_may_have_less_in_common_with_a_group_than_groups_with_each_other():
    own = [axis((0, 1.0), (9, 0.8)), axis((1, 1.0), (9, 0.8)), axis((2, 1.0), (9, 0.8))]
    made = [Candidate(f"g{n}", f"name{n}") for n in range(3)]
    goals = {"near": axis((1, 0.15), (9, 0.15), (12, 1.0)), "strange": axis((12, 1.0))}
    vectors = dict(zip(map(profile, made), own, strict=True)) | goals
    router = FusedRouter(Router(made), made, Basis(vectors, vectors.get))
    best = router.score("near")[0]
    assert (best.id, best.fits) == ("g1", True)
    assert not router.score("strange")[0].fits


def test_words_count_less_where_a_model_has_past_goals():
    made, vectors = candidates()
    assert FusedRouter(Router(made), made, Basis(vectors, vectors.get))._share == meaning.LEARNT_WORDS
    by_words = Basis(vectors, vectors.get, by_model=False)
    assert FusedRouter(Router(made), made, by_words)._share == meaning.BARE
