"""Builds what policy is asked from a plain case, as the oracle reads it."""

from policy.evaluate import (
    AgentContext,
    Boundary,
    Context,
    DelegatedPermissions,
    GrantView,
    Rule,
    RuleSet,
    ToolInfo,
)

KEY = "key-of-this-call"
PLAIN = {
    "tool": "send_email",
    "capabilities": ("mail",),
    "risk": "low",
    "role_allowed": None,
    "role_denied": (),
    "delegated": None,
    "membership": {"allowed": None, "denied": ()},
    "organization": "org_1",
    "project": "prj_1",
    "group": "grp_1",
    "role": "rol_1",
    "rules": (),
    "approved_by": None,
    "granted": False,
}
CONDITIONS = {"true": "amount <= 100", "false": "amount > 100", "broken": "missing > 100"}
ARGUMENTS = {"amount": 100}
APPROVALS = {None: (), "service": ((KEY, "require_approval"),), "person": ((KEY, "require_human"),)}


def case(**changes):
    return {**PLAIN, **changes}


def rule(number=0, **fields):
    """A rule of the case as `policy` reads it; conditions are named by how they come out."""
    if "condition" in fields:
        fields["condition"] = CONDITIONS[fields["condition"]]
    return Rule(id=f"rul_{number}", **fields)


def asked(case, **changes):
    """(context, tool, arguments) of a case; `changes` replace fields of the context."""
    delegated = case["delegated"]
    membership = case["membership"]
    fields = {
        "agent": AgentContext(
            "agi_1",
            case["role"],
            case["role_allowed"],
            case["role_denied"],
            delegated and DelegatedPermissions(delegated["allowed"], delegated["denied"]),
        ),
        "boundary": membership and Boundary(membership["allowed"], membership["denied"]),
        "rules": RuleSet(rule(number, **fields) for number, fields in enumerate(case["rules"])),
        "organization": case["organization"],
        "project": case["project"],
        "group": case["group"],
        "grants": (GrantView("gra_1", case["tool"]),) if case["granted"] else (),
        "idempotency_key": KEY,
        "approvals": frozenset(APPROVALS[case["approved_by"]]),
    }
    tool = ToolInfo(case["tool"], case["risk"], case["capabilities"])
    return Context(**{**fields, **changes}), tool, ARGUMENTS
