"""The words of policy: what a decision is asked about, and what it says. Plain values, nothing more."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from policy.provenance.terms import Facts, Profile

if TYPE_CHECKING:
    from policy.ruleset import RuleSet

Risk = Literal["low", "medium", "high"]
Effect = Literal["allow", "require_approval", "require_human", "deny"]
OnExpiry = Literal["fail_call", "cancel_run"]

APPROVAL_PREFIX = "cap-approval-"  # of the correlation keys under which approvals are waited for

STRICTNESS: dict[Effect, int] = {"allow": 0, "require_approval": 1, "require_human": 2, "deny": 3}

RUN_USER = "run.user"  # among a rule's deciders: whom the run works for, with the permission or without
PEOPLE = "people"  # among a decision's: any person, where a rule asks several of them and names nobody


def names_user(deciders: Collection[Collection[str]]) -> bool:
    """Whether the run's user may decide by that name alone: each rule that names deciders has it."""
    return bool(deciders) and all(RUN_USER in names for names in deciders)


# Where the values of a call come from; asked only where a rule or a profile wants to know.
Trace = Callable[[str, Mapping[str, Any]], Facts]  # tool, arguments → facts

WithDefaults = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # raises ValueError where it cannot say

# the ids a rule may be tied to, from wide to narrow
Scope = tuple[str | None, str | None, str | None, str | None]  # organization, project, group, role


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """What policy needs to know of a tool. `capabilities` are named by the tool or bound to it;
    `with_defaults` gives arguments with what its schema states for what is left out, where it states any.
    """

    name: str
    risk_level: Risk = "low"
    capabilities: Collection[str] = ()
    with_defaults: WithDefaults | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", tuple(sorted(set(self.capabilities))))


@dataclass(frozen=True, slots=True)
class Binding:
    """Capabilities bound to tools from outside: the one place where a tool's name may be a pattern."""

    tool: str  # a name, or a pattern where * stands for any text: mail_*
    capability: str


@dataclass(frozen=True, slots=True)
class DelegatedPermissions:
    """What a run was given by its parent (seed 000 1.1). None allows all, a list is complete, () nothing.

    `vouched_tools` are those that a list of every level above named; to all others the risk default applies
    whatever the run's own roles list (ruling 38). None: nothing is said, and every tool is vouched for.
    """

    allowed_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    vouched_tools: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "DelegatedPermissions":
        """Reads `{"allowed_tools": […]|null, "denied_tools": […], "vouched_tools": […]|null}`, each of which
        may be left out; ValueError on any other shape.
        """
        known = {"allowed_tools", "denied_tools", "vouched_tools"}
        if not isinstance(value, Mapping) or not set(value) <= known:
            raise ValueError("delegated permissions hold allowed_tools and denied_tools, nothing else")
        allowed = value.get("allowed_tools")
        denied = value.get("denied_tools")
        vouched = value.get("vouched_tools")
        return cls(
            None if allowed is None else _names("allowed_tools", allowed),
            () if denied is None else _names("denied_tools", denied),
            None if vouched is None else _names("vouched_tools", vouched),
        )

    def to_json(self) -> dict[str, list[str] | None]:
        """The shape `from_json` reads; `allowed_tools` is null only where nothing restricts."""
        allowed = None if self.allowed_tools is None else list(self.allowed_tools)
        told: dict[str, list[str] | None] = {
            "allowed_tools": allowed,
            "denied_tools": list(self.denied_tools),
        }
        if self.vouched_tools is not None:
            told["vouched_tools"] = list(self.vouched_tools)
        return told

    def vouches_for(self, tool: str) -> bool:
        """Whether a list named the tool at every level above."""
        return self.vouched_tools is None or tool in self.vouched_tools


@dataclass(frozen=True, slots=True)
class Boundary:
    """A user's own limits, read live from the membership. No membership is no Boundary, and denies all."""

    allowed_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentContext:
    """Who acts (seed 000 1.2): an agent in its role, with what was delegated to its run."""

    agent_id: str
    role_id: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    delegated_permissions: DelegatedPermissions | None = None


@dataclass(frozen=True, slots=True)
class GrantView:
    """A standing approval that is live: not revoked, not past its time, with uses left.

    `arguments` are the exact ones it was given for: None is any, {} is a call without arguments.
    A scope left None is any; `condition` narrows further.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any] | None = None
    condition: str | None = None
    organization: str | None = None
    project: str | None = None
    group: str | None = None
    role: str | None = None

    @property
    def scope(self) -> Scope:
        return (self.organization, self.project, self.group, self.role)


@dataclass(frozen=True, slots=True)
class Context:
    """Everything a decision rests on besides the tool and its arguments.

    `approvals` holds (idempotency key, effect its decider may satisfy) of what was approved and not yet
    used. `role` is the acting agent's; it is not stated twice. `trace` says where a call's values came from.
    `above`: the scopes of the groups and roles that passed the work on.
    """

    agent: AgentContext
    boundary: Boundary | None
    rules: "RuleSet"
    organization: str | None = None
    project: str | None = None
    group: str | None = None
    grants: tuple[GrantView, ...] = ()
    idempotency_key: str | None = None
    approvals: Collection[tuple[str, Effect]] = frozenset()
    profile: Profile = "off"
    trace: Trace | None = None
    above: tuple[Scope, ...] = ()

    @property
    def role(self) -> str | None:
        return self.agent.role_id

    @property
    def scope(self) -> Scope:
        return (self.organization, self.project, self.group, self.agent.role_id)


@dataclass(frozen=True, slots=True)
class Shadowed:
    """What a shadow rule would have said; `error` where its condition could not be evaluated."""

    rule_id: str
    effect: Effect
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """One line of an explanation: a layer, rule, grant or approval, whether it spoke, and why (not)."""

    layer: Literal["delegated", "boundary", "role", "profile", "risk", "rule", "grant", "approval"]
    id: str | None
    name: str
    spoke: bool
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer. `matched` names what decided: list names, a risk, rule and grant ids.

    `unlockable`: whether an approval could turn it into allow; never so for a deny.
    `timeout` is in seconds, None for the setting's default. `considered` is filled by `explain` only.
    `limited`: nobody but members of some projects has asked.
    """

    effect: Effect
    reason_code: str
    message: str
    matched: tuple[str, ...]
    capability: str | None = None
    rule_id: str | None = None
    grant_id: str | None = None
    timeout: int | None = None
    on_expiry: OnExpiry = "fail_call"
    deciders_needed: int = 1
    deciders: tuple[tuple[str, ...], ...] = ()  # lists of names, each of which every decider must be on
    shadowed: tuple[Shadowed, ...] = ()
    considered: tuple[Considered, ...] = field(default=(), compare=False)
    limited: bool = field(default=False, compare=False)

    @property
    def allowed(self) -> bool:
        return self.effect == "allow"

    @property
    def unlockable(self) -> bool:
        return self.effect in ("require_approval", "require_human")


def _names(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key} is a list of tool names")
    return tuple(value)
