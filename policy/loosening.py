"""Whether a rule of one project would take back what a rule of the whole organization demands there.

The most specific rule decides, so a project's rule can ask for less. Members of some projects may only ask
for more: what holds for the whole organization is not theirs to loosen.
"""

from policy import checks, tools
from policy.authority import RUN_USER
from policy.models import CapabilityRule
from policy.models.capabilities import bindings_of
from policy.models.rules import Effect
from policy.terms import STRICTNESS


def loosened(rule: CapabilityRule) -> CapabilityRule | None:
    """A rule of the whole organization that this one would ask less than, about the same tools."""
    if rule.shadow or not rule.active:
        return None
    about = _about(rule)
    everywhere = CapabilityRule.objects.filter(
        organization_id=rule.organization_id, project=None, active=True, shadow=False
    ).exclude(pk=rule.pk)
    for other in everywhere.select_related("capability").order_by("id"):
        if asks_less(rule, other) and about & _about(other):
            return other
    return None


def asks_less(rule: CapabilityRule, other: CapabilityRule) -> bool:
    """Whether the rule demands less than the other in anything: a person instead of two deciders does."""
    if STRICTNESS[rule.effect] < STRICTNESS[other.effect]:  # type: ignore[index]
        return True
    if Effect.DENY in (rule.effect, other.effect) or other.effect == Effect.ALLOW:
        return False
    named, wanted = set(rule.deciders), set(other.deciders)
    outsiders = named - wanted if wanted else named & {RUN_USER}  # the run's user may decide by name alone
    return rule.deciders_needed < other.deciders_needed or bool(outsiders) or bool(wanted and not named)


def _about(rule: CapabilityRule) -> set[str]:
    """What the rule speaks of: tools by name, and its capability also where no tool has it yet."""
    capability = rule.capability.name if rule.capability else None
    bindings = bindings_of(rule.organization_id)
    concerned = checks.concerned(tools.tools(rule.organization_id), bindings, rule.tool, capability)
    named = {f"capability {capability}"} if capability else {rule.tool}
    return named | {facts.name for facts in concerned}
