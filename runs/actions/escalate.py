"""Escalate: a run makes a child for a group and waits for it, in the parent's step."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from policy.delegation import delegate
from runs.actions import start
from runs.actions.finish import child_key
from runs.log import waits
from runs.log.clocks import stood_still
from runs.log.log import RunLog
from runs.log.state import Call, State
from runs.models.choices import EventType, RunKind, WaitKind
from runs.tools.base import ESCALATE, Failed, Spawn


def spawn(
    log: RunLog,
    state: State,
    call: Call,
    wanted: Spawn,
    authority: Any,
    above: tuple[list[str], list[str]],
    tool_call_id: str,
    seen: list[dict[str, Any]],
) -> RunLog | Failed:
    """Create the child and the parent's wait. The parent's row is locked and fenced.

    `above`: the roles and the groups that pass on the work, and the rights that the child gets. `seen` are
    pages of the parent's view, for the child's to start with.

    Returns the child, still to be flushed, or Failed when a budget does not allow it.
    """
    refused = over_budget(log, state)
    if refused:
        return refused
    tokens = share_of_tokens(state)
    group = wanted.group
    restored = {"restored": True} if state.restored else {}  # it may have made this child before
    child = start.create(
        start.NewRun(
            organization_id=log.organization_id,
            project_id=log.project_id,
            user_id=log.user_id,
            kind=RunKind.GROUP.value,
            goal=wanted.goal,
            context=wanted.context,
            members=group.members,
            max_rounds=group.max_rounds,
            budgets={**start.default_budgets(), "depth": state.budgets["depth"], "tokens": tokens},
            deadline=deadline_of_child(log, state),
            parent_run_id=log.id,
            root_id=log.root_id,
            depth=log.depth + 1,
            group_id=group.id,
            delegated_permissions=delegate(*authority).to_json(),
            roles_above=above[0],
            groups_above=above[1],
            author=state.speaker.role,
            snapshot={"group": group.name, "inherited": seen, **restored},
        ),
        now=log.now,
    )
    child.live, child.listened = log.live, log.listened  # the same person's, in the same project
    expires_in = timedelta(seconds=settings.CHILD_WAIT_SECONDS)
    log.append(
        EventType.CHILD_CREATED,
        {
            "call_id": call.call_id,
            "correlation_key": child_key(child.id),
            "child_run": child.id,
            "group_id": group.id,
            "group": group.name,
            "goal": wanted.goal,
            "routing": wanted.routing,
            "tokens": tokens,
            "timeout_ms": int(expires_in.total_seconds() * 1000),
        },
        agent=call.agent,
    )
    waits.open_wait(
        log,
        waits.NewWait(
            WaitKind.CHILD,
            child_key(child.id),
            tool_call_id=tool_call_id,
            child_run_id=child.id,
            expires_at=log.now + expires_in,
        ),
    )
    return child


def deadline_of_child(log: RunLog, state: State) -> datetime:
    """No later than the parent's, whose clock has stood still while people were waited for."""
    own = log.now + timedelta(seconds=settings.RUN_SECONDS)
    if log.deadline is None:
        return own
    has_waited = any(call.wait_kind for call in state.calls.values())
    waited = stood_still(log.id)[0] if has_waited else 0
    return min(own, log.deadline + timedelta(seconds=waited))


def over_budget(log: RunLog, state: State) -> Failed | None:
    """Depth and children fail the call, not the run."""
    depth, children = state.budgets["depth"], state.budgets["children"]
    if log.depth + 1 > depth:
        return Failed("BUDGET_DEPTH", f"Runs may nest {depth} levels deep; this one is at level {log.depth}.")
    if state.children >= children:
        return Failed("BUDGET_CHILDREN", f"The run has already started {children} group runs, its limit.")
    if state.tokens_left <= 0:
        return Failed("BUDGET_TOKENS", "No tokens are left to give to a group.")
    return None


def share_of_tokens(state: State) -> int:
    """What is left, in equal parts for this escalation and those of the same reply still to come."""
    to_come = [call for call in state.unfinished("asked") if call.tool == ESCALATE]
    return max(1, state.tokens_left // (1 + len(to_come)))
