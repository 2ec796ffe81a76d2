"""The door: every tool call passes here, and policy is asked first. There is no second path.

`Gate.admit` decides; only what it admitted can be performed, with exactly these arguments.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any

from django.db import transaction

from common.canonical import NotJson, canonical, digest, normalise
from common.current import working_for
from common.failures import FAILURES
from groups.today import AT_ONCE
from policy import cache as policy_cache
from policy import grants as standing
from policy.checker import CapabilityPolicyChecker, CapabilityRequiresApproval, PermissionDenied
from policy.delegation import authority, narrowed
from policy.evaluate import bind, evaluate, grantable, speaks_in
from policy.provenance.infer import Declaration
from policy.provenance.terms import Facts
from policy.provenance.trace import Material
from policy.ruleset import Rule, RuleSet
from policy.terms import (
    AgentContext,
    Boundary,
    Context,
    Decision,
    DelegatedPermissions,
    Scope,
    ToolInfo,
    Trace,
)
from runs.observe import tracing
from runs.tools import checking, facts, toolbox
from runs.tools.base import (
    Answer,
    Done,
    Failed,
    NoAnswer,
    Spawn,
    Tool,
    ToolContext,
    ToolError,
    Unknown,
    WaitFor,
)

logger = logging.getLogger(__name__)

APPROVED = "this call was approved"
GRANTED = "a standing approval covers it"
MOVES = ("boundary", "version", "profile")  # of a live boundary, what policy goes by
Approved = Callable[[Decision, Tool], bool]

MAX_PROBLEMS = 5  # schema errors told at once


@dataclass(frozen=True)
class Admitted:
    """The gate's word that this call may run, with these arguments."""

    tool: Tool
    arguments: dict[str, Any]
    idempotency_key: str
    decision: Decision


@dataclass(frozen=True)
class Stopped:
    """The call needs somebody's decision first."""

    tool: Tool
    arguments: dict[str, Any]
    idempotency_key: str
    decision: Decision


