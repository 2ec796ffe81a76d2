"""Why a decision came out as it did: every layer, rule, grant and approval, and what each had to say.

Costs as much as there are rules, so it is made on demand: for the form "what would happen", for an approval's
page, for a refused call somebody asks about. The decision itself comes from `evaluate`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from policy import apart, conditions
from policy.evaluate import (
    ALLOWED_BY_RULE,
    Arguments,
    boundary_refuses,
    capability_rules,
    delegated_refuses,
    evaluate,
    facts,
    grant_covers,
    profile_says,
    risk_default,
    role_lists,
    speaks_in,
)
from policy.ruleset import Rule
from policy.terms import Considered, Context, Decision, ToolInfo

LEVELS = ("organization", "project", "group", "role")
ListLayer = Literal["delegated", "boundary", "role"]
Refusal = Callable[[Context, ToolInfo], Decision | None]
LISTS: tuple[tuple[ListLayer, str, Refusal], ...] = (
    ("delegated", "delegated permissions", delegated_refuses),
    ("boundary", "the user's boundary", boundary_refuses),
    ("role", "the role's lists", role_lists),
)


def explain(context: Context, tool: ToolInfo, arguments: Arguments) -> Decision:
    """`evaluate`'s decision with `considered` filled, in the order in which the layers are asked."""
    decision = evaluate(context, tool, arguments)
    with apart.allowance(apart.DECISION_SECONDS):
        considered = (
            *_lists(context, tool, arguments),
            *(_rule(rule, decision, context, tool, arguments) for rule in context.rules),
            *_approval(decision, context),
            *_grants(decision, context, tool, arguments),
        )
    return replace(decision, considered=considered)


def _lists(context: Context, tool: ToolInfo, arguments: Arguments) -> Iterator[Considered]:
    spoken = False
    for layer, name, asks in LISTS:
        answer = asks(context, tool)
        why = "says nothing of it" if answer is None else f"{answer.effect}: {answer.matched[0]}"
        yield Considered(layer, None, name, answer is not None, why)
        spoken = spoken or answer is not None
    profile = profile_says(context, tool, arguments)
    if profile is not None:
        why = f"{profile.effect}: {profile.message}"
        yield Considered("profile", None, f"the profile {context.profile}", True, why)
        return
    risk = risk_default(tool)
    rules = capability_rules(context, tool, arguments)
    lifted = rules is not None and rules.reason_code == ALLOWED_BY_RULE
    why = "not asked: a list spoke" if spoken else "not asked: a rule allows it" if lifted else risk.effect
    yield Considered("risk", None, f"{tool.risk_level} risk", not spoken and not lifted, why)


def _rule(
    rule: Rule, decision: Decision, context: Context, tool: ToolInfo, arguments: Arguments
) -> Considered:
    spoke, why = _why(rule, decision, context, tool, arguments)
    return Considered("rule", rule.id, rule.label, spoke, why)


def _why(
    rule: Rule, decision: Decision, context: Context, tool: ToolInfo, arguments: Arguments
) -> tuple[bool, str]:
    if not speaks_in(rule, context):
        levels = zip(LEVELS, rule.scope, context.scope, strict=True)
        other = next(level for level, wanted, actual in levels if wanted is not None and wanted != actual)
        return False, f"is for another {other}"
    if rule.tool is not None and rule.tool != tool.name:
        return False, f"is about the tool {rule.tool}"
    if rule.capability is not None and rule.capability not in tool.capabilities:
        return False, f"is about the capability {rule.capability}"
    try:
        if rule.condition is not None and not conditions.holds(
            rule.condition,
            arguments,
            facts(context, tool, arguments),
            rule.effect == "allow",
            tool.with_defaults,
        ):
            return False, f"its condition is false: {rule.condition}"
        says = rule.effect
        cause = ""
    except conditions.ConditionError as failure:
        says = "deny"
        cause = f": its condition cannot be evaluated ({failure})"
    if rule.shadow:
        return False, f"in shadow, would say {rule.effect}{cause}"
    if rule.id in decision.matched:
        return True, f"{says}{cause}"
    if decision.effect == "deny" and decision.rule_id is None:
        return False, f"not asked: a list denied it; would say {says}{cause}"
    return False, f"says {says}{cause}, but a stricter or more specific answer stands"


def _approval(decision: Decision, context: Context) -> Iterator[Considered]:
    if context.idempotency_key is None:
        return
    effects = sorted(effect for key, effect in context.approvals if key == context.idempotency_key)
    for effect in effects:
        spoke = decision.reason_code == "approved"
        why = "lifts it" if spoke else f"nothing that {effect} could lift"
        yield Considered("approval", context.idempotency_key, f"an approval for {effect}", spoke, why)


def _grants(
    decision: Decision, context: Context, tool: ToolInfo, arguments: Arguments
) -> Iterator[Considered]:
    for grant in context.grants:
        if grant.id == decision.grant_id:
            yield Considered("grant", grant.id, grant.id, True, "lifts it")
        elif grant_covers(grant, context, tool, arguments):
            yield Considered("grant", grant.id, grant.id, False, "covers the call, but nothing it could lift")
        else:
            yield Considered("grant", grant.id, grant.id, False, "is for another tool, scope or arguments")
