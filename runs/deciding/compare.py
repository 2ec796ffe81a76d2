"""What a call is compared with: calls of its tool that were approved before, in the same project or for the
same person, as far as whoever looks sees them. Never a stranger's, never another organization's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import Func, JSONField, Q, QuerySet, Value
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from common.lookalikes import skeleton, told_apart, visible
from common.whom import host_of, short
from policy.provenance import lexicon
from policy.provenance.verbs import split
from runs.models import Approval
from runs.models.choices import ApprovalStatus
from runs.observe import showing
from runs.tools.base import Tool

WINDOW = 2_000  # of an organization's latest approvals among which earlier calls are looked for
MOST = 100  # earlier calls that are looked at
NAMED = 3  # of what is new, by name
NAME = 80  # characters of each


@dataclass(frozen=True)
class Wanted:
    """The arguments that calls are compared by."""

    targets: tuple[str, ...]
    amounts: tuple[str, ...]
    currency: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys((*self.targets, *self.amounts, *([self.currency] if self.currency else ())))
        )


@dataclass(frozen=True)
class Compared:
    """`before`: the approved call to the same target that is compared with, if there is one. `callouts`: what
    is new this time, in words. `new`: the targets that no approved call had; None where there was no call.
    """

    before: Approval | None = None
    callouts: tuple[str, ...] = ()
    new: frozenset[str] | None = None
    targets: frozenset[str] = frozenset()


class _Chosen(Func):
    """The arguments with these names: however many, they are one column. Other ones may be long."""

    template = "(SELECT jsonb_object_agg(one.key, one.value) FROM jsonb_each(%(expressions)s::text[]))"
    arg_joiner = ") one WHERE one.key = ANY("
    output_field = JSONField()


@dataclass
class _Past:
    """What earlier calls had."""

    ids: list[tuple[str, frozenset[str]]] = field(
        default_factory=list
    )  # the latest first, with their targets
    agents: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    amounts: dict[tuple[str, str], Decimal] = field(default_factory=dict)  # (argument, currency): the largest


def compared(
    approval: Approval, arguments: Mapping[str, Any], tool: Tool | None, seen: QuerySet[Approval]
) -> Compared:
    """What is new about the call, against the approvals among `seen`. Three queries at most."""
    if tool is None:
        return Compared()
    wanted = wanted_of(tool, arguments)
    past = _past(approval, wanted, seen)
    targets = frozenset(_targets(wanted, arguments))
    if not past.ids:
        said = _("No call of {tool} was approved before in this project, or for this person.")
        return Compared(None, (said.format(tool=approval.tool_call.tool),), None, targets)
    new = frozenset(targets - past.targets)
    callouts = [
        *_first_use(approval, past, seen),
        *_new_targets(new, targets, past),
        *_larger(wanted, arguments, past),
    ]
    return Compared(_same_target(past, targets, seen), tuple(callouts), new, targets)


def wanted_of(tool: Tool, arguments: Mapping[str, Any]) -> Wanted:
    """By its preview where it has one, else by what steers it."""
    preview = tool.preview
    if preview is not None and preview.targets:
        targets: tuple[str, ...] = preview.targets
    else:
        targets = tuple(name for name in arguments if tool.stated.steers(name) and _names(arguments[name]))
    parts: Mapping[str, str] = preview.parts if preview else {}
    amounts = tuple(name for name, value in arguments.items() if _is_amount(name, value, parts))
    return Wanted(targets, amounts, parts.get("currency", ""))


def targets_of(tool: Tool, arguments: Mapping[str, Any]) -> frozenset[str]:
    """Where the call's effect goes."""
    return frozenset(_targets(wanted_of(tool, arguments), arguments))


def _names(value: Any) -> bool:
    """Whether the value names something, rather than being a number or yes or no."""
    return isinstance(value, str) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
    )


def _is_amount(name: str, value: Any, parts: Mapping[str, str]) -> bool:
    named = parts.get("amount") == name or bool(lexicon.AMOUNT.intersection(split(name)))
    return named and _number(value) is not None


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value)[:40])
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _past(approval: Approval, wanted: Wanted, seen: QuerySet[Approval]) -> _Past:
    run = approval.run
    near = Q(run__project_id=run.project_id) | Q(run__user_id=run.user_id)
    if showing.is_private(approval.tool_call.tool):  # what is the person's own is compared with nobody else's
        near = Q(run__user_id=run.user_id)
    rows = _approved(approval, seen).filter(near).order_by("-pk")
    past = _Past()
    chosen = rows.annotate(had=_Chosen("tool_call__effective_arguments", Value([*wanted.names])))
    for pk, agent, had in chosen.values_list("pk", "tool_call__agent", "had")[:MOST]:
        had = had or {}
        targets = frozenset(_targets(wanted, had))
        past.ids.append((pk, targets))
        past.agents.add(agent)
        past.targets |= targets
        for name in wanted.amounts:
            key, amount = (name, _currency(wanted, had)), _number(had.get(name))
            if amount is not None:
                past.amounts[key] = max(past.amounts.get(key, amount), amount)
    return past


