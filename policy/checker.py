"""The two interfaces the seeds name, and what they raise. Both ask `evaluate`; neither knows the order."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from policy.evaluate import evaluate
from policy.ruleset import RuleSet
from policy.terms import APPROVAL_PREFIX, AgentContext, Boundary, Context, Decision, Effect, ToolInfo

Verdict = Literal["allow", "deny", "ask"]

VERDICTS: dict[Effect, Verdict] = {
    "allow": "allow",
    "require_approval": "ask",
    "require_human": "ask",
    "deny": "deny",
}
UNRESTRICTED = Boundary()


class PermissionDenied(Exception):
    """Policy denies the call (seed 000 1.4). The message is what the agent is told."""

    code = "PERMISSION_DENIED"

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.message)
        self.decision = decision


class CapabilityRequiresApproval(Exception):
    """The call waits for an approval under `correlation_key` (seed 004)."""

    def __init__(self, correlation_key: str, decision: Decision | None = None) -> None:
        super().__init__(decision.message if decision else f"approval needed: {correlation_key}")
        self.correlation_key = correlation_key
        self.decision = decision


def approval_key(idempotency_key: str) -> str:
    """The correlation key under which this call's approval is waited for."""
    return f"{APPROVAL_PREFIX}{idempotency_key}"


def check_with_delegated(
    agent: AgentContext, tool: ToolInfo, boundary: Boundary | None = UNRESTRICTED
) -> Verdict:
    """The tool lists and the risk alone, without capability rules (seed 000 1.2).

    Seed 000 knows no live boundary: without one given, only the agent's own lists speak.
    """
    return VERDICTS[evaluate(Context(agent, boundary, RuleSet()), tool, {}).effect]


class CapabilityPolicyChecker:
    """Seed 004's check of one capability of one tool in a run; the gate of calls ends with `enforce`.

    `context_of` gives the run's context; without one everything is allowed, as before the layer existed.
    """

    def __init__(self, context_of: Callable[[str], Context] | None = None) -> None:
        self.context_of = context_of or _allow_all

    def check(
        self,
        run: str,
        tool: ToolInfo | str,
        capability: str | None,
        idempotency_key: str,
        approved_keys: Collection[str] | Mapping[str, Effect] = (),
        arguments: Mapping[str, Any] | None = None,
    ) -> tuple[bool, bool]:
        """(allowed, required_approval); raises PermissionDenied on deny.

        `approved_keys` are the correlation keys of approvals. As a mapping they say which effect their
        decider may satisfy; a bare key vouches for require_approval only.
        """
        decision = self._decide(run, tool, capability, idempotency_key, approved_keys, arguments)
        return decision.allowed, decision.unlockable

    def require(
        self,
        run: str,
        tool: ToolInfo | str,
        capability: str | None,
        idempotency_key: str,
        approved_keys: Collection[str] | Mapping[str, Effect] = (),
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """As `check`, for a caller that stops by an exception: raises CapabilityRequiresApproval too."""
        decision = self._decide(run, tool, capability, idempotency_key, approved_keys, arguments)
        self.enforce(decision, idempotency_key)

    @staticmethod
    def enforce(decision: Decision, idempotency_key: str) -> None:
        """Let the call pass, or stop it: raises PermissionDenied and CapabilityRequiresApproval."""
        if decision.effect == "deny":
            raise PermissionDenied(decision)
        if decision.unlockable:
            raise CapabilityRequiresApproval(approval_key(idempotency_key), decision)

    def _decide(
        self,
        run: str,
        tool: ToolInfo | str,
        capability: str | None,
        idempotency_key: str,
        approved_keys: Collection[str] | Mapping[str, Effect],
        arguments: Mapping[str, Any] | None,
    ) -> Decision:
        info = ToolInfo(tool) if isinstance(tool, str) else tool
        asked = replace(info, capabilities=() if capability is None else (capability,))
        context = self.context_of(run)
        approvals = {*context.approvals, *_approvals(idempotency_key, approved_keys)}
        context = replace(context, idempotency_key=idempotency_key, approvals=approvals)
        decision = evaluate(context, asked, arguments or {})
        if decision.effect == "deny":
            raise PermissionDenied(decision)
        return decision


def _approvals(
    idempotency_key: str, approved_keys: Collection[str] | Mapping[str, Effect]
) -> list[tuple[str, Effect]]:
    key = approval_key(idempotency_key)
    if key not in approved_keys:
        return []
    satisfied = approved_keys[key] if isinstance(approved_keys, Mapping) else "require_approval"
    return [(idempotency_key, satisfied)]


def _allow_all(run: str) -> Context:
    return Context(AgentContext(agent_id=run), UNRESTRICTED, RuleSet())
