"""Groups of experts, their members, and the goals that taught where work belongs."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models

from common import ids, redact
from common.models import Created

from .agents import AgentInstance, Role
from .organizations import Organization, Project


class Group(Created):
    """Experts who work on one goal together, in rounds."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.group_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="groups")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="groups")
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    capabilities = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    max_rounds = models.PositiveSmallIntegerField(default=3, validators=[MinValueValidator(1)])
    active = models.BooleanField(default=True)
    published = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Other agents may read about it at its A2A address and, with a token, give it tasks.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="group_name_unique"),
            models.CheckConstraint(condition=models.Q(max_rounds__gte=1), name="group_max_rounds"),
        ]

    def __str__(self) -> str:
        return self.name


class GroupMember(models.Model):
    """A seat in a group; members speak by ordinal, the lead last."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.member_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="members")
    role = models.ForeignKey(Role, on_delete=models.PROTECT, related_name="seats")
    agent_instance = models.ForeignKey(AgentInstance, on_delete=models.PROTECT, related_name="seats")
    ordinal = models.PositiveSmallIntegerField(default=0)
    is_lead = models.BooleanField(default=False)

    class Meta:
        ordering = ["ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["group", "ordinal"], name="group_member_ordinal"),
            models.UniqueConstraint(
                fields=["group", "agent_instance"],
                name="group_member_agent",
                violation_error_message="This agent sits in the group already: give the seat another one.",
            ),
            models.UniqueConstraint(
                fields=["group"],
                condition=models.Q(is_lead=True),
                name="one_lead_at_most",
                violation_error_message="The group has a lead already: take it from that seat first.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.group}"


class ExampleKind(models.TextChoices):
    FITS = "fits", "Belongs here"
    MISFIT = "misfit", "Does not belong here"


class RoutingExample(Created):
    """A goal a group completed, or that a person said belongs, or does not belong, to it."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.example_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="examples")
    goal = models.TextField()
    goal_hash = models.CharField(max_length=64, editable=False)
    kind = models.CharField(max_length=10, choices=ExampleKind.choices, default=ExampleKind.FITS)
    source_run_id = models.CharField(max_length=ids.ID_LENGTH, null=True, blank=True, editable=False)
    corrected_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "goal_hash"], name="routing_example_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=ExampleKind.values), name="routing_example_kind"
            ),
        ]

    def __str__(self) -> str:
        return redact.shown(self.goal)[:80]
