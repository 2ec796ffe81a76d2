"""What holds of every policy there could be."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from policy.delegation import authority, delegate, narrowed
from policy.evaluate import (
    STRICTNESS,
    AgentContext,
    Boundary,
    Context,
    DelegatedPermissions,
    GrantView,
    Rule,
    RuleSet,
    ToolInfo,
    evaluate,
)
from policy.explain import explain

TOOLS = ("read", "mail", "pay", "deploy")
CAPABILITIES = ("write_db", "send_email", "payment")
KEY = "key"
FULLY_APPROVED = frozenset({(KEY, "require_approval"), (KEY, "require_human")})


def always(*strategies):
    """The test holds of whatever these strategies draw."""
    return lambda test: settings(max_examples=100, deadline=None)(given(*strategies)(test))


names = st.lists(st.sampled_from(TOOLS), unique=True).map(tuple)
few = st.just(()) | st.just(()) | names  # lists that leave something to the next layer
lists = st.tuples(st.none() | names, few)
permissions = lists.map(lambda both: DelegatedPermissions(*both))
boundaries = st.just(Boundary()) | st.none() | lists.map(lambda both: Boundary(*both))
tools = st.builds(
    ToolInfo,
    st.sampled_from(TOOLS),
    st.sampled_from(["low", "medium", "high"]),
    st.lists(st.sampled_from(CAPABILITIES), unique=True),
)
agents = st.builds(
    AgentContext,
    st.just("agi"),
    st.sampled_from([None, "rol_1", "rol_2"]),
    st.none() | names,
    few,
    st.none() | permissions,
)
conditions = st.sampled_from([None, "amount <= 100", "amount > 100", "missing > 1", "amount <="])
subjects = st.one_of(
    st.fixed_dictionaries({"tool": st.sampled_from(TOOLS)}),
    st.fixed_dictionaries({"capability": st.sampled_from(CAPABILITIES)}),
    st.fixed_dictionaries({"tool": st.sampled_from(TOOLS), "capability": st.sampled_from(CAPABILITIES)}),
)


def scope_ids(prefix):
    return st.sampled_from([None, None, f"{prefix}_1", f"{prefix}_2"])


@st.composite
def rules(draw, effects=tuple(STRICTNESS), **fixed):
    fields = {
        "id": f"rul_{draw(st.integers(0, 10**9))}",
        "effect": draw(st.sampled_from(effects)),
        "condition": draw(conditions),
        "organization": draw(scope_ids("org")),
        "project": draw(scope_ids("prj")),
        "group": draw(scope_ids("grp")),
        "role": draw(scope_ids("rol")),
        "timeout": draw(st.none() | st.integers(1, 9)),
        "on_expiry": draw(st.sampled_from(["fail_call", "cancel_run"])),
        "deciders_needed": draw(st.integers(1, 3)),
        "shadow": draw(st.sampled_from([False, False, True])),
    }
    return Rule(**{**fields, **draw(subjects), **fixed})


def unique_ids(drawn):
    return [replace(rule, id=f"rul_{number}") for number, rule in enumerate(drawn)]


rule_lists = st.lists(rules(), max_size=8).map(unique_ids)
grants = st.lists(st.builds(GrantView, st.just("gra"), st.sampled_from(TOOLS)), max_size=2).map(tuple)
contexts = st.builds(
    Context,
    agent=agents,
    boundary=boundaries,
    rules=rule_lists.map(RuleSet),
    organization=st.just("org_1"),
    project=st.sampled_from(["prj_1", "prj_2"]),
    group=st.sampled_from([None, "grp_1"]),
    grants=grants,
    idempotency_key=st.just(KEY),
    approvals=st.frozensets(st.sampled_from(sorted(FULLY_APPROVED))),
)
argument_sets = st.sampled_from([{}, {"amount": 50}, {"amount": 500}, {"amount": "much"}])


def strictness(context, tool, arguments):
    return STRICTNESS[evaluate(context, tool, arguments).effect]


def permits(given, tool):
    """Whether the lists let the tool through, said without the code under test."""
    return tool not in given.denied_tools and (given.allowed_tools is None or tool in given.allowed_tools)


levels = st.lists(st.tuples(st.none() | names, few, st.none() | names), min_size=2, max_size=6)


@always(
    boundaries,
    levels,
    tools,
    st.lists(rules(project=None, group=None, role=None), max_size=3).map(unique_ids),
)
def test_down_a_tree_asking_only_gets_stricter_unless_every_level_above_named_the_tool(
    boundary, levels, tool, drawn
):
    """Seed 000's order alone let a group's role send unasked what its parent had to ask for (ruling 38)."""
    given, above, vouched = None, 0, True
    unlisted = strictness(Context(AgentContext("agi"), Boundary(), RuleSet(drawn)), tool, {})
    for allowed, denied, delegable in levels:
        agent = AgentContext("agi", "rol", allowed, denied, given)
        here = strictness(Context(agent, boundary, RuleSet(drawn)), tool, {})
        assert here >= above
        assert vouched or here >= unlisted  # the risk default applies, whatever the role lists
        named = tool.name in (*(allowed or ()), *(delegable or ()))
        vouched, above = vouched and named, 0 if named else here
        given = delegate(authority(agent, boundary, delegable), boundary)


@always(contexts, tools, argument_sets)
def test_a_tool_that_any_layer_denies_is_denied(context, tool, arguments):
    layers = [context.agent, context.agent.delegated_permissions, context.boundary]
    if any(layer is not None and tool.name in layer.denied_tools for layer in layers):
        assert evaluate(context, tool, arguments).effect == "deny"


@always(contexts, tools, argument_sets)
def test_without_an_active_membership_everything_is_denied(context, tool, arguments):
    assert evaluate(replace(context, boundary=None), tool, arguments).effect == "deny"


@always(contexts, tools, argument_sets, rules(effects=("deny",), shadow=False))
def test_one_more_deny_rule_never_allows_more(context, tool, arguments, deny_rule):
    more = RuleSet([*context.rules, replace(deny_rule, id="rul_more")])
    assert strictness(replace(context, rules=more), tool, arguments) >= strictness(context, tool, arguments)


@always(contexts, tools, argument_sets)
def test_a_matching_deny_rule_denies_at_whatever_scope_it_stands(context, tool, arguments):
    more = RuleSet([*context.rules, Rule("rul_more", "deny", tool=tool.name, organization="org_1")])
    assert evaluate(replace(context, rules=more), tool, arguments).effect == "deny"


@always(contexts, tools, argument_sets)
def test_no_grant_and_no_approval_lifts_a_deny(context, tool, arguments):
    helpless = replace(context, grants=(), approvals=frozenset())
    if evaluate(helpless, tool, arguments).effect == "deny":
        helped = replace(context, grants=(GrantView("gra", tool.name),), approvals=FULLY_APPROVED)
        assert evaluate(helped, tool, arguments).effect == "deny"


@always(contexts, tools, argument_sets)
def test_only_a_persons_approval_lifts_what_requires_a_person(context, tool, arguments):
    helpless = replace(context, grants=(), approvals=frozenset())
    if evaluate(helpless, tool, arguments).effect == "require_human":
        grants = (GrantView("gra", tool.name),)
        by_a_service = replace(context, grants=grants, approvals=frozenset({(KEY, "require_approval")}))
        by_a_person = replace(context, grants=(), approvals=frozenset({(KEY, "require_human")}))
        assert evaluate(by_a_service, tool, arguments).effect == "require_human"
        assert evaluate(by_a_person, tool, arguments).effect == "allow"


@always(contexts, tools, argument_sets)
def test_an_approval_of_another_call_lifts_nothing(context, tool, arguments):
    elsewhere = frozenset((f"{key}-other", effect) for key, effect in FULLY_APPROVED)
    without = replace(context, approvals=frozenset())
    assert evaluate(replace(context, approvals=elsewhere), tool, arguments) == evaluate(
        without, tool, arguments
    )


@always(contexts, tools, argument_sets, st.randoms())
def test_the_order_in_which_rules_are_loaded_changes_nothing(context, tool, arguments, randomness):
    shuffled = list(context.rules)
    randomness.shuffle(shuffled)
    before = evaluate(context, tool, arguments)
    after = evaluate(replace(context, rules=RuleSet(shuffled)), tool, arguments)
    assert replace(after, shadowed=()) == replace(before, shadowed=())
    assert sorted(after.shadowed, key=lambda shadow: shadow.rule_id) == sorted(
        before.shadowed, key=lambda shadow: shadow.rule_id
    )


@always(contexts, tools, argument_sets)
def test_shadow_rules_change_no_decision(context, tool, arguments):
    live = RuleSet(rule for rule in context.rules if not rule.shadow)
    with_shadows = evaluate(context, tool, arguments)
    assert replace(with_shadows, shadowed=()) == evaluate(replace(context, rules=live), tool, arguments)


@always(
    contexts, tools, argument_sets, rules(effects=("require_approval", "require_human", "deny"), shadow=True)
)
def test_a_shadow_rule_is_reported_only_where_it_would_speak(context, tool, arguments, shadow):
    more = replace(context, rules=RuleSet([*context.rules, replace(shadow, id="rul_more")]))
    reported = {seen.rule_id for seen in evaluate(more, tool, arguments).shadowed}
    lifeless = replace(context, rules=RuleSet([replace(shadow, id="rul_more", shadow=False)]))
    speaks = evaluate(lifeless, tool, arguments)
    if speaks.rule_id == "rul_more":
        assert "rul_more" in reported
    elif evaluate(replace(context, rules=RuleSet()), tool, arguments).effect != "deny":
        assert "rul_more" not in reported


@always(rule_lists, contexts, tools, st.none() | st.sampled_from(CAPABILITIES))
def test_the_index_finds_exactly_the_rules_a_plain_scan_finds(rule_list, context, tool, capability):
    scanned = [
        rule
        for rule in rule_list
        if rule.tool in (None, tool.name)
        and rule.capability in (None, capability)
        and all(want in (None, have) for want, have in zip(rule.scope, context.scope, strict=True))
    ]
    found = [rule for _, rule in RuleSet(rule_list).about(tool.name, capability, context.scope)]
    assert sorted(rule.id for rule in found) == sorted(rule.id for rule in scanned)


@always(contexts, tools, argument_sets)
def test_an_explanation_comes_to_the_decision_it_explains_and_leaves_no_rule_out(context, tool, arguments):
    explained = explain(context, tool, arguments)
    decision = evaluate(context, tool, arguments)
    assert replace(explained, considered=()) == decision
    lines = [line for line in explained.considered if line.layer == "rule"]
    assert [line.id for line in lines] == [rule.id for rule in context.rules]
    assert {line.id for line in lines if line.spoke} == {
        name for name in decision.matched if name.startswith("rul_")
    }


@always(agents, boundaries, st.none() | names, st.none() | permissions, boundaries)
def test_a_child_is_permitted_only_what_its_parent_could_pass_on(agent, then, delegable, asked_for, now):
    parent = authority(agent, then, delegable)
    child = delegate(parent, now, asked_for)
    for tool in TOOLS:
        if permits(child, tool):
            assert permits(parent, tool)
            assert now is not None and permits(now, tool)
            assert asked_for is None or permits(asked_for, tool)
            assert tool not in agent.denied_tools
            held = agent.delegated_permissions or then
            assert held is not None and permits(held, tool)


@always(
    st.lists(st.tuples(agents, st.none() | names, st.none() | permissions), min_size=1, max_size=5),
    boundaries,
)
def test_down_a_chain_of_delegations_rights_only_shrink(chain, boundary):
    given_here = None
    permitted = set(TOOLS)
    for agent, delegable, asked_for in chain:
        agent = replace(agent, delegated_permissions=given_here)
        given_here = delegate(authority(agent, boundary, delegable), boundary, asked_for)
        below = {tool for tool in TOOLS if permits(given_here, tool)}
        assert below <= permitted
        permitted = below


@always(permissions, permissions, contexts, tools, argument_sets)
def test_an_empty_intersection_allows_nothing(held, limit, context, tool, arguments):
    both = narrowed(held, limit)
    common = [name for name in TOOLS if permits(held, name) and permits(limit, name)]
    if not common and held.allowed_tools is not None and limit.allowed_tools is not None:
        assert both.allowed_tools is not None
    if not common:
        agent = replace(context.agent, delegated_permissions=both)
        assert evaluate(replace(context, agent=agent), tool, arguments).effect == "deny"


@always(permissions, permissions)
def test_narrowing_permits_what_both_permit_and_nothing_else(held, limit):
    for tool in (*TOOLS, "never_heard_of"):
        assert permits(narrowed(held, limit), tool) == (permits(held, tool) and permits(limit, tool))


@always(permissions)
def test_delegated_permissions_survive_the_trip_through_json(given_here):
    assert DelegatedPermissions.from_json(given_here.to_json()) == given_here


@always(contexts, tools, argument_sets, permissions)
def test_narrower_delegated_permissions_never_allow_more(context, tool, arguments, limit):
    held = context.agent.delegated_permissions or DelegatedPermissions()
    narrower = replace(context, agent=replace(context.agent, delegated_permissions=narrowed(held, limit)))
    assert strictness(narrower, tool, arguments) >= strictness(context, tool, arguments)


def test_a_look_up_among_many_rules_agrees_with_one_among_few():
    drawn = random.Random(7)
    many = [
        Rule(
            f"rul_{number}",
            drawn.choice(tuple(STRICTNESS)),
            capability=f"cap_{drawn.randrange(200)}",
            organization="org_1",
            project=drawn.choice([None, f"prj_{drawn.randrange(20)}"]),
            role=drawn.choice([None, f"rol_{drawn.randrange(20)}"]),
        )
        for number in range(2000)
    ]
    context = Context(AgentContext("agi", "rol_1"), Boundary(), RuleSet(many), "org_1", "prj_1")
    for number in range(200):
        tool = ToolInfo("any", "low", (f"cap_{number}",))
        few = RuleSet(rule for rule in many if rule.capability == f"cap_{number}")
        assert evaluate(context, tool, {}) == evaluate(replace(context, rules=few), tool, {})
