"""Whether a rule of one project would take back what a rule of the whole organization demands there.

The most specific rule decides, so a project's rule can ask for less. Members of some projects may only ask
for more: what holds for the whole organization is not theirs to loosen.
"""

from collections.abc import Iterable

from groups.models import Membership
from groups.models.organizations import MembershipKind
from policy import checks, tools
from policy.cache import as_rule
from policy.models import CapabilityRule
from policy.models.capabilities import bindings_of
from policy.models.rules import Effect
from policy.ruleset import specificity
from policy.terms import RUN_USER, STRICTNESS

SCOPES = ("project_id", "group_id", "role_id")


def loosened(rule: CapabilityRule) -> CapabilityRule | None:
    """A rule of the whole organization that this one would ask less than, about the same tools."""
    stricter = [other for other in _others(rule) if other.project_id is None and asks_less(rule, other)]
    about = _about(rule) if stricter else set()
    return next((other for other in stricter if about & _about(other)), None)


def taken_over(rule: CapabilityRule) -> CapabilityRule | None:
    """A rule, of a project too, in whose place this one would decide somewhere and ask for less, were there a
    tool that both are about: which tools there are, and what they can do, changes later.
    """
    others = _others(rule)
    return next((other for other in others if asks_less(rule, other) and _goes_before(rule, other)), None)


def _goes_before(rule: CapabilityRule, other: CapabilityRule) -> bool:
    """Whether there is a place where this one decides and not the other. A deny decides at whatever scope."""
    if rule.capability_id != other.capability_id and None not in (rule.capability_id, other.capability_id):
        return False  # of what two capabilities ask of a tool, the stricter holds
    if rule.tool and other.tool and rule.tool != other.tool:
        return False
    if other.effect == Effect.DENY or not _meet(rule, other):
        return False
    return specificity(as_rule(rule)) > specificity(as_rule(other))


def _others(rule: CapabilityRule) -> Iterable[CapabilityRule]:
    """The rules that are applied beside this one, where it is."""
    if rule.shadow or not rule.active:
        return ()
    others = CapabilityRule.objects.filter(
        organization_id=rule.organization_id, active=True, shadow=False
    ).exclude(pk=rule.pk)
    return others.select_related("capability").order_by("id")


def _meet(rule: CapabilityRule, other: CapabilityRule) -> bool:
    """Whether there is a place where both of them speak."""
    return all(
        None in (mine, theirs) or mine == theirs
        for mine, theirs in ((getattr(rule, name), getattr(other, name)) for name in SCOPES)
    )


def asks_less(rule: CapabilityRule, other: CapabilityRule) -> bool:
    """Whether the rule demands less than the other in anything: a person instead of two deciders does."""
    if STRICTNESS[rule.effect] < STRICTNESS[other.effect]:  # type: ignore[index]
        return True
    if Effect.DENY in (rule.effect, other.effect) or other.effect == Effect.ALLOW:
        return False
    named, wanted = set(rule.deciders), set(other.deciders)
    outsiders = named - wanted if wanted else by_name_alone(named)
    return rule.deciders_needed < other.deciders_needed or bool(outsiders) or bool(wanted and not named)


def by_name_alone(deciders: Iterable[str]) -> set[str]:
    """Those of the names by which somebody decides who may not where no rule names anybody: the run's user,
    and of several a service account, whose token anybody may hold.
    """
    members = {name.removeprefix("member:"): name for name in deciders if name.startswith("member:")}
    robots = Membership.objects.filter(pk__in=members, kind=MembershipKind.SERVICE)
    return {members[pk] for pk in robots.values_list("pk", flat=True)} | {*deciders} & {RUN_USER}


def _about(rule: CapabilityRule) -> set[str]:
    """What the rule speaks of: tools by name, and its capability also where no tool has it yet."""
    capability = rule.capability.name if rule.capability else None
    bindings = bindings_of(rule.organization_id)
    concerned = checks.concerned(tools.tools(rule.organization_id), bindings, rule.tool, capability)
    named = {f"capability {capability}"} if capability else {rule.tool}
    return named | {facts.name for facts in concerned}
