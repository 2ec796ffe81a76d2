"""Roles and the agents that play them."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from common import ids
from common.models import Created
from groups import known

from .organizations import Organization


class Role(Created):
    """What an agent is told and what it may do.

    `allowed_tools`: null means no restriction, a list is complete (ruling 1). `delegable_tools`:
    what an agent in this role may pass on; null means what it is itself allowed (ruling 5).
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.role_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="roles")
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    system_prompt = models.TextField(blank=True)
    allowed_tools = ArrayField(models.CharField(max_length=64), null=True, blank=True)
    denied_tools = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    delegable_tools = ArrayField(models.CharField(max_length=64), null=True, blank=True)
    model = models.CharField(
        max_length=200,
        blank=True,
        help_text="Such as openai:gpt-5; empty means the deployment's DEPUTY_MODEL.",
    )

    not_known_yet = known.NotKnownYet()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="role_name_unique")]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises ValidationError for tools and a model there are not."""
        known.check(self)

    def unknown_names(self) -> dict[str, list[str]]:
        """By field, what is wrong with its names now."""
        lists = {name: getattr(self, name) for name in ("allowed_tools", "denied_tools", "delegable_tools")}
        found = known.unknown_tools(self.organization_id, lists)
        problem = known.model_problem(self.organization_id, self.model)
        return {**found, "model": [problem]} if problem else found


class AgentInstance(Created):
    """An agent that remembers: a person's PA (`user` set), or a group's expert."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.agent_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="agents")
    role = models.ForeignKey(Role, on_delete=models.PROTECT, related_name="agents")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="agents"
    )
    name = models.CharField(max_length=100, blank=True)
    preferences = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user"],
                condition=models.Q(user__isnull=False),
                name="one_personal_agent_each",
            )
        ]

    def __str__(self) -> str:
        return self.name or self.role.name
