"""Routing where no model embeds: words that mean nearly the same count as near."""

import dataclasses

import numpy
import pytest

from benchmarks.quality import word_vectors as making
from groups import meaning, word_vectors
from groups.meaning import LEARNT, FusedRouter
from groups.scoring import Candidate, Router
from groups.word_vectors import vector

MATTERS = {
    "Travel": ("flight", "hotel", "trip to Paris", "train ticket", "passport", "luggage", "airport taxi"),
    "Kitchen": ("soup recipe", "bread", "dinner menu", "vegetables", "oven", "dessert", "spices"),
    "Health": ("doctor", "fever", "vaccine", "medicine", "headache", "hospital", "broken arm"),
}


def candidates(goals: int = 7, **more: tuple[str, ...]) -> list[Candidate]:
    return [
        Candidate(name, name, examples=tuple(f"Please see to the {each}" for each in said[:goals]), **more)
        for name, said in MATTERS.items()
    ]


@pytest.fixture(autouse=True)
def no_model(monkeypatch):
    monkeypatch.setattr(meaning, "_sources", [])


def likeness(one: str, other: str) -> float:
    first, second = numpy.asarray(vector(one)), numpy.asarray(vector(other))
    return float(first @ second / numpy.linalg.norm(first) / numpy.linalg.norm(second))


def test_words_that_mean_nearly_the_same_are_near():
    for word, near, far in (
        ("refund", "reimbursement", "violin"),
        ("physician", "doctor", "carpet"),
        ("automobile", "cars", "poem"),
    ):
        assert likeness(word, near) > 0.5 > 0.3 > likeness(word, far)


def test_a_common_word_counts_little():
    assert likeness("the refund", "refund") > 0.99


def test_a_text_of_unknown_words_has_no_vector():
    for text in ("客户要求退款", "qzxv wvvq refund", "", "…"):
        assert vector(text) is None
    assert vector("qzxv wvvq refund", least=0.0) == vector("refund")


def test_goals_go_by_words_that_mean_nearly_the_same():
    made = meaning.router(candidates())
    goals = {
        "Cooking some stew": "Kitchen",
        "My suitcase was lost by the airline": "Travel",
        "The patient needs an injection": "Health",
    }
    for goal, right in goals.items():
        assert made.score(goal)[0].id == right
    alone = Router(candidates())
    assert any(alone.score(goal)[0].id != right for goal, right in goals.items())


def test_few_past_goals_leave_routing_to_words_alone():
    assert isinstance(meaning.router(candidates()), FusedRouter)
    few = candidates(6)
    assert isinstance(meaning.router(few), Router)
    assert isinstance(meaning.router(candidates()[:1]), Router)
    many = [dataclasses.replace(few[0], id=f"g{n}", examples=()) for n in range(30)]
    assert isinstance(meaning.router([*many, *candidates()]), Router)


def test_one_known_word_in_what_a_group_says_of_itself_is_enough():
    made = candidates()
    named = dataclasses.replace(made[0], name="qzxv wvvq", description="zqx travel vvq")
    assert isinstance(meaning.router([named, *made[1:]]), FusedRouter)


def test_chinese_groups_and_past_goals_leave_routing_to_words_alone():
    chinese = tuple(f"客户要退第{n}笔款" for n in range(LEARNT))
    for change in ({"name": "客户", "description": "退款"}, {"examples": chinese}):
        made = [dataclasses.replace(each, **change) for each in candidates()]
        assert isinstance(meaning.router(made), Router)


def test_a_goal_of_unknown_words_is_routed_by_its_words():
    examples = ("qzxv wvvq", *candidates()[2].examples)
    made = [*candidates()[:2], dataclasses.replace(candidates()[2], examples=examples)]
    best = meaning.router(made).score("wvvq qzxv")[0]
    assert (best.id, best.fits) == ("Health", True)


def test_vectors_that_mislead_are_not_used(monkeypatch):
    draw = numpy.random.default_rng(1)
    monkeypatch.setattr(word_vectors, "vector", lambda text, least=0.5: draw.normal(size=8).tolist())
    taught = [
        Candidate(f"g{n}", f"name {n}", examples=tuple(f"subject{n} {k}" for k in range(8))) for n in range(6)
    ]
    made = meaning.router(taught)
    assert isinstance(made, FusedRouter)
    for n in range(6):
        goal = f"about subject{n} please"
        assert made.score(goal) == Router(taught).score(goal)
        assert made.score(goal)[0].id == f"g{n}"


def test_the_very_goal_that_a_person_took_away_is_not_given_back():
    goal = "Please see to the soup recipe"
    assert meaning.router(candidates()).score(goal)[0].id == "Kitchen"
    scores = meaning.router(candidates(against=(goal,))).score(goal)
    assert all(score.score == 0 for score in scores)


def test_a_router_is_kept_while_nothing_changed(monkeypatch):
    made = candidates()
    first = meaning.router(made)
    monkeypatch.setattr(word_vectors, "vector", None)  # nothing is compared anew
    assert meaning.router(list(made), first) is first
    with pytest.raises(TypeError):
        meaning.router([*made[1:], dataclasses.replace(made[0], name="Tours")], first)


