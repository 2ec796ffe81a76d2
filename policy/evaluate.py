"""May this agent call this tool with these arguments? The order of policy, written once (design 5).

Pure: no ORM, no clock, no I/O of its own (conditions: policy/apart.py). Tool names in lists match exactly.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial, reduce
from operator import itemgetter
from typing import Any

from common.canonical import canonical
from policy import apart, conditions
from policy.provenance import profiles
from policy.provenance.terms import Facts
from policy.ruleset import Rank, Ranked, Rule, RuleSet
from policy.terms import (
    PEOPLE,
    RUN_USER,
    STRICTNESS,
    AgentContext,
    Binding,
    Boundary,
    Considered,
    Context,
    Decision,
    DelegatedPermissions,
    Effect,
    GrantView,
    OnExpiry,
    Risk,
    Shadowed,
    ToolInfo,
    names_user,
)

__all__ = [
    "STRICTNESS",
    "AgentContext",
    "Binding",
    "Boundary",
    "Considered",
    "Context",
    "Decision",
    "DelegatedPermissions",
    "Effect",
    "GrantView",
    "OnExpiry",
    "Risk",
    "Rule",
    "RuleSet",
    "Shadowed",
    "ToolInfo",
    "bind",
    "evaluate",
]

Arguments = Mapping[str, Any]
Matched = tuple[Rank, Rule, bool]  # whether the rule speaks of the call however its addresses are spelled


def evaluate(context: Context, tool: ToolInfo, arguments: Arguments) -> Decision:
    """Decides one call. `arguments` are the effective ones, already valid against the tool's schema."""
    with apart.allowance(apart.DECISION_SECONDS):
        return _decided(context, tool, arguments)


def _decided(context: Context, tool: ToolInfo, arguments: Arguments) -> Decision:
    listed = delegated_refuses(context, tool) or boundary_refuses(context, tool) or role_lists(context, tool)
    if listed is not None and listed.effect == "deny":
        return listed
    profile = profile_says(context, tool, arguments)
    rules = capability_rules(context, tool, arguments)
    default = rules if rules is not None and rules.reason_code == ALLOWED_BY_RULE else risk_default(tool)
    allowed = stricter(listed or profile or default, profile)
    return lift(stricter(allowed, rules), context, tool, arguments)


# 1. delegated


def delegated_refuses(context: Context, tool: ToolInfo) -> Decision | None:
    """Denied, or not in a list of what is allowed → deny; otherwise nothing is said (seed 000 1.2)."""
    delegated = context.agent.delegated_permissions
    if delegated is None:
        return None
    if tool.name in delegated.denied_tools:
        return deny(tool, "delegated_denied", "the delegated permissions deny it", "delegated.denied_tools")
    if delegated.allowed_tools is not None and tool.name not in delegated.allowed_tools:
        why = "the delegated permissions do not include it"
        return deny(tool, "delegated_not_allowed", why, "delegated.allowed_tools")
    return None


# 2. the user's live boundary


def boundary_refuses(context: Context, tool: ToolInfo) -> Decision | None:
    """The same two questions of the user's own limits; without an active membership all is denied."""
    boundary = context.boundary
    if boundary is None:
        return deny(tool, "no_membership", "the user has no active membership", "membership")
    if tool.name in boundary.denied_tools:
        return deny(tool, "boundary_denied", "the user's boundary denies it", "boundary.denied_tools")
    if boundary.allowed_tools is not None and tool.name not in boundary.allowed_tools:
        why = "the user's boundary does not include it"
        return deny(tool, "boundary_not_allowed", why, "boundary.allowed_tools")
    return None


# 3. role


def role_lists(context: Context, tool: ToolInfo) -> Decision | None:
    """Denied → deny; a list with it → allow, without it → deny; no list → nothing is said.

    A list allows what was passed on only where every level above named it too (ruling 38).
    """
    agent = context.agent
    if tool.name in agent.denied_tools:
        return deny(tool, "role_denied", "the role denies it", "role.denied_tools")
    if agent.allowed_tools is None:
        return None
    if tool.name in agent.allowed_tools:
        if agent.delegated_permissions is not None and not agent.delegated_permissions.vouches_for(tool.name):
            return None
        return Decision("allow", "role_allowed", "the role's list includes it", ("role.allowed_tools",))
    return deny(tool, "role_not_allowed", "the role's list does not include it", "role.allowed_tools")


