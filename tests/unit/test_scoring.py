import json

import pytest
from django.core.management.base import CommandError

from groups.management.commands.route_report import read_jsonl
from groups.routing_report import report
from groups.scoring import Candidate, Router
from tests.guard import ends

MARKET = Candidate(
    "grp_market",
    "竞品分析组",
    "专注于市场竞品分析，包含搜索专家和数据分析师",
    ("market research", "competitor analysis"),
    ("researcher: 负责信息搜集", "analyst: 负责数据分析"),
)
CODE = Candidate(
    "grp_code",
    "代码审查组",
    "专注于代码质量审查和重构建议",
    ("code review", "refactoring", "best practices"),
    ("architect: 架构师",),
)
LEGAL = Candidate("grp_legal", "Legal", "Contracts, licences and privacy questions", ("contract review",))
ALL = (MARKET, CODE, LEGAL)


def chosen(goal: str, *candidates: Candidate) -> str:
    return Router(candidates or ALL).score(goal)[0].id


@pytest.mark.parametrize(
    ("goal", "group"),
    [
        ("分析我们主要竞争对手的产品和市场", "grp_market"),
        ("分析我們主要競爭對手的產品和市場", "grp_market"),
        ("Research what our competitors charge", "grp_market"),
        ("请审查这个代码库的质量并给出重构建议", "grp_code"),
        ("Refactor the payment module and review the code", "grp_code"),
        ("帮我 review 一下 contract", "grp_legal"),
        ("Does this licence allow us to sell it?", "grp_legal"),
    ],
)
def test_a_goal_goes_to_the_group_that_describes_it(goal, group):
    assert chosen(goal) == group


def test_a_word_in_another_form_than_the_description_still_counts():
    travel = Candidate("grp_travel", "Travel", "recommendations for journeys")
    assert chosen("what would you recommend", LEGAL, travel) == "grp_travel"


def test_roles_and_capabilities_count_too():
    assert chosen("ask an architect") == "grp_code"
    assert chosen("best practices for this") == "grp_code"


def test_a_past_goal_teaches_words_the_description_lacks():
    goal = "the login page crashes on Safari"
    assert Router(ALL).score(goal)[0].score < 0.5
    taught = Candidate(CODE.id, CODE.name, CODE.description, examples=("fix the crash on the login page",))
    best = Router((MARKET, taught, LEGAL)).score(goal)[0]
    assert best.id == "grp_code"
    assert best.fits
    assert "“fix the crash on the login page”" in best.matched


def test_a_goal_taken_away_from_a_group_is_not_sent_there_again():
    one = Candidate("grp_one", "One", "annual reports")
    corrected = Candidate("grp_one", "One", "annual reports", against=("translate the annual report",))
    two = Candidate("grp_two", "Two", "translate texts")
    before, after = Router((one, two)), Router((corrected, two))
    goal = "translate the annual report"
    assert {s.id: s.score for s in after.score(goal)}["grp_one"] < {
        s.id: s.score for s in before.score(goal)
    }["grp_one"]
    assert after.score(goal)[0].id == "grp_two"


@pytest.mark.parametrize("goal", ["", "   ", "!!! 。", "zxqv", "\x00\ud800"])
def test_a_goal_that_matches_nothing_gives_the_first_group_and_says_it_does_not_fit(goal):
    scores = Router(ALL).score(goal)
    assert [score.id for score in scores] == ["grp_market", "grp_code", "grp_legal"]
    assert [(score.score, score.fits, score.matched) for score in scores] == [(0.0, False, ())] * 3


def test_equal_groups_keep_their_order():
    twins = [Candidate(f"grp_{n}", "Twin", "reviews contracts") for n in range(5)]
    scores = Router(twins).score("review this contract")
    assert [score.id for score in scores] == [twin.id for twin in twins]
    assert len({score.score for score in scores}) == 1


def test_without_candidates_there_are_no_scores():
    assert Router(()).score("anything") == []


def test_one_group_alone_can_still_not_fit():
    router = Router((LEGAL,))
    assert router.score("review the contract")[0].fits
    assert not router.score("bake a chocolate cake")[0].fits


@pytest.mark.parametrize("goal", ["谢谢你，再见", "what is the weather like tomorrow"])
def test_a_goal_for_nobody_fits_nobody(goal):
    assert not any(score.fits for score in Router(ALL).score(goal))


def test_scores_lie_between_zero_and_one_and_fall():
    scores = [score.score for score in Router(ALL).score("code review of the contract 市场数据")]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_what_matched_is_shown_in_the_goals_own_words():
    best = Router(ALL).score("Refactoring the old Code, please")[0]
    assert best.matched == ("Refactoring", "Code")


def test_the_same_candidates_and_goal_give_the_same_scores():
    goal = "review 代码 and the contract"
    assert Router(ALL).score(goal) == Router(list(ALL)).score(goal)


def test_a_group_without_any_words_harms_nobody():
    assert chosen("review the contract", Candidate("grp_empty"), LEGAL) == "grp_legal"


def test_a_huge_goal_is_scored():
    router = Router(ALL)
    with ends():
        assert router.score("review the contract 审查代码 " * 4_000)[0].score > 0


def test_each_of_many_groups_is_found():
    candidates = [
        Candidate(f"grp_{n}", f"Group {n}", f"about subject{n} and matter{n % 7}", examples=(f"do thing{n}",))
        for n in range(200)
    ]
    router = Router(candidates)
    for n in range(100):
        assert router.score(f"please handle subject{n} quickly")[0].id == f"grp_{n}"


GROUPS = [
    {"id": "code", "description": "code review", "examples": ["fix the crash"]},
    {"id": "law", "description": "contracts"},
]
GOALS = [
    {"text": "review my code", "gold": ["code"]},
    {"text": "check the contract", "gold": ["law"]},
    {"text": "the code of law in contracts", "gold": ["code"]},
    {"text": "bake a cake", "gold": []},
]


def test_the_report_counts_hits_misses_and_goals_for_nobody():
    found = report(GROUPS, GOALS, with_examples=False)
    assert found["accuracy_at_1"] == pytest.approx(2 / 3)
    assert found["recall_at_3"] == 1
    assert found["always_first"] == pytest.approx(2 / 3)
    assert found["confusions"] == [("code", "law", 1)]
    assert found["no_group"]["auroc"] == 1
    assert found["no_group"]["best_f1"] == 1
    assert found["no_group"]["found"] == 1


def test_the_report_uses_examples_only_when_told():
    goals = [{"text": "a crash", "gold": ["code"]}, {"text": "crash", "gold": ["code"]}]
    groups = GROUPS[::-1]
    assert report(groups, goals, with_examples=False)["accuracy_at_1"] == 0
    assert report(groups, goals, with_examples=True)["accuracy_at_1"] == 1


def test_the_report_of_nothing_has_no_figures():
    found = report([], [], with_examples=True)
    assert found["accuracy_at_1"] is None
    assert found["no_group"] is None


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"text": 1, "gold": []}', '{"text": "a"}', '{"text": "a", "gold": [1]}']
)
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "goals.jsonl"
    path.write_text(json.dumps({"text": "a", "gold": []}) + "\n" + line + "\n")
    with pytest.raises(CommandError, match=r"goals\.jsonl, line 2: "):
        read_jsonl(path, text=str, gold=list)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere\.jsonl"):
        read_jsonl(tmp_path / "nowhere.jsonl")
