"""Why was this decided so, and why did that rule say nothing?"""

from dataclasses import replace

import pytest

from policy.evaluate import GrantView, RuleSet
from policy.explain import explain
from tests.unit.policy_cases import asked, case, rule


def lines(given, *rules, **changes):
    context, tool, arguments = asked(given, **changes)
    explained = explain(replace(context, rules=RuleSet(rules)), tool, arguments)
    return {line.id or line.layer: line for line in explained.considered}


MAIL = {"effect": "require_approval", "capability": "mail"}


@pytest.mark.parametrize(
    ("fields", "spoke", "why"),
    [
        (MAIL, True, "require_approval"),
        (MAIL | {"organization": "org_2"}, False, "is for another organization"),
        (MAIL | {"project": "prj_2"}, False, "is for another project"),
        (MAIL | {"group": "grp_2"}, False, "is for another group"),
        (MAIL | {"role": "rol_2"}, False, "is for another role"),
        (MAIL | {"tool": "pay"}, False, "is about the tool pay"),
        (MAIL | {"capability": "pay"}, False, "is about the capability pay"),
        (MAIL | {"condition": "false"}, False, "its condition is false: amount > 100"),
        (MAIL | {"shadow": True}, False, "in shadow, would say require_approval"),
    ],
)
def test_every_rule_says_why_it_spoke_or_did_not(fields, spoke, why):
    line = lines(case(), rule(0, **fields))["rul_0"]
    assert (line.spoke, line.why) == (spoke, why)


def test_a_rule_that_failed_says_how():
    line = lines(case(), rule(0, **MAIL, condition="broken"))["rul_0"]
    assert line.spoke
    assert line.why.startswith("deny: its condition cannot be evaluated (")


def test_a_rule_that_yielded_says_to_what_kind_of_answer():
    seen = lines(case(), rule(0, **MAIL), rule(1, effect="deny", tool="send_email"))
    assert seen["rul_0"].why == "says require_approval, but a stricter or more specific answer stands"
    assert seen["rul_1"].spoke


def test_the_layers_come_first_and_the_risk_is_asked_only_where_no_list_spoke():
    silent = lines(case(risk="high"))
    assert [silent[layer].spoke for layer in ("delegated", "boundary", "role", "risk")] == [
        False,
        False,
        False,
        True,
    ]
    listed = lines(case(risk="high", role_allowed=("send_email",)))
    assert listed["role"].why == "allow: role.allowed_tools"
    assert listed["risk"].why == "not asked: a list spoke"


def test_where_a_list_denied_the_rules_say_what_they_would_have_said():
    seen = lines(case(role_denied=("send_email",)), rule(0, **MAIL))
    assert seen["rul_0"].why == "not asked: a list denied it; would say require_approval"


def test_grants_and_approvals_say_whether_they_lifted_it():
    grants = (GrantView("gra_1", "send_email"), GrantView("gra_2", "pay"))
    seen = lines(case(), rule(0, **MAIL), grants=grants)
    assert seen["gra_1"].why == "lifts it"
    assert seen["gra_2"].why == "is for another tool, scope or arguments"
    seen = lines(case(approved_by="service"), rule(0, **MAIL), grants=grants)
    assert seen["key-of-this-call"].spoke
    assert seen["gra_1"].why == "covers the call, but nothing it could lift"
    seen = lines(case(approved_by="service"), rule(0, **MAIL | {"effect": "require_human"}))
    assert seen["key-of-this-call"].why == "nothing that require_approval could lift"