# 4. the project's profile, or else the risk


def profile_says(context: Context, tool: ToolInfo, arguments: Arguments) -> Decision | None:
    """What the project's profile wants, by where the call's values came from; None where it is off."""
    if context.profile == "off":
        return None
    if context.trace is None:
        why = "nothing says where its values come from"
    else:
        why = profiles.asks(context.profile, context.trace(tool.name, arguments))
    matched = (f"profile.{context.profile}",)
    if not why:
        return Decision("allow", "profile", f"the profile {context.profile} lets it pass", matched)
    message = f"Tool '{tool.name}' requires approval: {why}"
    return Decision("require_approval", "profile", message, matched)


def risk_default(tool: ToolInfo) -> Decision:
    """Low and medium → allow; high, or a risk nobody has heard of → require_approval."""
    if tool.risk_level in ("low", "medium"):
        return Decision("allow", BY_RISK, "nothing restricts it", (f"risk.{tool.risk_level}",))
    message = f"Tool '{tool.name}' requires approval: its risk is high"
    return Decision("require_approval", BY_RISK, message, ("risk.high",))


# 5. each capability


def capability_rules(context: Context, tool: ToolInfo, arguments: Arguments) -> Decision | None:
    """The strictest answer over the tool's capabilities; None where no rule speaks (seed 004).

    A tool without capabilities is still asked about: rules may name it. Where rules allow some of its
    capabilities and none speaks of another, nobody has said that the tool may be used unasked.
    """
    decided: Decision | None = None
    shadowed: dict[str, Shadowed] = {}
    silent = False
    for capability in tool.capabilities or (None,):
        answer = rule_for(capability, context, tool, arguments, shadowed)
        if answer is not None:
            decided = answer if decided is None else stricter(decided, answer)
        silent = silent or answer is None
    if decided is not None and decided.effect == "allow" and silent:
        decided = replace(decided, reason_code="rule_allow_in_part")
    if shadowed:
        decided = replace(decided or NO_RULE, shadowed=tuple(shadowed.values()))
    return decided


def rule_for(
    capability: str | None,
    context: Context,
    tool: ToolInfo,
    arguments: Arguments,
    shadowed: dict[str, Shadowed],
) -> Decision | None:
    """What the rules of the agent's own scope say, and what those that name a group or a role above it ask or
    deny: whoever may not do something has nobody else do it.
    """
    ask = partial(answer_of, capability=capability, context=context, tool=tool, arguments=arguments)
    about = partial(context.rules.about, tool.name, capability)
    decided = ask(about(context.scope), shadowed=shadowed)
    for scope in context.above:
        passed_on = ask([ranked for ranked in about(scope) if ranked[1].of_level], shadowed=shadowed)
        if passed_on is not None and passed_on.effect != "allow":
            decided = stricter(passed_on, decided)
    return decided


def answer_of(
    ranked: Iterable[Ranked],
    capability: str | None,
    context: Context,
    tool: ToolInfo,
    arguments: Arguments,
    shadowed: dict[str, Shadowed],
) -> Decision | None:
    """Any matching deny wins, at whatever scope; otherwise the most specific rule; none → None.

    What several ask for that are equally specific holds together: none of them takes another's place. Beside
    one that members of some projects arranged, the most specific rule of no project holds as well: it may
    have come, or come to be applied, after theirs was accepted.
    """
    matching: list[Matched] = []
    denying: list[tuple[Rank, Rule, str | None]] = []
    for rank, rule in ranked:
        error, sure = None, True
        if rule.condition is not None:
            try:
                known = facts(context, tool, arguments)
                found = conditions.answers(rule.condition, arguments, known, tool.with_defaults)
                sure = False not in found
                if not conditions.speaks(found, rule.effect == "allow"):
                    continue
            except conditions.ConditionError as failure:
                error = str(failure)
        if rule.shadow:
            shadowed[rule.id] = Shadowed(rule.id, rule.effect, error)
        elif error is not None or rule.effect == "deny":
            denying.append((rank, rule, error))
        else:
            matching.append((rank, rule, sure))
    if denying:
        _, rule, error = max(denying, key=itemgetter(0))
        return by_rule(rule, capability, tool, error)
    matching.sort(key=itemgetter(0), reverse=True)
    deciding = up_to_a_sure_one(matching)
    if any(rule.limited for rule in deciding):
        wider = [matched for matched in matching if matched[1].project is None]
        deciding = [*up_to_a_sure_one(wider), *deciding]
    said = (by_rule(rule, capability, tool, None) for rule in deciding)
    return reduce(stricter, said) if deciding else None


