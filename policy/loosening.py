"""Whether a rule of one project would take back what a rule of the whole organization demands there.

The most specific rule decides, so a project's rule can ask for less. Members of some projects may only ask
for more: what holds for the whole organization is not theirs to loosen.
"""

from policy import checks, tools
from policy.models import CapabilityRule
from policy.models.capabilities import bindings_of
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
        if _asks(rule) < _asks(other) and about & _about(other):
            return other
    return None


def _asks(rule: CapabilityRule) -> tuple[int, int]:
    return STRICTNESS[rule.effect], rule.deciders_needed  # type: ignore[index]


def _about(rule: CapabilityRule) -> set[str]:
    """What the rule speaks of: tools by name, and its capability also where no tool has it yet."""
    capability = rule.capability.name if rule.capability else None
    bindings = bindings_of(rule.organization_id)
    concerned = checks.concerned(tools.tools(rule.organization_id), bindings, rule.tool, capability)
    named = {f"capability {capability}"} if capability else {rule.tool}
    return named | {facts.name for facts in concerned}