@dataclass(frozen=True)
class Refused:
    """The call will not run. `decision` is None when it never came before policy."""

    code: str
    message: str
    decision: Decision | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Gate:
    """Policy for one run at one moment: the user's live boundary, the rules, what was delegated."""

    organization_id: str
    project_id: str
    group_id: str | None
    user_id: int
    passed_on: dict[str, Any] | None  # as it was then
    delegated: DelegatedPermissions | None
    live: policy_cache.LiveBoundary
    policy: policy_cache.CompiledPolicy
    tools: Mapping[str, Tool]  # the organization's, by name
    roles_above: tuple[str, ...] = ()
    groups_above: tuple[str, ...] = ()
    trace: Trace | None = None  # where the values of its run's calls came from
    weighed: bool = False  # whether time may have passed since the rules were looked at

    @classmethod
    def open(
        cls,
        organization_id: str,
        project_id: str,
        group_id: str | None,
        user_id: int,
        delegated: dict[str, Any] | None,
        live: policy_cache.LiveBoundary | None = None,
        roles_above: Sequence[str] | None = None,
        groups_above: Sequence[str] | None = None,
    ) -> "Gate":
        """What decisions rest on: what was passed on as it was then, without what the roles above are denied
        today, and nothing where one of them is gone. One query, unless the caller has just read the boundary;
        and the rules again when they have changed.

        All of it is of one moment: a right may be taken away and the deny that it makes needless after it, so
        that the right of before and the rules of after would let pass what was forbidden all the time.
        """
        while True:
            live = live or policy_cache.live_boundary(organization_id, user_id, project_id)
            policy = policy_cache.compiled(organization_id, live.version)
            version, tools = toolbox.of(organization_id, live.version)
            if policy.version == live.version == version:
                break
            live = None
        given = None if delegated is None else DelegatedPermissions.from_json(delegated)
        roles = tuple(roles_above or ())
        if given is not None:
            denied = tuple(tool for role in roles for tool in policy.role(role).denied_tools)
            # what a role that is gone was denied nobody knows: nothing passes, as in its own runs
            allowed = None if all(role in policy.roles for role in roles) else ()
            given = narrowed(given, DelegatedPermissions(allowed, denied))
        place = (organization_id, project_id, group_id, user_id)
        groups = tuple(groups_above or ())
        return cls(*place, delegated, given, live, policy, tools, roles, groups)

    def declared(self, tool: str) -> Declaration:
        """What the tool's values are worth in this organization."""
        return facts.declaration(self.tools.get(tool), self.policy.corrections)

    def _traced(self, tool: str, arguments: Mapping[str, Any]) -> Facts:
        if self.trace is None:
            return self._unheard(tool, arguments)
        self.weighed = True
        return self.trace(tool, arguments)

    def _unheard(self, tool: str, arguments: Mapping[str, Any]) -> Facts:
        """Where no run is asked about: nothing was heard, and nothing read."""
        return Material().facts(self.declared(tool), arguments)

    def agent(self, agent_id: str, role_id: str | None) -> AgentContext:
        role = self.policy.role(role_id)
        return AgentContext(agent_id, role_id, role.allowed_tools, role.denied_tools, self.delegated)

    def authority(self, agent: AgentContext) -> DelegatedPermissions:
        """What the agent may pass on to a child (design 5)."""
        return authority(agent, self.live.boundary, self.policy.role(agent.role_id).delegable_tools)

    def admit(
        self,
        agent: AgentContext,
        name: str,
        arguments: dict[str, Any],
        key_parts: tuple[str, str],
        approved: Approved | None = None,
    ) -> Admitted | Stopped | Refused:
        """Ask about one call. `key_parts` are the run's id and the call's; `approved` says whether what
        people have decided about it satisfies what policy demands.
        """
        said = self._admit(agent, name, arguments, key_parts, approved)
        while isinstance(said, Admitted) and self._has_moved():
            agent = self.agent(agent.agent_id, agent.role_id)
            said = self._admit(agent, name, arguments, key_parts, approved)
        return said

    def _has_moved(self) -> bool:
        """Whether rights or rules have changed while a call was weighed; from here on they are as they are
        now.
        """
        if not self.weighed:
            return False
        self.weighed = False
        place = (self.organization_id, self.project_id, self.group_id, self.user_id)
        now = Gate.open(*place, self.passed_on, None, self.roles_above, self.groups_above)
        was, self.live = self.live, now.live
        self.policy, self.tools, self.delegated = now.policy, now.tools, now.delegated
        return any(getattr(was, name) != getattr(now.live, name) for name in MOVES)

    def _admit(
        self,
        agent: AgentContext,
        name: str,
        arguments: dict[str, Any],
        key_parts: tuple[str, str],
        approved: Approved | None,
    ) -> Admitted | Stopped | Refused:
        tool = self.tools.get(name)
        if tool is None:
            return Refused("UNKNOWN_TOOL", f"There is no tool '{name}'.")
        if tool.suspended:
            return Refused("TOOL_SUSPENDED", tool.suspended)
        problem = check_arguments(tool, arguments)
        if problem:
            return problem
        key = idempotency_key(*key_parts, name, arguments)
        decision = self.decide(agent, tool, arguments, approved)
        try:
            CapabilityPolicyChecker.enforce(decision, key)
        except PermissionDenied as denied:
            return Refused(denied.code, str(denied), decision)
        except CapabilityRequiresApproval:
            return Stopped(tool, arguments, key, decision)
        return Admitted(tool, arguments, key, decision)

    def decide(
        self,
        agent: AgentContext,
        tool: Tool,
        arguments: dict[str, Any],
        approved: Approved | None = None,
        profile_aside: bool = False,
    ) -> Decision:
        """Policy's answer; standing approvals are looked up only where one could help."""
        context, info = self.question(agent, tool)
        if profile_aside:
            context = replace(context, profile="off")
        began = time.monotonic()
        decision = evaluate(context, info, arguments)
        self.weighed |= time.monotonic() - began > AT_ONCE
        if decision.unlockable and approved is not None and approved(decision, tool):
            return replace(decision, effect="allow", reason_code="approved", message=APPROVED)
        if grantable(decision):
            granted = self.with_grants(context, tool, arguments)
            if granted.grants:
                decision = evaluate(granted, info, arguments)
        return decision

    def question(self, agent: AgentContext, tool: Tool) -> tuple[Context, ToolInfo]:
        """What policy is asked about a call of the tool, standing approvals aside."""
        context = Context(
            agent=agent,
            boundary=self.live.boundary,
            rules=self.policy.rules,
            organization=self.organization_id,
            project=self.project_id,
            group=self.group_id,
            profile=self.live.profile,
            trace=self._traced,
            above=self.above() if self.policy.rules.of_levels else (),
        )
        return context, bind(tool.info, self.policy.bindings)

    def above(self) -> tuple[Scope, ...]:
        """The scopes of what passed the work on: of each role, each group, and both."""
        place = (self.organization_id, self.project_id)
        levels = product((None, *self.groups_above), (None, *self.roles_above))
        return tuple((*place, group, role) for group, role in levels if group or role)

    def beforehand(self, agent: AgentContext, tool: Tool, granted: frozenset[str]) -> "Beforehand":
        """What policy will say of the tool as far as that is known before its arguments are: to the agent in
        its prompt and to programs alike. `granted`: what `granted` says, found once for all tools.
        """
        context, info = self.question(agent, tool)
        plain = replace(context, rules=unconditional(self.policy.rules), trace=self._unheard)
        decision = evaluate(plain, info, {})
        if grantable(decision) and tool.name in granted:
            decision = replace(decision, effect="allow", reason_code="granted", message=GRANTED)
        by_profile = self.live.profile == "balanced" and decision.effect != "allow"
        depends = by_profile or any(
            rule.condition is not None and not rule.shadow and _concerns(rule, context, info)
            for rule in self.policy.rules
        )
        return Beforehand(decision, depends and decision.effect != "deny")

    def with_grants(self, context: Context, tool: Tool, arguments: dict[str, Any]) -> Context:
        """The context with the standing approvals that cover these arguments now."""
        if tool.name not in self.live.covered:
            return context
        place = (self.organization_id, self.project_id)
        named = tool.parameters.get("properties") or {}
        return replace(context, grants=standing.of_call(*place, tool.name, arguments, named))

    def granted(self) -> frozenset[str]:
        """The tools that a standing approval lets pass now whatever their arguments are."""
        if not self.live.freed:
            return frozenset()
        return standing.whatever_arguments(self.organization_id, self.project_id)

    def record(self, decision: Decision) -> dict[str, Any]:
        """The decision as events keep it: what it was, which rule, and on which policy it rested."""
        told = {
            "effect": decision.effect,
            "reason_code": decision.reason_code,
            "rule": decision.rule_id,
            "grant": decision.grant_id,
            "matched": list(decision.matched),
            "shadowed": [
                {"rule": said.rule_id, "effect": said.effect, "error": said.error}
                for said in decision.shadowed
            ],
            "policy": self.policy.digest,
        }
        return {name: value for name, value in told.items() if value}

    def visible_tools(self, agent: AgentContext) -> list[Tool]:
        """The tools the lists allow this agent; the others are not even shown to its model."""
        callable = [tool for tool in self.tools.values() if not tool.suspended]
        lists = replace(agent, agent_id="")  # nothing is decided by who exactly it is
        risks = tuple((tool.name, tool.risk_level) for tool in callable)
        listed = _listed(lists, self.live.boundary, risks)
        return [tool for tool in callable if tool.name in listed]


