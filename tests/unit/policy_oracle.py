"""The seeds' rules once more, in the plainest form and from their words alone.

Slow, flat and written apart from `policy`, so that the two can only agree by both being right. A case is a
dict; a list of tool names that is None was never set.
"""

ORDER = ["allow", "require_approval", "require_human", "deny"]


def answer(case):
    said = [by_the_rules(case, capability) for capability in case["capabilities"] or [None]]
    lists = by_the_lists(case)
    # ruling 39: a rule that allows every capability of the tool (直接允许执行) lifts the risk default
    if case["role_allowed"] is None and lists != "deny" and all(one == "allow" for one in said):
        lists = "allow"
    said = [one or "allow" for one in said]  # 默认 PolicyChecker 为 allow-all
    strictest = max([lists, *said], key=ORDER.index)  # deny > require_human > require_approval > allow
    return after_approvals(case, strictest)


def by_the_lists(case):
    tool = case["tool"]
    # seed 000 1.2, step 1: 如果 agent.delegatedPermissions 存在
    delegated = case["delegated"]
    if delegated is not None:
        if tool in delegated["denied"]:  # denied_tools 包含 tool → deny
            return "deny"
        if delegated["allowed"] is not None and tool not in delegated["allowed"]:  # 存在且不包含 → deny
            return "deny"
    # ruling 3: the user's membership is a boundary too; without one nothing is allowed
    membership = case["membership"]
    if membership is None:
        return "deny"
    if tool in membership["denied"]:
        return "deny"
    if membership["allowed"] is not None and tool not in membership["allowed"]:
        return "deny"
    # step 2: 如果 agent.deniedTools 包含 tool → deny
    if tool in case["role_denied"]:
        return "deny"
    # step 3: 如果 agent.allowedTools 存在且包含 tool → allow
    if case["role_allowed"] is not None and tool in case["role_allowed"]:
        return "allow"
    # ruling 1: a list is complete; what it leaves out is denied
    if case["role_allowed"] is not None:
        return "deny"
    # step 4: 否则按 risk level 默认策略
    return {"low": "allow", "medium": "allow", "high": "require_approval"}[case["risk"]]


def by_the_rules(case, capability):
    """Seed 004: tool → capabilities, capability → policy; Policy 按能力或按工具配置."""
    speaking = []
    for rule in case["rules"]:
        if rule.get("tool") not in (None, case["tool"]):
            continue
        if rule.get("capability") is not None and rule["capability"] != capability:
            continue
        if any(
            rule.get(level) not in (None, case[level])
            for level in ("organization", "project", "group", "role")
        ):
            continue
        if rule.get("condition", "true") == "false":  # a rule whose condition is false does not match
            continue
        if rule.get("shadow"):
            continue
        if rule.get("condition", "true") == "broken":  # one that cannot be evaluated is a deny
            return "deny"
        speaking.append(rule)
    if any(rule["effect"] == "deny" for rule in speaking):  # any matching deny wins, at whatever scope
        return "deny"
    for level in ("role", "group", "project", "organization"):
        named = [rule for rule in speaking if rule.get(level) is not None]
        if named:
            speaking = named  # those that name it are the more specific
    about_tool = [rule for rule in speaking if rule.get("tool") is not None]
    speaking = about_tool or speaking  # then tool > capability
    both = [rule for rule in speaking if rule.get("capability") is not None and rule.get("tool") is not None]
    speaking = both or speaking
    if not speaking:
        return None  # no rule speaks
    return max((rule["effect"] for rule in speaking), key=ORDER.index)  # ties: the strictest


def after_approvals(case, effect):
    """Seed 004: 若该步的审批 key ∈ approvedKeys，则返回 (true, false, nil)."""
    if effect == "require_approval" and (case["approved_by"] in ("service", "person") or case["granted"]):
        return "allow"
    if effect == "require_human" and case["approved_by"] == "person":
        return "allow"
    return effect
