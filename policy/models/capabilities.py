"""Capabilities and which tools have them."""

from django.core.exceptions import ValidationError
from django.db import models

from common import ids
from common.models import Created
from groups import known
from policy import checks
from policy.evaluate import fits
from policy.terms import Binding

from .belonging import strangers


class Capability(Created):
    """Something a tool can do that rules speak about: `send_email`, `payment`, `read_web`."""

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.capability_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.SlugField(max_length=64)
    description = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "capabilities"
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="capability_name")]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises ValidationError for another name: tools declare the one it has, and somebody may be writing
        a rule about it at this moment.
        """
        before = None if self._state.adding else Capability.objects.filter(pk=self.pk).first()
        if before is not None and before.name != self.name:
            message = (
                "A capability keeps its name: a tool that declares it would escape rules. Add another one."
            )
            raise ValidationError({"name": [message]})


class ToolBinding(Created):
    """Adds a capability to the tools whose names match, such as `mail_*`, beside what they declare."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.binding_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    pattern = models.CharField(max_length=64, help_text="A tool's name; * stands for any characters.")
    capability = models.ForeignKey(Capability, on_delete=models.RESTRICT, related_name="bindings")
    not_known_yet = known.NotKnownYet()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "pattern", "capability"], name="tool_binding")
        ]

    def __str__(self) -> str:
        return f"{self.pattern} has {self.capability}"

    def clean(self) -> None:
        """Raises ValidationError for another tenant's capability and for what is no pattern."""
        self.pattern = self.pattern.strip()
        errors = strangers(self, "capability")
        problem = checks.pattern_problem(self.pattern)
        if problem:
            errors["pattern"] = [problem]
        if errors:
            raise ValidationError(errors)
        if "*" not in self.pattern:  # what a pattern fits may come later: that is a warning
            known.check(self)

    def unknown_names(self) -> dict[str, list[str]]:
        """By field, what is wrong with its names now."""
        if "*" not in self.pattern:
            return known.unknown_tools(self.organization_id, {"pattern": [self.pattern]})
        if any(fits(name, self.pattern) for name in known.tools(self.organization_id)):
            return {}
        return {"pattern": [f"No tool there is fits '{self.pattern}'."]}


def bindings_of(organization_id: str) -> tuple[Binding, ...]:
    """The organization's bindings as policy reads them."""
    rows = ToolBinding.objects.filter(organization_id=organization_id).order_by("id")
    return tuple(Binding(*pair) for pair in rows.values_list("pattern", "capability__name"))