def test_a_models_vectors_take_the_place_of_the_words(monkeypatch):
    made = candidates()
    texts = [text for each in made for text in meaning.texts_of(each)]
    vectors = {text: [float(n == k) for k in range(len(texts))] for n, text in enumerate(texts)}

    class Source:
        def known(self, texts):
            return {text: vectors[text] for text in texts}

        def of_goal(self, goal):
            return None

    by_words = meaning.router(made)
    monkeypatch.setattr(meaning, "_sources", [Source()])
    by_model = meaning.router(made, by_words)
    assert by_model is not by_words
    assert by_model.embedded == set(texts)
    assert meaning.router(made, by_model) is by_model


def test_words_of_one_stem_share_a_vector_to_which_the_commoner_gives_more():
    stems, vectors, weights = making.table(["claim", "tree", "claims"], numpy.eye(3))
    assert stems == ["claim", "tree"]
    assert vectors[0][0] > vectors[0][2] > 0 == vectors[0][1]
    assert weights[0] < weights[1] < 1


def test_a_table_is_read_as_it_was_written(tmp_path, monkeypatch):
    for module in (making, word_vectors):
        monkeypatch.setattr(module, "TABLE", tmp_path / "table.npz")
    rows = numpy.array([[3.0, -4.0], [0.1, 0.0]])
    making.write(["claim", "tree"], rows)
    numbers, found = word_vectors._table.__wrapped__()
    assert numbers == {"claim": 0, "tree": 1}
    assert found == pytest.approx(rows, abs=0.02)


GLOSS = '00001 04 n 01 {word} 0 000 | {definition}; "{example}"\n'


def test_sentences_are_wordnets_examples_and_definitions_of_a_usual_length(tmp_path, monkeypatch):
    for kind in making.KINDS:
        said = GLOSS.format(
            word=kind, definition=f"what {kind} means here; or there", example=f"I saw a {kind}"
        )
        short = GLOSS.format(word=kind, definition="thing", example="too short")
        (tmp_path / f"data.{kind}").write_text(f'  1 the licence | "of five words or more"\n{said}{short}')
    expected = [f"{kind} {text}" for kind in making.KINDS for text in ("saw", "means")]
    found = making.sentences(tmp_path)
    assert len(found) == len(expected)
    assert {"I saw a verb", "what adj means here"} < set(found)
    assert making.sentences(tmp_path) == found
    monkeypatch.setattr(making, "EXAMPLES", 2)
    assert len(making.sentences(tmp_path)) == len(found) - 2
    said, kept = making.known(found, ["saw", "verb", "noun"])
    assert dict(zip(kept, said, strict=True)) == {"I saw a verb": [0, 1], "I saw a noun": [0, 2]}


def test_fitting_moves_words_until_their_sum_is_near_their_sentences_vector():
    words = numpy.eye(4)  # thing, hot, cold, unseen
    thing, hot, cold, unseen = range(4)
    said = 50 * [[thing, hot], [thing, cold]]
    wanted = numpy.array(50 * [[1.0, 0.0], [0.0, 1.0]])
    moved = making.fitted(words, said, wanted)
    for sentence, right in zip(said, wanted, strict=True):
        total = moved[sentence].sum(axis=0)
        assert total @ right / numpy.linalg.norm(total) > 0.9
    assert moved[hot] @ moved[cold] < 0 < moved[thing].min()
    assert moved.shape == (4, 2)
    assert not moved[unseen].any()


def test_the_fit_is_a_ridge_regression_around_one_map_for_all_words(monkeypatch):
    draw = numpy.random.default_rng(1)
    words, said = draw.normal(size=(5, 3)), [[0, 1], [1, 2, 2], [3, 0], [2, 4], [4, 1, 3]]
    wanted = draw.normal(size=(5, 2))
    moved = making.fitted(words, said, wanted)
    monkeypatch.setattr(making, "ROUNDS", 0)
    start = making.fitted(words, said, wanted)
    counts = numpy.array([numpy.bincount(each, minlength=5) for each in said], dtype=float)
    shares = counts / numpy.linalg.norm(counts @ start, axis=1, keepdims=True)
    inverse = numpy.linalg.inv(shares.T @ shares + making.STAY * numpy.eye(5))
    assert moved == pytest.approx(inverse @ (shares.T @ wanted + making.STAY * start), abs=1e-3)
    assert moved != pytest.approx(start, abs=1e-3)


def test_the_least_squares_are_solved():
    draw = numpy.random.default_rng(1)
    half = draw.normal(size=(6, 6))
    matrix, wanted = half @ half.T + numpy.eye(6), draw.normal(size=(6, 2))
    found = making.solved(lambda x: matrix @ x, wanted, numpy.zeros((6, 2)))
    assert found == pytest.approx(numpy.linalg.solve(matrix, wanted), abs=1e-3)
