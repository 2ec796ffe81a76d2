"""The order of policy, one sentence at a time. Every combination is in test_policy_truth_table."""

from dataclasses import replace
from itertools import permutations

import pytest

from policy.evaluate import (
    Binding,
    Boundary,
    DelegatedPermissions,
    GrantView,
    Rule,
    RuleSet,
    ToolInfo,
    bind,
    evaluate,
)
from policy.provenance.terms import Facts
from tests.unit.policy_cases import KEY, asked, case

MAIL_NEEDS_APPROVAL = {"effect": "require_approval", "capability": "mail"}


def decide(given, **changes):
    return evaluate(*asked(given, **changes))


def with_rules(*rules, **changes):
    context, tool, arguments = asked(case(**changes))
    return evaluate(replace(context, rules=RuleSet(rules)), tool, arguments)


@pytest.mark.parametrize(
    ("changes", "reason", "rule"),
    [
        (
            {"delegated": {"allowed": None, "denied": ("send_email",)}},
            "delegated_denied",
            "the delegated permissions deny it",
        ),
        (
            {"delegated": {"allowed": ("read",), "denied": ()}},
            "delegated_not_allowed",
            "the delegated permissions do not include it",
        ),
        ({"membership": None}, "no_membership", "the user has no active membership"),
        (
            {"membership": {"allowed": None, "denied": ("send_email",)}},
            "boundary_denied",
            "the user's boundary denies it",
        ),
        (
            {"membership": {"allowed": (), "denied": ()}},
            "boundary_not_allowed",
            "the user's boundary does not include it",
        ),
        ({"role_denied": ("send_email",)}, "role_denied", "the role denies it"),
        ({"role_allowed": ("read",)}, "role_not_allowed", "the role's list does not include it"),
        ({"rules": ({"effect": "deny", "capability": "mail", "name": "No mail"},)}, "rule_deny", "No mail"),
        ({"rules": ({"effect": "deny", "capability": "mail"},)}, "rule_deny", "rul_0"),
    ],
)
def test_a_denial_says_which_rule_denied(changes, reason, rule):
    decision = decide(case(**changes))
    assert decision.effect == "deny"
    assert decision.reason_code == reason
    assert decision.message == f"Tool 'send_email' is denied by policy: {rule}"
    assert not decision.unlockable


def test_the_layers_are_asked_in_order_and_the_first_refusal_is_the_reason():
    refused = {"allowed": (), "denied": ()}
    everywhere = case(delegated=refused, membership=refused, role_allowed=())
    assert decide(everywhere).reason_code == "delegated_not_allowed"
    assert decide({**everywhere, "delegated": None}).reason_code == "boundary_not_allowed"
    assert decide({**everywhere, "delegated": None}, boundary=Boundary()).reason_code == "role_not_allowed"


def test_a_high_risk_tool_on_the_roles_list_needs_no_approval():
    assert decide(case(risk="high", role_allowed=("send_email",))).effect == "allow"


def test_a_high_risk_tool_that_no_list_names_needs_one():
    decision = decide(case(risk="high"))
    assert decision.effect == "require_approval"
    assert decision.message == "Tool 'send_email' requires approval: its risk is high"
    assert decision.unlockable


def test_a_risk_nobody_has_heard_of_counts_as_high():
    assert decide(case(risk="catastrophic")).effect == "require_approval"


def test_a_rule_may_ask_although_the_role_allows():
    given = case(role_allowed=("send_email",), rules=(MAIL_NEEDS_APPROVAL,))
    assert decide(given).message == "Tool 'send_email' requires approval: rul_0"


def test_a_rule_that_allows_lifts_what_the_risk_asks_for_and_neither_a_list_nor_a_deny():
    rules = ({"effect": "allow", "tool": "send_email", "role": "rol_1"},)
    assert decide(case(risk="high", rules=rules)).effect == "allow"
    assert decide(case(risk="high", rules=rules, role_allowed=())).effect == "deny"
    assert decide(case(risk="high", rules=rules, role_denied=("send_email",))).effect == "deny"
    denied = (*rules, {"effect": "deny", "capability": "mail"})
    assert decide(case(risk="high", rules=denied)).effect == "deny"