def up_to_a_sure_one(matching: Iterable[Matched]) -> list[Rule]:
    """The most specific rule, with those that are as specific; where none of them speaks of the call however
    its addresses are spelled, and so may not be meant, the next ones as well.
    """
    found: list[Rule] = []
    enough: int | None = None  # how specific a rule was that is surely meant
    for (specific, *_), rule, sure in matching:
        if enough is not None and specific < enough:
            break
        found.append(rule)
        enough = specific if sure else enough
    return found


def by_rule(rule: Rule, capability: str | None, tool: ToolInfo, error: str | None) -> Decision:
    """What the deciding rule says; a condition that cannot be evaluated is a deny, with its reason."""
    effect: Effect = "deny" if error is not None else rule.effect
    reason = "rule_condition_error" if error is not None else f"rule_{rule.effect}"
    said = f"{rule.label}: its condition cannot be evaluated ({error})" if error is not None else rule.label
    return Decision(
        effect,
        reason,
        WORDS[effect].format(name=tool.name, rule=said),
        (rule.id,),
        capability,
        rule.id,
        None,
        rule.timeout,
        rule.on_expiry,
        rule.deciders_needed,
        (rule.deciders,) if rule.deciders else (),
        limited=rule.limited,
    )


# 6. grants and approvals


def lift(decision: Decision, context: Context, tool: ToolInfo, arguments: Arguments) -> Decision:
    """Grants lift what one decider could approve; an approval of this call what its decider may satisfy."""
    if not decision.unlockable:
        return decision
    if approval_satisfies(decision.effect, context):
        return replace(decision, effect="allow", reason_code="approved", message="this call was approved")
    if grantable(decision):
        for grant in context.grants:
            if grant_covers(grant, context, tool, arguments):
                return replace(
                    decision,
                    effect="allow",
                    reason_code="granted",
                    message="a standing approval covers it",
                    matched=(*decision.matched, grant.id),
                    grant_id=grant.id,
                )
    return decision


def grantable(decision: Decision) -> bool:
    """Whether one decider, whoever it is, could let the call pass: that much they may do in advance."""
    one = decision.deciders_needed == 1 and not decision.deciders
    return decision.effect == "require_approval" and one


def approval_satisfies(effect: Effect, context: Context) -> bool:
    """A person's approval (require_human) satisfies both; any other only require_approval."""
    key = context.idempotency_key
    if key is None:
        return False
    if (key, "require_human") in context.approvals:
        return True
    return effect == "require_approval" and (key, "require_approval") in context.approvals


def grant_covers(grant: GrantView, context: Context, tool: ToolInfo, arguments: Arguments) -> bool:
    """This tool, in this scope, with these arguments; a condition that cannot be evaluated covers nothing."""
    if grant.tool != tool.name or not in_scope(grant.scope, context.scope):
        return False
    if grant.arguments is not None and canonical(grant.arguments) != canonical(arguments):
        return False
    if grant.condition is None:
        return True
    try:
        known = facts(context, tool, arguments)
        return conditions.holds(grant.condition, arguments, known, True, tool.with_defaults)
    except conditions.ConditionError:
        return False


# what the steps share


def facts(context: Context, tool: ToolInfo, arguments: Arguments) -> Callable[[], Facts] | None:
    """Where the call's values came from, for a condition that asks."""
    trace = context.trace
    return None if trace is None else lambda: trace(tool.name, arguments)