@dataclass(frozen=True)
class Beforehand:
    """Policy's answer before the arguments are known; `depends`: with some of them it may be another."""

    decision: Decision
    depends: bool


@lru_cache(maxsize=64)
def unconditional(rules: RuleSet) -> RuleSet:
    """The rules that need not look at a call's arguments."""
    return RuleSet(rule for rule in rules if rule.condition is None)


def _concerns(rule: Rule, context: Context, info: ToolInfo) -> bool:
    about = rule.tool in (None, info.name) and (
        rule.capability is None or rule.capability in info.capabilities
    )
    return about and speaks_in(rule, context)


@lru_cache(maxsize=512)
def _listed(
    agent: AgentContext, boundary: Boundary | None, risks: tuple[tuple[str, str], ...]
) -> frozenset[str]:
    """The names of those tools, given with their risk levels, that the lists allow."""
    context = Context(agent=agent, boundary=boundary, rules=RuleSet())
    infos = [ToolInfo(name, risk) for name, risk in risks]  # type: ignore[arg-type]
    return frozenset(info.name for info in infos if evaluate(context, info, {}).effect != "deny")


class ToolBroke(Exception):
    """A tool failed inside the step's transaction, and what it wrote has to go: the step is to be repeated
    with savepoints.
    """


def perform(admitted: Admitted, context: ToolContext, savepoint: bool = True) -> Answer:
    """Run an admitted call. Never raises for what the tool does wrong: that is a Failed.

    Without a `savepoint`, which only a transactional tool has, raises ToolBroke instead.
    """
    with (
        working_for(context.run_id, context.root_id, context.organization_id),
        tracing.of_tool(admitted.tool.name, context.call_id, context.agent_id) as span,
    ):
        answer = _perform(admitted, context, savepoint)
        if isinstance(answer, Failed):
            span.fail(answer.code)
        elif isinstance(answer, Unknown):
            span.fail("OUTCOME_UNKNOWN")
        return answer