def test_the_risk_default_stays_while_one_of_the_capabilities_is_allowed_by_no_rule():
    rules = ({"effect": "allow", "capability": "mail"},)
    both = case(risk="high", rules=rules, capabilities=("mail", "pay"))
    assert decide(both).effect == "require_approval"
    assert decide(case(risk="high", rules=({**rules[0], "shadow": True},))).effect == "require_approval"


def test_what_was_passed_on_unvouched_is_asked_about_whatever_the_role_lists():
    listed = case(risk="high", role_allowed=("send_email",), delegated={"allowed": None, "denied": ()})
    context, tool, arguments = asked(listed)
    assert evaluate(context, tool, arguments).effect == "allow"

    unvouched = replace(context.agent, delegated_permissions=DelegatedPermissions(vouched_tools=("read",)))
    assert evaluate(replace(context, agent=unvouched), tool, arguments).effect == "require_approval"


def test_without_a_rule_every_capability_is_allowed():
    assert decide(case()).effect == "allow"


def test_tool_names_in_lists_match_exactly_and_are_no_patterns():
    assert decide(case(role_allowed=("send_*",))).effect == "deny"
    assert decide(case(role_allowed=("Send_Email",))).effect == "deny"
    assert decide(case(role_denied=("send_*", "send_email "))).effect == "allow"


def test_a_rule_about_a_tool_holds_for_a_tool_without_capabilities():
    rules = ({"effect": "require_human", "tool": "send_email"},)
    assert decide(case(capabilities=(), rules=rules)).effect == "require_human"


def test_a_more_specific_rule_may_loosen_what_a_wider_one_asks():
    rules = (MAIL_NEEDS_APPROVAL | {"organization": "org_1"}, {"effect": "allow", "tool": "send_email"})
    assert decide(case(rules=rules)).effect == "require_approval", "a scope outweighs naming the tool"
    rules = (MAIL_NEEDS_APPROVAL | {"organization": "org_1"}, {**rules[1], "role": "rol_1"})
    assert decide(case(rules=rules)).effect == "allow"


def test_no_specific_rule_loosens_a_deny():
    rules = (
        {"effect": "deny", "capability": "mail", "organization": "org_1"},
        {"effect": "allow", "tool": "send_email", "role": "rol_1"},
    )
    assert decide(case(rules=rules)).effect == "deny"


ABOVE = {"organization": "org_1", "tool": "send_email"}


@pytest.mark.parametrize("level", ["group", "role"])
@pytest.mark.parametrize("effect", ["deny", "require_human", "require_approval", "allow"])
def test_what_a_rule_asks_or_denies_a_level_above_it_does_below(level, effect):
    """Whoever may not do something by themselves has nobody else do it."""
    own = Rule("own", "allow", **ABOVE, group="g", project="p")
    above = Rule("above", effect, **ABOVE, **{level: "lead"}, deciders_needed=2)
    context, tool, arguments = asked(case(rules=()))
    place = {"organization": "org_1", "project": "p", "group": "g"}
    scope = ("org_1", "p", "lead" if level == "group" else None, "lead" if level == "role" else None)
    context = replace(context, **place, rules=RuleSet([own, above]))
    assert evaluate(context, tool, arguments).effect == "allow"
    decision = evaluate(replace(context, above=(scope,)), tool, arguments)
    assert decision.effect == effect
    assert effect in ("allow", "deny") or decision.deciders_needed == 2
    assert evaluate(replace(context, above=(("org_1", "p", "x", "x"),)), tool, arguments).effect == "allow"


