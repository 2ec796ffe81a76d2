"""Every combination of lists, risk, rules, approvals and grants, against the oracle."""

from itertools import combinations, product

import pytest

from policy.checker import check_with_delegated
from policy.evaluate import evaluate
from tests.unit.policy_cases import asked, case
from tests.unit.policy_oracle import answer, by_the_lists

TOOL = "send_email"
ALLOWED = (None, (), (TOOL,), ("other",), ("other", TOOL))
DENIED = ((), (TOOL,), ("other",))
LISTS = [{"allowed": allowed, "denied": denied} for allowed, denied in product(ALLOWED, DENIED)]
EFFECTS = ("allow", "require_approval", "require_human", "deny")
RULES_IN_SHORT = [(), *(({"effect": effect, "capability": "mail"},) for effect in EFFECTS)]

SCOPES = (
    {"organization": "org_1"},
    {"project": "prj_1"},
    {"group": "grp_1"},
    {"role": "rol_1"},
    {"role": "rol_1", "project": "prj_1"},
    {"project": "prj_2"},
)
SUBJECTS = ({"tool": TOOL}, {"capability": "mail"}, {"tool": "other"}, {"tool": TOOL, "capability": "mail"})
EVERY_RULE = [
    {"effect": effect, **subject, **scope} for effect, subject, scope in product(EFFECTS, SUBJECTS, SCOPES)
]
ASKED_FOR_NOTHING = {"risk": "low"}
ASKED_FOR_RISK = {"risk": "high"}
REFUSED = {"role_allowed": ()}


def assert_agree(cases):
    wrong = [
        (given, said, wanted)
        for given in cases
        if (said := evaluate(*asked(given)).effect) != (wanted := answer(given))
    ]
    assert wrong == [], f"{len(wrong)} differ, the first: {wrong[0]}"


@pytest.mark.parametrize("risk", ["low", "medium", "high"])
def test_lists_of_role_run_and_user_decide_as_the_seeds_say_whatever_the_rule(risk):
    assert_agree(
        case(
            risk=risk,
            role_allowed=role["allowed"],
            role_denied=role["denied"],
            delegated=delegated,
            membership=membership,
            rules=rules,
        )
        for role, delegated, membership, rules in product(
            LISTS, [None, *LISTS], [None, *LISTS], RULES_IN_SHORT
        )
    )


@pytest.mark.parametrize("risk", ["low", "medium", "high"])
def test_check_with_delegated_answers_from_the_lists_alone(risk):
    words = {"allow": "allow", "require_approval": "ask", "deny": "deny"}
    for role, delegated in product(LISTS, [None, *LISTS]):
        given = case(risk=risk, role_allowed=role["allowed"], role_denied=role["denied"], delegated=delegated)
        context, tool, _ = asked(given)
        assert check_with_delegated(context.agent, tool) == words[by_the_lists(given)], given


@pytest.mark.parametrize("layer", [ASKED_FOR_NOTHING, ASKED_FOR_RISK, REFUSED])
def test_one_rule_decides_as_the_seeds_say_with_and_without_approvals(layer):
    assert_agree(
        case(rules=(rule,), approved_by=approved_by, granted=granted, **layer)
        for rule, approved_by, granted in product(EVERY_RULE, (None, "service", "person"), (False, True))
    )


@pytest.mark.parametrize("approved_by", [None, "service", "person"])
def test_of_two_rules_a_deny_or_the_more_specific_or_the_stricter_decides(approved_by):
    assert_agree(
        case(rules=pair, approved_by=approved_by, risk=risk)
        for pair, risk in product(combinations(EVERY_RULE, 2), ("low", "high"))
    )


def test_conditions_and_shadows_decide_whether_a_rule_speaks_at_all():
    variants = [
        {
            "effect": effect,
            "capability": "mail",
            "organization": "org_1",
            "condition": condition,
            "shadow": shadow,
        }
        for effect, condition, shadow in product(EFFECTS, ("true", "false", "broken"), (False, True))
    ]
    assert_agree(case(rules=pair) for pair in product(variants, variants))


def test_of_several_capabilities_the_strictest_answer_holds():
    assert_agree(
        case(
            capabilities=capabilities,
            rules=({"effect": mail, "capability": "mail"}, {"effect": pay, "capability": "pay"}),
        )
        for capabilities, mail, pay in product(
            ((), ("mail",), ("pay",), ("mail", "pay"), ("mail", "pay", "read")), EFFECTS, EFFECTS
        )
    )
