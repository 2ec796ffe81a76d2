"""The words of provenance: where a value came from, and what that is worth. Plain values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Trust = Literal["user", "organization", "outside", "unknown"]
Profile = Literal["off", "careful", "balanced", "open"]

# What is composed of several is worth the least of them. Unknown stands apart: nothing read says it.
RANK: dict[Trust, int] = {"user": 0, "organization": 1, "outside": 2, "unknown": 3}
TRUSTED: frozenset[Trust] = frozenset(("user", "organization"))
MORE = "…"  # stands for the values of a call that were not looked at
PROFILES: tuple[Profile, ...] = ("off", "careful", "balanced", "open")


def least(*trusts: Trust) -> Trust:
    """The least trusted of these; `user` of nothing at all."""
    return max(trusts, key=RANK.__getitem__, default="user")


def says_yes_or_no(value: Any) -> bool:
    """Whether a yes or no stands in it."""
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, bool) or any(map(says_yes_or_no, parts))


def says(value: Any) -> bool:
    """Whether an argument says something: a list of no recipients names none."""
    if isinstance(value, list | tuple):
        return any(map(says, value))
    return bool(value.strip()) if isinstance(value, str) else value is not None and value != {}


def says_by_name(value: Any) -> bool:
    """Whether a name alone says something in it (`{"public": {}}`): there are no words to be traced."""
    if isinstance(value, Mapping):
        return not value or any(not says(inner) or says_by_name(inner) for inner in value.values())
    return isinstance(value, list | tuple) and any(map(says_by_name, value))


@dataclass(frozen=True, slots=True)
class Source:
    """One passage a value was found in.

    `piece` names the message or result (the run's call id or `message:{seq}`), `field` the place within it,
    `start` and `end` the span in that field's text. `how`: whole, part, derived, `base64` and the like.
    """

    trust: Trust
    piece: str
    field: str = ""
    start: int = 0
    end: int = 0
    how: str = "whole"
    why: str = ""  # where a trusted passage counts for less, the reason


@dataclass(frozen=True, slots=True)
class Traced:
    """An argument's value and where it came from; `path` names a value inside a nested argument."""

    path: str
    value: str
    trust: Trust
    steers: bool
    sources: tuple[Source, ...] = ()
    why: str = ""
    pointed: bool = False  # from outside, and the person said to take it from there


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one call before it runs: its values, and whether the person's words ask for it."""

    values: tuple[Traced, ...]
    effect: bool  # it does more than read
    read_outside: bool
    asked_for: bool
    why_not_asked_for: str = ""
    carries: tuple[str, ...] = ()  # confidential values it takes to others unasked, by what they are called
    # What was read of the call's record, by tool.
    results: Callable[[], Mapping[str, Any]] = field(default=dict, compare=False)

    def source(self, argument: str, given: Any) -> Trust:
        """The trust of a whole argument: the least of its values. A yes or no in what is `given` is nobody's,
        and so is what says something by a name alone: no words hold it. Null, a blank or an empty list is as
        if the argument were not there.
        """
        mine = (value for value in self.values if value.path.split("/", 1)[0] == argument)
        nobodys: tuple[Trust, ...] = ("unknown",) if says_yes_or_no(given) or says_by_name(given) else ()
        return least(*(value.trust for value in mine), *nobodys)

    @property
    def doubtful(self) -> tuple[Traced, ...]:
        """The steering values that neither the person nor the organization stands behind."""
        return tuple(v for v in self.values if v.steers and v.trust not in TRUSTED and not v.pointed)

    @property
    def steering_from_outside(self) -> bool:
        """Whether a steering value is an outsider's, or nobody's."""
        return bool(self.doubtful)
