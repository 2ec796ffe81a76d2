"""The interfaces the seeds name."""

import pytest

from policy.checker import (
    CapabilityPolicyChecker,
    CapabilityRequiresApproval,
    PermissionDenied,
    approval_key,
    check_with_delegated,
)
from policy.evaluate import AgentContext, Boundary, Context, DelegatedPermissions, Rule, RuleSet, ToolInfo

RULES = RuleSet(
    [
        Rule("rul_write", "require_approval", "write_db"),
        Rule("rul_pay", "require_human", "payment"),
        Rule("rul_drop", "deny", "drop_db", name="Nobody drops a database"),
        Rule("rul_big", "require_approval", "refund", condition="amount > 100"),
    ]
)
CHECKER = CapabilityPolicyChecker(lambda run: Context(AgentContext(run), Boundary(), RULES))


def test_reading_is_allowed_where_no_rule_speaks_of_it():
    assert CHECKER.check("run", "query", "read_db", "k1") == (True, False)


def test_writing_requires_approval_until_this_very_call_is_approved():
    assert CHECKER.check("run", "query", "write_db", "k1") == (False, True)
    assert CHECKER.check("run", "query", "write_db", "k1", {"cap-approval-k2"}) == (False, True)
    assert CHECKER.check("run", "query", "write_db", "k1", {"k1"}) == (False, True)
    assert CHECKER.check("run", "query", "write_db", "k1", {"cap-approval-k1"}) == (True, False)


def test_a_payment_waits_for_an_approval_known_to_be_a_persons():
    assert CHECKER.check("run", "pay", "payment", "k1", {"cap-approval-k1"}) == (False, True)
    by_a_service = {"cap-approval-k1": "require_approval"}
    by_a_person = {"cap-approval-k1": "require_human"}
    assert CHECKER.check("run", "pay", "payment", "k1", by_a_service) == (False, True)
    assert CHECKER.check("run", "pay", "payment", "k1", by_a_person) == (True, False)


def test_a_denied_capability_raises_however_often_it_was_approved():
    with pytest.raises(PermissionDenied) as raised:
        CHECKER.check("run", "admin", "drop_db", "k1", {"cap-approval-k1": "require_human"})
    assert raised.value.code == "PERMISSION_DENIED"
    assert str(raised.value) == "Tool 'admin' is denied by policy: Nobody drops a database"


def test_a_rule_on_arguments_hears_them_and_denies_where_there_are_none():
    assert CHECKER.check("run", "refund", "refund", "k1", arguments={"amount": 100}) == (True, False)
    assert CHECKER.check("run", "refund", "refund", "k1", arguments={"amount": 101}) == (False, True)
    with pytest.raises(PermissionDenied):
        CHECKER.check("run", "refund", "refund", "k1")


def test_without_configuration_everything_is_allowed():
    assert CapabilityPolicyChecker().check("run", "pay", "payment", "k1") == (True, False)


def test_the_gate_says_under_which_key_it_waits():
    with pytest.raises(CapabilityRequiresApproval) as raised:
        CHECKER.require("run", "query", "write_db", "k1")
    assert raised.value.correlation_key == approval_key("k1") == "cap-approval-k1"
    CHECKER.require("run", "query", "write_db", "k1", {"cap-approval-k1"})
    with pytest.raises(PermissionDenied):
        CHECKER.require("run", "admin", "drop_db", "k1")


def test_check_with_delegated_denies_what_either_side_denies():
    mail = ToolInfo("mail")
    agent = AgentContext("agi", "rol", ("mail",))
    assert check_with_delegated(agent, mail) == "allow"
    delegated = DelegatedPermissions(denied_tools=("mail",))
    assert check_with_delegated(AgentContext("agi", "rol", ("mail",), (), delegated), mail) == "deny"
    everything = DelegatedPermissions(("mail",))
    assert check_with_delegated(AgentContext("agi", "rol", None, ("mail",), everything), mail) == "deny"


def test_check_with_delegated_asks_for_what_is_risky_and_unlisted():
    risky = ToolInfo("mail", "high")
    assert check_with_delegated(AgentContext("agi"), risky) == "ask"
    assert check_with_delegated(AgentContext("agi", "rol", ("mail",)), risky) == "allow"


def test_check_with_delegated_heeds_a_boundary_it_is_given():
    assert check_with_delegated(AgentContext("agi"), ToolInfo("mail"), None) == "deny"
    assert check_with_delegated(AgentContext("agi"), ToolInfo("mail"), Boundary(("read",))) == "deny"