def _approved(approval: Approval, seen: QuerySet[Approval]) -> QuerySet[Approval]:
    """The tool's approved calls before this one, among the organization's latest."""
    latest = Approval.objects.filter(
        organization_id=approval.organization_id, status=ApprovalStatus.APPROVED, pk__lt=approval.pk
    )
    window = latest.order_by("-pk").values("pk")[:WINDOW]
    return (
        seen.select_related(None)
        .prefetch_related(None)
        .filter(
            pk__in=window, organization_id=approval.organization_id, tool_call__tool=approval.tool_call.tool
        )
    )


def _currency(wanted: Wanted, arguments: Mapping[str, Any]) -> str:
    return str(arguments.get(wanted.currency) or "").upper() if wanted.currency else ""


def _targets(wanted: Wanted, arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in wanted.targets:
        value = arguments.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one.strip():
                yield key_of(one)


def key_of(target: str) -> str:
    """By what two targets are the same: an address without regard to case, a web address by its host."""
    plain = target.strip().lower()
    return host_of(plain) if "://" in plain else plain


def _same_target(past: _Past, targets: frozenset[str], seen: QuerySet[Approval]) -> Approval | None:
    """The latest call to the same targets, else the latest that shares one; any, where calls have none."""
    same = (pk for pk, had in past.ids if had == targets)
    shares = (pk for pk, had in past.ids if had & targets)
    found = next(same, None) or next(shares, None)
    if found is None:
        return None
    return seen.select_related("tool_call", "decided_by", "run__user").get(pk=found)


def _first_use(approval: Approval, past: _Past, seen: QuerySet[Approval]) -> Iterator[str]:
    agent = approval.tool_call.agent
    if not agent or agent in past.agents:
        return
    if not _approved(approval, seen).filter(tool_call__agent=agent).exists():
        yield _("This agent uses {tool} for the first time: no call of it was approved before.").format(
            tool=approval.tool_call.tool
        )


def _new_targets(new: frozenset[str], targets: frozenset[str], past: _Past) -> Iterator[str]:
    if not new:
        return
    said = ngettext(
        "New, with no approved call before: {names}",
        "{count} of {all} are new, with no approved call before: {names}",
        len(targets),
    )
    yield said.format(count=len(new), all=len(targets), names=_listed(new))
    known = {host for target in past.targets if (host := host_of(target) or _as_host(target))}
    hosts = {host for target in new if (host := host_of(target) or _as_host(target))} - known
    if hosts and known:
        said = ngettext("New domain: {names}", "{count} new domains: {names}", len(hosts))
        yield said.format(count=len(hosts), names=_listed(frozenset(hosts)))
    looks = {skeleton(host): host for host in known}
    for host in sorted(hosts):
        other = looks.get(skeleton(host))
        if other is not None:
            said = _("{host} looks like {other}, to which calls were approved, and is another one.")
            yield said.format(host=told_apart(host), other=told_apart(other))


def _as_host(target: str) -> str:
    """A web address is known by its host already."""
    return target if "." in target and "@" not in target and "/" not in target and " " not in target else ""


def _listed(names: frozenset[str]) -> str:
    shown = [short(name, NAME) for name in sorted(names)[:NAMED]]
    return ", ".join([*shown, *(["…"] if len(names) > NAMED else [])])


def _larger(wanted: Wanted, arguments: Mapping[str, Any], past: _Past) -> Iterator[str]:
    currency = _currency(wanted, arguments)
    for name in wanted.amounts:
        amount, largest = _number(arguments.get(name)), past.amounts.get((name, currency))
        if amount is not None and largest is not None and amount > largest:
            said = _("{name} is larger than ever before: {amount}; the largest approved was {largest}.")
            told = (f"{value} {currency}".strip() for value in (amount, largest))
            yield said.format(name=visible(name), **dict(zip(("amount", "largest"), told, strict=True)))
