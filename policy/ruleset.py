"""Capability rules, indexed so that a decision looks only at the rules that could speak."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from operator import itemgetter

from policy.terms import STRICTNESS, Effect, OnExpiry, Scope

Rank = tuple[int, int, int, bool, float, bool, str]
Ranked = tuple[Rank, "Rule"]
Pick = Callable[[Scope], object]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule on a capability, a tool, or that capability of that tool. A scope left None is any.

    `timeout` is in seconds. Raises ValueError for a rule about nothing or with an unknown effect.
    """

    id: str
    effect: Effect
    capability: str | None = None
    tool: str | None = None
    organization: str | None = None
    project: str | None = None
    group: str | None = None
    role: str | None = None
    condition: str | None = None
    timeout: int | None = None
    on_expiry: OnExpiry = "fail_call"
    deciders_needed: int = 1
    shadow: bool = False
    name: str = ""
    deciders: tuple[str, ...] = ()  # who may decide, by name; empty: whoever may decide approvals
    limited: bool = False  # whether it asks for no less than the rules of no project

    def __post_init__(self) -> None:
        if self.effect not in STRICTNESS:
            raise ValueError(f"rule {self.id}: unknown effect {self.effect!r}")
        if self.capability is None and self.tool is None:
            raise ValueError(f"rule {self.id}: names neither a capability nor a tool")

    @property
    def label(self) -> str:
        return self.name or self.id

    @property
    def scope(self) -> Scope:
        return (self.organization, self.project, self.group, self.role)

    @property
    def of_level(self) -> bool:
        """Whether it names a group or a role, and so holds for what these pass on."""
        return self.group is not None or self.role is not None


def specificity(rule: Rule) -> int:
    """Role > group > project > organization, then tool > capability; a further scope named adds to it."""
    return (
        32 * (rule.role is not None)
        + 16 * (rule.group is not None)
        + 8 * (rule.project is not None)
        + 4 * (rule.organization is not None)
        + 2 * (rule.tool is not None)
        + 1 * (rule.capability is not None)
    )


def rank(rule: Rule) -> Rank:
    """Sorts the rule that decides last: the most specific, among equals the strictest, which a decision names
    first. What the others of those ask for holds as well.
    """
    return (
        specificity(rule),
        STRICTNESS[rule.effect],
        rule.deciders_needed,
        bool(rule.deciders),
        -(inf if rule.timeout is None else rule.timeout),
        rule.on_expiry == "cancel_run",
        rule.id,
    )


class RuleSet:
    """An immutable set of rules; `about` finds those for a tool, a capability and a scope.

    Rules are filed under what they are about and, within that, by which scope ids they name, so the cost
    of a look-up depends on the kinds of rules there are and not on their number.
    """

    __slots__ = ("_index", "of_levels", "rules")

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self._index = _index(self.rules)
        self.of_levels = any(rule.of_level for rule in self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def about(self, tool: str, capability: str | None, scope: Scope) -> list[Ranked]:
        """The rules, with their rank, that speak of this tool and capability in this scope."""
        found: list[Ranked] = []
        subjects: tuple[tuple[str | None, str | None], ...] = ((tool, None),)
        if capability is not None:
            subjects = ((tool, None), (None, capability), (tool, capability))
        for subject in subjects:
            for pick, filed in self._index.get(subject, ()):
                found.extend(filed.get(pick(scope), ()))
        return found


def _index(
    rules: tuple[Rule, ...],
) -> dict[tuple[str | None, str | None], list[tuple[Pick, dict[object, list[Ranked]]]]]:
    shapes: dict[tuple[str | None, str | None], dict[tuple[int, ...], dict[object, list[Ranked]]]] = {}
    for rule in rules:
        shape = tuple(level for level, value in enumerate(rule.scope) if value is not None)
        filed = shapes.setdefault((rule.tool, rule.capability), {}).setdefault(shape, {})
        filed.setdefault(_pick(shape)(rule.scope), []).append((rank(rule), rule))
    return {
        subject: [(_pick(shape), filed) for shape, filed in by_shape.items()]
        for subject, by_shape in shapes.items()
    }


def _pick(shape: tuple[int, ...]) -> Pick:
    return itemgetter(*shape) if shape else _anywhere


def _anywhere(scope: Scope) -> object:
    return ()
