"""What a tool is, what it is told, and what it may answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, Protocol

from jsonschema.protocols import Validator

from groups.catalog import GroupWithRoles
from memory.context import AgentContext, Change
from policy.provenance.infer import Declaration, infer
from policy.terms import DelegatedPermissions, ToolInfo
from runs.tools import checking, defaults
from runs.tools.previews import Preview

ESCALATE = "escalate_to_group"


class OwnView(Protocol):
    """The caller's working memory."""

    def read(self) -> AgentContext:
        """As it stands; nothing is stored."""

    def write(self) -> tuple[AgentContext, list[Change]]:
        """Stored and ready to be changed, and what was changed to make it so."""

    def changed(self, changes: list[Change]) -> tuple[str, dict[str, Any]]:
        """The event that keeps these changes (type, payload)."""


@dataclass(frozen=True)
class ToolContext:
    """Who calls, in which run. A tool's scope comes from here, never from its arguments."""

    organization_id: str
    project_id: str
    user_id: int
    run_id: str
    root_id: str
    kind: str
    depth: int
    group_id: str | None
    agent_id: str
    role_id: str | None
    is_lead: bool
    goal: str
    call_id: str
    idempotency_key: str
    budgets: dict[str, int] = field(default_factory=dict)
    children: int = 0
    catalog_version: int | None = None  # of the project's groups, where it has just been read
    view: OwnView | None = None
    filled: dict[str, Any] | None = None  # the form the call asked for last, with its `responses`


@dataclass(frozen=True)
class Done:
    """It worked. `result` is JSON; `events` are further entries for the log (type, payload)."""

    result: Any
    events: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class Failed:
    """It did not work; the agent is told and goes on."""

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Unknown:
    """It left, and there is no answer: nobody knows whether it has worked. A person has to say."""

    message: str


@dataclass(frozen=True)
class WaitFor:
    """The answer will come from outside, as a message or a signal.

    `repeats`: no answer comes, but what the call needs (`key` names it, runs/gate/repeats.py); then the call
    is made again. Only a call that has had no effect may say so.
    """

    kind: str
    question: str = ""
    expires_in: timedelta | None = None
    choices: tuple[str, ...] = ()  # answers to offer; a person may say something else
    key: str = ""  # the correlation key, where the caller chose one
    repeats: bool = False
    link: str = ""  # the page on which a person gives what is needed
    form: dict[str, Any] | None = None  # to be filled in, for the call to be made again (runs/tools/forms.py)
    task: dict[str, Any] | None = None  # that its server has made of the call (runs/models/mcp_tasks.py)


@dataclass(frozen=True)
class Spawn:
    """A group is to work on this; its output will be the result."""

    group: GroupWithRoles
    goal: str
    context: str
    routing: list[dict[str, Any]] = field(default_factory=list)
    delegated: DelegatedPermissions | None = None  # what the call asks for; it can only narrow


Answer = Done | Failed | Unknown | WaitFor | Spawn


class ToolError(Exception):
    """Raised inside a tool for a problem the agent should hear of."""

    def __init__(self, message: str, code: str = "TOOL_ERROR", **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class NoAnswer(ToolError):
    """Raised inside a tool whose request has left and got no answer: it may have been carried out. Of a tool
    that acts, unless it is idempotent, a person then says what became of it, as where its process was killed;
    of another one the agent hears of it as of any error.
    """


@dataclass(frozen=True)
class Tool:
    """A tool as registered.

    `transactional`: it only touches this database, so it runs inside the step's transaction and
    exactly once. The others run between two transactions; `idempotent` ones may be called again
    with the same key after a crash. `provenance` says whose words its results are: Deputy's own
    ('inside') or somebody else's ('outside'). A `suspended` tool can be named in rules and not be
    called; the text says why. `declared`: what its results are
    worth and what steers it; without, that is inferred. `preview`: what a call looks like to its decider.
    `as_person`: the server that it is called at with its person's own authorization; empty where none goes.
    `exchanged_at`: the provider for a sign-in at which that came in exchange; empty where it did not.
    `reaches`: a digest of whom a call goes to, and as what, where that may change while the name stays;
    `address` is where that is.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    function: Callable[..., Any]
    risk_level: str = "low"
    mutating: bool = False
    supports_parallel: bool = True
    idempotent: bool = False
    transactional: bool = False
    capabilities: tuple[str, ...] = ()
    provenance: str = "inside"
    suspended: str = ""
    checker: Callable[[dict[str, Any]], Validator] = checking.checker

    declared: Declaration | None = None
    preview: Preview | None = None
    as_person: str = ""
    exchanged_at: str = ""
    reaches: str = ""
    address: str = ""

    @cached_property
    def info(self) -> ToolInfo:
        """What policy must know of it."""
        fill = partial(defaults.filled, self.parameters) if defaults.stated(self.parameters) else None
        return ToolInfo(self.name, self.risk_level, self.capabilities, fill)  # type: ignore[arg-type]

    @cached_property
    def stated(self) -> Declaration:
        """What the tool declares of its values, or what its name, description and schema say of them.

        Whatever somebody else's server returns is outside's; its ids are trusted for that server alone. Its
        hints tighten, and say whether it acts where its verb is not known.
        """
        if self.declared is not None:
            return self.declared
        if self.provenance == "outside":
            said = infer(self.name.rpartition(".")[2], self.description, self.parameters)
            return said.of_others(self.risk_level == "high", self.name.rpartition(".")[0])
        return infer(self.name, self.description, self.parameters, self.mutating and not self.transactional)

    @cached_property
    def validator(self) -> Validator:
        """What its arguments are checked with; made at the first call."""
        return self.checker(self.parameters)

    @property
    def concurrent(self) -> bool:
        """Whether calls of it may run side by side, and again after a crash."""
        return self.supports_parallel and not self.mutating