def test_a_rule_of_no_level_asks_once_and_a_narrower_one_of_the_level_stands():
    wide, role = Rule("wide", "require_approval", **ABOVE), Rule("r", "require_human", **ABOVE, role="lead")
    narrow = Rule("narrow", "allow", **ABOVE, role="lead", project="p")
    own = Rule("own", "allow", **ABOVE, group="g")
    context, tool, arguments = asked(case(rules=()))
    place = {"organization": "org_1", "project": "p", "group": "g", "above": (("org_1", "p", None, "lead"),)}
    context = replace(context, **place)
    assert evaluate(replace(context, rules=RuleSet([wide, own])), tool, arguments).effect == "allow"
    assert evaluate(replace(context, rules=RuleSet([role, own])), tool, arguments).effect == "require_human"
    assert evaluate(replace(context, rules=RuleSet([role, narrow, own])), tool, arguments).effect == "allow"


def test_rules_of_another_organization_are_never_heard():
    rules = ({"effect": "deny", "capability": "mail", "organization": "org_2"},)
    assert decide(case(rules=rules)).effect == "allow"


def test_a_condition_that_cannot_be_evaluated_denies_and_says_why():
    decision = decide(case(rules=({"effect": "allow", "capability": "mail", "condition": "broken"},)))
    assert decision.effect == "deny"
    assert decision.reason_code == "rule_condition_error"
    assert "missing" in decision.message


def test_a_shadow_rule_is_reported_and_decides_nothing_even_when_it_fails():
    rules = (
        {"effect": "deny", "capability": "mail", "shadow": True},
        {"effect": "allow", "capability": "mail", "condition": "broken", "shadow": True},
        {"effect": "deny", "capability": "mail", "condition": "false", "shadow": True},
    )
    decision = decide(case(rules=rules))
    assert decision.effect == "allow"
    assert decision.reason_code == "risk_default"
    assert [(seen.rule_id, seen.effect, seen.error is None) for seen in decision.shadowed] == [
        ("rul_0", "deny", True),
        ("rul_1", "allow", False),
    ]


def test_what_two_capabilities_ask_for_holds_together():
    mail = Rule("rul_mail", "require_approval", "mail", timeout=60, on_expiry="cancel_run", deciders_needed=3)
    pay = Rule("rul_pay", "require_human", "pay", timeout=600)
    decision = with_rules(mail, pay, capabilities=("mail", "pay"))
    assert decision.effect == "require_human"
    assert (decision.rule_id, decision.capability) == ("rul_pay", "pay")
    assert decision.matched == ("rul_pay", "rul_mail")
    assert (decision.timeout, decision.on_expiry, decision.deciders_needed) == (60, "cancel_run", 3)


def test_the_rules_terms_hold_where_the_risk_asks_too():
    decision = with_rules(Rule("rul_mail", "require_approval", "mail", timeout=60), risk="high")
    assert (decision.rule_id, decision.timeout) == ("rul_mail", 60)


def test_what_equal_rules_ask_for_holds_together_whichever_is_newer():
    boss = Rule("rul_a", "require_approval", "mail", deciders_needed=2, deciders=("role:boss",))
    person = Rule("rul_b", "require_human", "mail", deciders=("run.user",), timeout=60)
    wider = Rule("rul_c", "require_human", "mail", deciders_needed=3)
    for rules in permutations(
        (replace(boss, organization="org_1"), replace(person, organization="org_1"), wider)
    ):
        decision = with_rules(*rules)
        assert (decision.rule_id, decision.effect, decision.timeout) == ("rul_b", "require_human", 60)
        assert (decision.deciders_needed, {*decision.deciders}) == (2, {("role:boss",), ("run.user",)})


def test_an_approval_of_this_call_lets_it_through_and_uses_no_grant():
    decision = decide(case(rules=(MAIL_NEEDS_APPROVAL,), approved_by="service", granted=True))
    assert (decision.effect, decision.reason_code, decision.grant_id) == ("allow", "approved", None)


def test_an_approval_of_other_arguments_does_not():
    given = case(rules=(MAIL_NEEDS_APPROVAL,), approved_by="person")
    assert decide(given, idempotency_key=f"{KEY}-edited").effect == "require_approval"
    assert decide(given, idempotency_key=None).effect == "require_approval"