ALLOWED_BY_RULE = "rule_allow"
BY_RISK = "risk_default"
NO_RULE = Decision("allow", "no_rule", "no rule speaks of it", ())

WORDS: dict[Effect, str] = {
    "allow": "{rule}",
    "require_approval": "Tool '{name}' requires approval: {rule}",
    "require_human": "Tool '{name}' requires a person's approval: {rule}",
    "deny": "Tool '{name}' is denied by policy: {rule}",
}


def deny(tool: ToolInfo, reason_code: str, rule: str, matched: str) -> Decision:
    return Decision("deny", reason_code, WORDS["deny"].format(name=tool.name, rule=rule), (matched,))


def stricter(first: Decision, second: Decision | None) -> Decision:
    """deny > require_human > require_approval > allow; what two layers demand holds together."""
    if second is None:
        return first
    if STRICTNESS[first.effect] == STRICTNESS[second.effect]:
        wins, yields = (second, first) if second.rule_id and not first.rule_id else (first, second)
    elif STRICTNESS[first.effect] > STRICTNESS[second.effect]:
        wins, yields = first, second
    else:
        wins, yields = second, first
    if wins.unlockable and yields.unlockable:
        wins = demanding_both(wins, yields)
    return replace(wins, shadowed=(*wins.shadowed, *yields.shadowed)) if yields.shadowed else wins


def demanding_both(wins: Decision, yields: Decision) -> Decision:
    """The demands of two that ask: more deciders, the shorter wait, the harder end."""
    lists = (*named(wins, yields), *named(yields, wins))
    timeouts = [timeout for timeout in (wins.timeout, yields.timeout) if timeout is not None]
    return replace(
        wins,
        matched=tuple(dict.fromkeys((*wins.matched, *yields.matched))),
        timeout=min(timeouts, default=None),
        on_expiry="cancel_run" if "cancel_run" in (wins.on_expiry, yields.on_expiry) else "fail_call",
        deciders_needed=max(wins.deciders_needed, yields.deciders_needed),
        deciders=tuple(dict.fromkeys((*lists, *people(lists, wins, yields)))),
        limited=wins.limited and yields.limited,
    )


def named(one: Decision, beside: Decision) -> tuple[tuple[str, ...], ...]:
    """The lists of names of one of two that ask. Where the organization asks, by a rule or a profile, members
    of some projects do not have the run's user decide it: that name lets people decide who else may not.
    """
    organization_asks = one.limited and not beside.limited and beside.reason_code != BY_RISK
    if not organization_asks or names_user(beside.deciders):
        return one.deciders
    others = (tuple(name for name in names if name != RUN_USER) for names in one.deciders)
    return tuple(names for names in others if names)


def people(lists: Sequence[Sequence[str]], *asking: Decision) -> tuple[tuple[str, ...], ...]:
    """A further list, of any person. Where one of those that ask wants several and names nobody, a service
    account that another one names is none of them. Where a rule names nobody, the run's user whom another
    one names decides only with the permission: that name lets people decide who else may not.
    """
    several = any(one.deciders_needed > 1 and not one.deciders for one in asking)
    by_rule = any(one.rule_id and not one.deciders for one in asking)
    user = any(RUN_USER in names for names in lists)
    return ((PEOPLE,),) if (several or (by_rule and user)) and any(one.deciders for one in asking) else ()


def in_scope(wanted: Iterable[str | None], actual: Iterable[str | None]) -> bool:
    return all(want is None or want == have for want, have in zip(wanted, actual, strict=True))


def speaks_in(rule: Rule, context: Context) -> bool:
    """Whether the rule is for the agent's own scope, or for one of those above it."""
    return any(in_scope(rule.scope, scope) for scope in (context.scope, *context.above))


def bind(tool: ToolInfo, bindings: Iterable[Binding]) -> ToolInfo:
    """The tool with the capabilities bound to it by name or pattern, besides those it names itself."""
    bound = [binding.capability for binding in bindings if fits(tool.name, binding.tool)]
    return replace(tool, capabilities=tuple(dict.fromkeys((*tool.capabilities, *bound))))


def fits(name: str, pattern: str) -> bool:
    """Only * is special in a pattern, and stands for any text."""
    return fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))