def _perform(admitted: Admitted, context: ToolContext, savepoint: bool) -> Answer:
    if admitted.tool.transactional and not savepoint:
        return _trusted(admitted, context)
    try:
        if admitted.tool.transactional:
            return _in_savepoint(admitted, context)
        return _checked(admitted.tool.function(context, **admitted.arguments))
    except ToolError as error:
        if isinstance(error, NoAnswer) and admitted.tool.mutating and not admitted.tool.idempotent:
            logger.warning(
                "tool %s has no answer in %s: %s", admitted.tool.name, context.run_id, error.message
            )
            return Unknown(error.message)
        return Failed(error.code, error.message, error.details)
    except NotJson as error:
        return Failed("RESULT_NOT_JSON", f"The result of '{admitted.tool.name}' cannot be kept: {error}")
    except FAILURES as error:
        logger.exception("tool %s failed in %s", admitted.tool.name, context.run_id)
        return Failed("TOOL_ERROR", f"'{admitted.tool.name}' failed: {type(error).__name__}")


def _trusted(admitted: Admitted, context: ToolContext) -> Answer:
    """Inside the step's transaction: most tools do not fail, and a savepoint costs two statements."""
    try:
        return _checked(admitted.tool.function(context, **admitted.arguments))
    except FAILURES as error:
        raise ToolBroke(admitted.tool.name) from error


def _in_savepoint(admitted: Admitted, context: ToolContext) -> Answer:
    """Inside the step's transaction: what a failing tool wrote goes, the step stays."""
    with transaction.atomic():
        return _checked(admitted.tool.function(context, **admitted.arguments))


def _checked(answer: Any) -> Answer:
    if isinstance(answer, Done):
        return Done(normalise(answer.result), answer.events)
    if isinstance(answer, Failed | WaitFor | Spawn):
        return answer
    return Done(normalise(answer))


def idempotency_key(run_id: str, call_id: str, tool: str, arguments: dict[str, Any]) -> str:
    """SHA-256 of run, call, tool and canonical effective arguments (design 3)."""
    return digest(run_id, call_id, tool, canonical(arguments))


def check_arguments(tool: Tool, arguments: dict[str, Any]) -> Refused | None:
    """What is wrong with the arguments, each with its path; None when they fit the schema."""
    try:
        errors = checking.errors(tool.validator, arguments)
    except checking.UNUSABLE:
        return Refused(
            "INVALID_ARGUMENTS", f"The schema of '{tool.name}' cannot be applied.", None, {"errors": []}
        )
    except checking.TooMuchWork:
        message = f"The arguments of '{tool.name}' take too long to check: give it less at once."
        return Refused("INVALID_ARGUMENTS", message, None, {"errors": []})
    if not errors:
        return None
    found = [{"path": "/" + "/".join(map(str, e.absolute_path)), "problem": e.message[:300]} for e in errors]
    told = "; ".join(f"{item['path']}: {item['problem']}" for item in found[:MAX_PROBLEMS])
    message = f"Arguments of '{tool.name}' do not fit its schema: {told}"
    return Refused("INVALID_ARGUMENTS", message, None, {"errors": found})