def test_a_grant_names_itself_where_it_lets_a_call_through():
    decision = decide(case(rules=(MAIL_NEEDS_APPROVAL,), granted=True))
    assert (decision.effect, decision.reason_code, decision.grant_id) == ("allow", "granted", "gra_1")
    assert decision.matched == ("rul_0", "gra_1")


@pytest.mark.parametrize(
    ("grant", "covers"),
    [
        (GrantView("gra", "send_email"), True),
        (GrantView("gra", "send_emai"), False),
        (GrantView("gra", "send_emails"), False),
        (GrantView("gra", "send_*"), False),
        (GrantView("gra", "send_email", {"amount": 100}), True),
        (GrantView("gra", "send_email", {"amount": 99}), False),
        (GrantView("gra", "send_email", {"amount": 101}), False),
        (GrantView("gra", "send_email", {"amount": 1000}), False),
        (GrantView("gra", "send_email", {}), False),
        (GrantView("gra", "send_email", {"amount": True}), False),
        (GrantView("gra", "send_email", condition="amount <= 100"), True),
        (GrantView("gra", "send_email", condition="amount < 100"), False),
        (GrantView("gra", "send_email", condition="missing < 100"), False),
        (GrantView("gra", "send_email", organization="org_1", project="prj_1"), True),
        (GrantView("gra", "send_email", project="prj_2"), False),
        (GrantView("gra", "send_email", project="prj_0"), False),
        (GrantView("gra", "send_email", role="rol_2"), False),
    ],
)
def test_a_grant_covers_its_tool_arguments_and_scope_only(grant, covers):
    decision = decide(case(rules=(MAIL_NEEDS_APPROVAL,)), grants=(grant,))
    assert decision.allowed is covers


def test_a_grant_made_for_a_call_without_arguments_covers_no_other():
    given = case(risk="high")
    context, tool, _ = asked(given, grants=(GrantView("gra", "send_email", {}),))
    assert evaluate(context, tool, {}).allowed
    assert not evaluate(context, tool, {"to": "anyone"}).allowed


def test_bindings_are_where_a_pattern_gives_a_tool_its_capabilities():
    bindings = [Binding("mail_*", "send_email"), Binding("mail_send", "external"), Binding("*", "logged")]
    assert bind(ToolInfo("mail_send", capabilities=("write",)), bindings).capabilities == (
        "external",
        "logged",
        "send_email",
        "write",
    )
    assert bind(ToolInfo("email_send"), bindings).capabilities == ("logged",)
    assert bind(ToolInfo("a"), [Binding("?", "x"), Binding("[a]", "x")]).capabilities == ()
    assert bind(ToolInfo("a[1]?"), [Binding("a[1]?", "x")]).capabilities == ("x",)


def test_what_a_list_denies_asks_no_rule_and_no_origin():
    def trace(tool, arguments):
        raise AssertionError("nobody asks where the values came from")

    shadow = {"effect": "deny", "capability": "mail", "shadow": True}
    denied = case(role_denied=("send_email",), rules=(shadow,))
    assert decide(denied, profile="strict", trace=trace).shadowed == ()


def test_an_answer_for_some_of_the_capabilities_keeps_its_reason_where_it_asks():
    context, tool, arguments = asked(case(rules=(MAIL_NEEDS_APPROVAL,)))
    decision = evaluate(context, replace(tool, capabilities=("mail", "other")), arguments)
    assert (decision.effect, decision.reason_code) == ("require_approval", "rule_require_approval")


def test_a_condition_that_cannot_be_evaluated_says_which_rule_and_why():
    broken = {"effect": "allow", "capability": "mail", "condition": "broken", "name": "Small sums"}
    decision = decide(case(rules=(broken,)))
    assert decision.message.startswith(
        "Tool 'send_email' is denied by policy: Small sums: its condition cannot be evaluated ("
    )
    assert decision.message.endswith(")")


def test_a_rule_about_nothing_or_with_an_unknown_effect_is_refused():
    with pytest.raises(ValueError, match="neither a capability nor a tool"):
        Rule("rul", "deny")
    with pytest.raises(ValueError, match="unknown effect"):
        Rule("rul", "forbid", tool="x")


