"""What an organization's own applications protect, as far as policy has to know of it."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from common import ids
from common.models import Created

# Deputy knows these itself: as resources (project, group, tool), or as subjects (agent, role).
OWN_TYPES = frozenset(("project", "group", "tool", "agent", "role"))


class OutsideEntity(Created):
    """A subject or a resource that Deputy does not keep: a record, a customer; or more about a user.

    Rules' conditions read `properties`, and searches list it (AuthZEN Authorization API 1.0).
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.entity_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    type = models.CharField(max_length=64, help_text="As applications name it: record, customer, user.")
    identifier = models.CharField(max_length=200, help_text="Its id in those applications.")
    properties = models.JSONField(
        default=dict, blank=True, help_text='What conditions may read: {"status": "archived"}'
    )

    class Meta:
        verbose_name_plural = "outside entities"
        constraints = [
            models.UniqueConstraint(fields=["organization", "type", "identifier"], name="outside_entity")
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.identifier}"

    def clean(self) -> None:
        """Raises ValidationError: a type that Deputy keeps itself or no name can carry, no JSON object."""
        errors: dict[str, Any] = {}
        if self.type in OWN_TYPES:
            errors["type"] = [f"Deputy keeps what is of the type '{self.type}' itself."]
        elif ":" in self.type:
            errors["type"] = ["A type has no colon: rules name an action as type:action."]
        if not isinstance(self.properties, dict):
            errors["properties"] = ['Properties are an object: {"status": "archived"}.']
        if errors:
            raise ValidationError(errors)
