"""What a run does next, from its state alone."""

from dataclasses import dataclass

from runs.log import state as phases
from runs.log.state import Call, Member, State

REPEATS_ALLOWED = 2  # the third same batch in a row ends the run


@dataclass(frozen=True)
class Speak:
    """Ask the model for this member's next message (slow: outside any transaction)."""

    member: Member


@dataclass(frozen=True)
class Start:
    """Bring this call before the gate."""

    call: Call


@dataclass(frozen=True)
class Settle:
    """What this call waited for has come: turn it into the call's result, or run it now."""

    call: Call


@dataclass(frozen=True)
class Recover:
    """These calls were interrupted between tool.called and a result."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Park:
    """Nothing to do until a wait is resolved. `reason` is the kind of the first open wait."""

    reason: str


@dataclass(frozen=True)
class Finish:
    """The work is done; `output` is what the last speaker said."""

    output: str | None


@dataclass(frozen=True)
class Fail:
    """A limit is reached. The code says which."""

    code: str
    message: str


@dataclass(frozen=True)
class Over:
    """The run has ended."""


Step = Speak | Start | Settle | Recover | Park | Finish | Fail | Over


def next_step(state: State) -> Step:
    """The one thing to do now. The order is the rule: finish what is open before speaking again."""
    if state.ended:
        return Over()
    if state.open_calls:
        return _with_calls(state)
    if state.backoff:
        return Park("timer")
    if state.gave_up:
        return Fail(*state.gave_up)
    if state.finished:
        return Finish(output(state))
    return exceeded(state) or Speak(state.speaker)


def _with_calls(state: State) -> Step:
    if called := state.unfinished(phases.CALLED):
        return Recover(tuple(called))
    if ready := state.unfinished(phases.READY):
        return Settle(ready[0])
    if state.repeats > REPEATS_ALLOWED:
        return Fail("REPEATED_CALLS", f"The same calls were asked for {state.repeats} times in a row.")
    if asked := state.unfinished(phases.ASKED):
        return Start(asked[0])
    return Park(state.unfinished(phases.WAITING)[0].wait_kind)


def exceeded(state: State) -> Fail | None:
    """The budget that is used up, if one is. Zero means nothing is left, never 'no limit'."""
    for name, used in (("steps", state.steps), ("tokens", state.tokens)):
        limit = state.budgets.get(name)
        if limit is not None and used >= limit:
            return Fail(f"BUDGET_{name.upper()}", f"The run used up its budget of {limit} {name}.")
    return None


def output(state: State) -> str | None:
    """What the run leaves: the last words of whoever spoke last; None when they are empty."""
    said = state.last_said
    return (said.content.strip() or None) if said else None