# what an answer says of itself


@pytest.mark.parametrize(
    ("changes", "matched"),
    [
        ({"delegated": {"allowed": None, "denied": ("send_email",)}}, "delegated.denied_tools"),
        ({"delegated": {"allowed": (), "denied": ()}}, "delegated.allowed_tools"),
        ({"membership": None}, "membership"),
        ({"membership": {"allowed": None, "denied": ("send_email",)}}, "boundary.denied_tools"),
        ({"membership": {"allowed": (), "denied": ()}}, "boundary.allowed_tools"),
        ({"role_denied": ("send_email",)}, "role.denied_tools"),
        ({"role_allowed": ()}, "role.allowed_tools"),
    ],
)
def test_a_refusal_names_the_list_that_refused(changes, matched):
    assert decide(case(**changes)).matched == (matched,)


@pytest.mark.parametrize(
    ("changes", "reason", "message", "matched"),
    [
        (
            {"role_allowed": ("send_email",)},
            "role_allowed",
            "the role's list includes it",
            "role.allowed_tools",
        ),
        ({"risk": "low"}, "risk_default", "nothing restricts it", "risk.low"),
        ({"risk": "medium"}, "risk_default", "nothing restricts it", "risk.medium"),
        (
            {"risk": "high"},
            "risk_default",
            "Tool 'send_email' requires approval: its risk is high",
            "risk.high",
        ),
        (
            {"rules": ({"effect": "require_human", "capability": "mail"},)},
            "rule_require_human",
            "Tool 'send_email' requires a person's approval: rul_0",
            "rul_0",
        ),
        (
            {"risk": "high", "rules": ({"effect": "allow", "capability": "mail"},)},
            "rule_allow",
            "rul_0",
            "rul_0",
        ),
        (
            {"rules": (MAIL_NEEDS_APPROVAL,), "approved_by": "service"},
            "approved",
            "this call was approved",
            "rul_0",
        ),
    ],
)
def test_an_answer_says_what_decided_it_and_why(changes, reason, message, matched):
    decision = decide(case(**changes))
    assert (decision.reason_code, decision.message, decision.matched) == (reason, message, (matched,))


def test_a_standing_approval_says_that_it_covers_the_call():
    decision = decide(case(rules=(MAIL_NEEDS_APPROVAL,), granted=True))
    assert decision.message == "a standing approval covers it"


def test_a_condition_that_cannot_be_evaluated_says_whose_it_is():
    decision = decide(case(rules=({"effect": "allow", "capability": "mail", "condition": "broken"},)))
    assert decision.message.startswith(
        "Tool 'send_email' is denied by policy: rul_0: its condition cannot be evaluated ("
    )


def test_a_rule_that_allows_one_of_two_capabilities_says_that_it_allowed_in_part():
    rules = ({"effect": "allow", "capability": "mail", "organization": "org_1"},)
    decision = decide(case(rules=rules, capabilities=("mail", "pay")))
    assert (decision.effect, decision.reason_code, decision.rule_id) == (
        "allow",
        "rule_allow_in_part",
        "rul_0",
    )
    assert decide(case(rules=rules)).reason_code == "rule_allow"


def test_a_shadow_rule_is_reported_beside_the_rule_that_decides():
    rules = (MAIL_NEEDS_APPROVAL, {"effect": "deny", "capability": "mail", "shadow": True})
    decision = decide(case(rules=rules))
    assert (decision.effect, decision.rule_id) == ("require_approval", "rul_0")
    assert [seen.rule_id for seen in decision.shadowed] == ["rul_1"]


# the project's profile


def facts(**changes):
    """What is known of a call that does something nobody asked for."""
    return Facts(**{"values": (), "effect": True, "read_outside": False, "asked_for": False, **changes})


def test_without_a_record_of_where_values_come_from_a_profile_asks():
    decision = decide(case(), profile="open", trace=None)
    assert (decision.effect, decision.reason_code) == ("require_approval", "profile")
    assert decision.message == "Tool 'send_email' requires approval: nothing says where its values come from"
    assert decision.matched == ("profile.open",)


