"""What would happen to a call, and why: the decision with everything that was considered. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policy.explain import explain
from policy.terms import Considered, Context, Effect, Shadowed, ToolInfo

INVALID_ARGUMENTS = "invalid_arguments"


@dataclass(frozen=True)
class Explained:
    """The answer to "what would happen". `problems` are the arguments' schema errors [{path, problem}].

    `unlockable`: whether an approval would let the call run; `deciders` says who could give it, in words.
    """

    tool: str
    effect: Effect
    reason_code: str
    message: str
    matched: tuple[str, ...] = ()
    rule_id: str | None = None
    capability: str | None = None
    capabilities: tuple[str, ...] = ()
    unlockable: bool = False
    deciders: str = ""
    deciders_needed: int = 0
    named: tuple[tuple[str, ...], ...] = ()  # lists of names, each of which a decider must be on
    timeout: int | None = None
    on_expiry: str = "fail_call"
    considered: tuple[Considered, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()
    problems: tuple[Mapping[str, str], ...] = ()

    @property
    def allowed(self) -> bool:
        return self.effect == "allow"

    @property
    def rules(self) -> tuple[Considered, ...]:
        """Every rule of the organization, and why it spoke or did not."""
        return tuple(line for line in self.considered if line.layer == "rule")


def simulate(
    context: Context,
    tool: ToolInfo,
    arguments: Mapping[str, Any],
    problems: Sequence[Mapping[str, str]] = (),
    self_approval: bool = False,
) -> Explained:
    """Decides as `evaluate` does. Arguments that do not fit the schema never come before policy."""
    decision = explain(context, tool, arguments)
    if problems:
        told = "; ".join(f"{problem['path']}: {problem['problem']}" for problem in problems)
        return Explained(
            tool=tool.name,
            effect="deny",
            reason_code=INVALID_ARGUMENTS,
            message=f"Arguments of '{tool.name}' do not fit its schema: {told}",
            capabilities=tuple(tool.capabilities),
            considered=decision.considered,
            problems=tuple(problems),
        )
    return Explained(
        tool=tool.name,
        effect=decision.effect,
        reason_code=decision.reason_code,
        message=decision.message,
        matched=decision.matched,
        rule_id=decision.rule_id,
        capability=decision.capability,
        capabilities=tuple(tool.capabilities),
        unlockable=decision.unlockable,
        deciders=deciders(decision.effect, decision.deciders_needed, self_approval),
        deciders_needed=decision.deciders_needed if decision.unlockable else 0,
        named=decision.deciders,
        timeout=decision.timeout,
        on_expiry=decision.on_expiry,
        considered=decision.considered,
        shadowed=decision.shadowed,
    )


def deciders(effect: Effect, needed: int = 1, self_approval: bool = False) -> str:
    """Who may decide (design 5), in words; empty where there is nothing to decide."""
    if effect not in ("require_approval", "require_human"):
        return ""
    people = effect == "require_human"
    many = "one" if needed == 1 else str(needed)
    kind = ("person" if people else "member") if needed == 1 else ("people" if people else "members")
    words = f"{many} {kind} with the right to decide approvals in this project"
    if not people:
        words += ", a service account too"
    if (people or needed > 1) and not self_approval:
        words += ", but not the run's own user"
    return words
