"""Rules: what a capability, or a tool, needs before it may run."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy

from common import ids, limits
from common.models import Created
from groups import known
from groups.models import CustomRole, MemberRole, Membership
from policy import checks, tools

from .belonging import strangers
from .capabilities import bindings_of


class Effect(models.TextChoices):
    ALLOW = "allow", "Allow"
    REQUIRE_APPROVAL = "require_approval", "Ask for an approval"
    REQUIRE_HUMAN = "require_human", "Ask a person"
    DENY = "deny", "Deny"


class OnExpiry(models.TextChoices):
    FAIL_CALL = "fail_call", "The call fails as expired"
    CANCEL_RUN = "cancel_run", "The run is cancelled"


def decider_problems(organization_id: str, names: list[str]) -> list[str]:
    """What is wrong with names of deciders: `run.user`, `project.owner`, `role:{member
    role}`, `member:{membership id}`.
    """
    wanted = [name.removeprefix("member:") for name in names if name.startswith("member:")]
    mine = Membership.objects.filter(organization_id=organization_id, pk__in=wanted)
    known = {"run.user", "project.owner", *(f"member:{pk}" for pk in mine.values_list("pk", flat=True))}
    return [
        f"'{name}' names nobody: write run.user, project.owner, role:… or member:… with the id of a "
        "membership here."
        for name in names
        if name not in known and not (name.startswith("role:") and name.removeprefix("role:"))
    ]


def unknown_roles(organization_id: str, names: list[str]) -> list[str]:
    """A sentence for each `role:…` that is no member role of the organization."""
    named = [name.removeprefix("role:") for name in names if name.startswith("role:")]
    if not set(named) - set(MemberRole.values):
        return []
    own = CustomRole.objects.filter(organization_id=organization_id).values_list("name", flat=True)
    there = {*MemberRole.values, *own}
    return [known.words(name, there, "member role") for name in named if name not in there]


class CapabilityRule(Created):
    """An effect for a capability or a tool, in a scope, on a condition (design 5)."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.rule_id, editable=False)
    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(
        "groups.Project", on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    group = models.ForeignKey(
        "groups.Group", on_delete=models.RESTRICT, null=True, blank=True, related_name="+"
    )
    role = models.ForeignKey(
        "groups.Role", on_delete=models.RESTRICT, null=True, blank=True, related_name="+"
    )
    name = models.CharField(max_length=200, blank=True)
    capability = models.ForeignKey(
        "policy.Capability", on_delete=models.RESTRICT, null=True, blank=True, related_name="rules"
    )
    tool = models.CharField(max_length=64, blank=True)
    effect = models.CharField(max_length=20, choices=Effect.choices)
    condition = models.TextField(blank=True, help_text='On the arguments: amount <= 100 && currency == "EUR"')
    timeout_seconds = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    on_expiry = models.CharField(max_length=10, choices=OnExpiry.choices, default=OnExpiry.FAIL_CALL)
    deciders_needed = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    deciders = ArrayField(
        models.CharField(max_length=80),
        default=list,
        blank=True,
        help_text="Who may decide, where not everybody who decides approvals: run.user, "
        "project.owner, role:…, member:…",
    )
    in_order = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The deciders named are told one after the other. Each may decide at any time.",
    )
    shadow = models.BooleanField(default=False, help_text="Recorded, not applied.")
    active = models.BooleanField(default=True)
    limited = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Arranged by a member of some projects: it asks for no less than rules of all of them. "
        "Members of the whole organization may take this away.",
    )
    not_known_yet = known.NotKnownYet()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(effect__in=Effect.values), name="rule_effect"),
            models.CheckConstraint(condition=Q(on_expiry__in=OnExpiry.values), name="rule_on_expiry"),
            models.CheckConstraint(
                condition=Q(capability__isnull=False, tool="") | (Q(capability=None) & ~Q(tool="")),
                name="rule_capability_or_tool",
            ),
            models.CheckConstraint(condition=Q(deciders_needed__gte=1), name="rule_deciders_needed"),
        ]

    def __str__(self) -> str:
        return self.name or f"{self.capability or self.tool} → {self.effect}"

    def clean(self) -> None:
        """Raises ValidationError: scopes of other tenants, a subject too few or many, a bad condition, one
        rule too many.
        """
        # A browser sends \r\n for the line breaks of a text that it was shown with others.
        self.tool, self.condition = self.tool.strip(), self.condition.strip().replace("\r\n", "\n")
        errors: dict[str, Any] = strangers(self, "project", "group", "role", "capability")
        elsewhere = self.project_id and self.group and self.group.project_id != self.project_id
        if elsewhere and "group" not in errors:
            errors["group"] = ["The group belongs to another project."]
        if problems := decider_problems(self.organization_id, self.deciders):
            errors["deciders"] = problems
        if bool(self.capability_id) == bool(self.tool):
            errors["tool"] = ["A rule is about a capability or about a tool: name exactly one."]
        elif self.condition and not errors:
            problems = self.condition_problems()
            if problems:
                errors["condition"] = problems
        if errors:
            raise ValidationError(errors)
        known.check(self)
        if self._state.adding:
            others = CapabilityRule.objects.filter(organization_id=self.organization_id)
            said = gettext_lazy("There are %(most)s rules already: remove some first.")
            limits.room(others, settings.RULES, said)

    def unknown_names(self) -> dict[str, list[str]]:
        """By field, what is wrong with its names now."""
        found = known.unknown_tools(self.organization_id, {"tool": [self.tool] if self.tool else []})
        roles = unknown_roles(self.organization_id, self.deciders)
        return {**found, "deciders": roles} if roles else found

    def condition_problems(self) -> list[str]:
        """What is wrong with the condition, seen by every tool the rule speaks of."""
        capability = self.capability.name if self.capability else None
        bindings = bindings_of(self.organization_id) if capability else ()
        about = checks.concerned(tools.tools(self.organization_id), bindings, self.tool, capability)
        return checks.condition_problems(self.condition, about)