def test_a_profile_asks_about_the_call_at_hand_and_says_why():
    seen = []
    decision = decide(
        case(), profile="careful", trace=lambda name, arguments: seen.append((name, arguments)) or facts()
    )
    assert seen == [("send_email", {"amount": 100})]
    assert decision.message == "Tool 'send_email' requires approval: it does more than read"
    assert decision.matched == ("profile.careful",)


def test_a_profile_that_lets_a_call_pass_lifts_the_risk_and_not_the_roles_or_a_rules_word():
    def passes(name, arguments):
        return facts(effect=False)

    decision = decide(case(risk="high"), profile="careful", trace=passes)
    assert (decision.effect, decision.reason_code) == ("allow", "profile")
    assert decision.message == "the profile careful lets it pass"
    assert decision.matched == ("profile.careful",)
    assert decide(case(role_allowed=()), profile="careful", trace=passes).effect == "deny"
    asks = decide(case(rules=(MAIL_NEEDS_APPROVAL,)), profile="careful", trace=passes)
    assert (asks.effect, asks.rule_id) == ("require_approval", "rul_0")


def test_a_profile_asks_although_the_role_lists_the_tool_or_a_rule_allows_it():
    listed = case(role_allowed=("send_email",))
    allowed = case(rules=({"effect": "allow", "capability": "mail"},))
    for given in (listed, allowed):
        decision = decide(given, profile="careful", trace=lambda name, arguments: facts())
        assert (decision.effect, decision.reason_code) == ("require_approval", "profile")


def test_a_grant_may_ask_where_the_values_come_from():
    outside = GrantView("gra", "send_email", condition="call.asked_for")
    asking = case(rules=(MAIL_NEEDS_APPROVAL,))
    for asked_for in (True, False):
        given = {"trace": lambda name, arguments, known=asked_for: facts(asked_for=known)}
        assert decide(asking, grants=(outside,), **given).allowed is asked_for


# demands of two layers, and who may lift them


def test_the_demands_of_a_profile_and_a_rule_hold_together():
    rule = Rule(
        "rul_mail",
        "require_approval",
        "mail",
        timeout=60,
        on_expiry="cancel_run",
        deciders_needed=2,
        deciders=("role:Lead",),
    )
    decision = with_rules(rule, risk="high")
    assert decision.matched == ("rul_mail", "risk.high")
    assert (decision.timeout, decision.on_expiry, decision.deciders_needed) == (60, "cancel_run", 2)
    assert decision.deciders == (("role:Lead",),)


def test_of_two_capabilities_every_list_of_deciders_counts_once():
    lead, auditor = ("role:Lead",), ("role:Auditor",)
    mail = Rule("rul_mail", "require_approval", "mail", deciders=lead)
    pay = Rule("rul_pay", "require_approval", "pay", deciders=auditor)
    read = Rule("rul_read", "require_approval", "read", deciders=lead)
    decision = with_rules(mail, pay, read, capabilities=("mail", "pay", "read"))
    assert decision.deciders == (lead, auditor)
    assert decision.matched == ("rul_mail", "rul_pay", "rul_read")
    assert (decision.timeout, decision.on_expiry) == (None, "fail_call")


@pytest.mark.parametrize(
    "more", [{"deciders_needed": 2}, {"deciders": ("role:Lead",)}, {"effect": "require_human"}]
)
def test_no_grant_lifts_what_one_decider_alone_could_not(more):
    rule = Rule(**{"id": "rul", "effect": "require_approval", "capability": "mail", **more})
    context, tool, arguments = asked(case(granted=True))
    assert not evaluate(replace(context, rules=RuleSet([rule])), tool, arguments).allowed


def test_the_grant_that_covers_is_found_behind_one_that_does_not():
    grants = (GrantView("gra_other", "pay"), GrantView("gra_mail", "send_email"))
    assert decide(case(rules=(MAIL_NEEDS_APPROVAL,)), grants=grants).grant_id == "gra_mail"
