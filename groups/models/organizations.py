"""Organizations, their projects, and who belongs to them."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models

from common import ids
from common.models import Created
from groups import known

from .member_roles import CustomRole, MemberRole


class Organization(Created):
    """A tenant. Everything else carries its id, and every query starts from it."""

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.organization_id, editable=False
    )
    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    queue_limit = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="New runs are refused while so many wait for a worker; empty means the deployment's limit.",
    )
    calls_limit = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="At most so many calls of models and tools under way at once; never more than the "
        "deployment's.",
    )
    storage_limit = models.PositiveIntegerField(
        "storage limit (MB)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="New runs are refused while its rows take more of the database; empty means no limit.",
    )
    retention_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="After so many days what ended runs said is removed by manage.py prune. Empty: never.",
    )
    record_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="After so many days manage.py prune may remove the whole log of pruned runs, by months: "
        "nothing proves then what happened. Empty: never.",
    )
    thin_notices = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Messages about approvals say that one waits and where, not what or for whom.",
    )
    second_person = models.BooleanField(
        default=False,
        db_default=False,
        help_text="What weakens rules, rights or oversight waits until another administrator confirms it.",
    )
    alarm_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(60)],
        help_text="An approval that waits longer is an alarm; empty means the deployment's limit.",
    )

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises ValidationError where a second person is wanted and there are no two."""
        before = Organization.objects.filter(pk=self.pk, second_person=True).exists()
        if not self.second_person or before:
            return
        there = Membership.objects.filter(
            organization_id=self.pk, active=True, kind=MembershipKind.HUMAN, projects=None,
            role=MemberRole.ADMINISTRATOR, custom_role=None, user__is_active=True,
        )  # fmt: skip
        if there.count() < 2:
            raise ValidationError(
                {"second_person": ["This takes two administrators, who are people and members of all of it."]}
            )


class ApprovalProfile(models.TextChoices):
    OFF = "off", "Off: lists, risk and rules alone"
    CAREFUL = "careful", "Careful: every side effect asks"
    BALANCED = "balanced", "Balanced: what outsiders steer asks"
    OPEN = "open", "Open: only rules ask"


class Project(Created):
    """A room inside an organization: runs, groups, approvals and knowledge belong to one."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.project_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="projects")
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)
    review_deposits = models.BooleanField(
        default=False, help_text="What groups learn waits for a curator before any search sees it."
    )
    allow_self_approval = models.BooleanField(
        default=False,
        help_text="A person may decide approvals that only people may decide on their own runs.",
    )
    published = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Other agents may read about it at its A2A address and, with a token, give it tasks.",
    )
    approval_profile = models.CharField(
        max_length=10,
        choices=ApprovalProfile.choices,
        default=ApprovalProfile.OFF,
        help_text="When calls ask, by where their values came from (docs/provenance.md).",
    )
    owner = models.ForeignKey(
        "groups.Membership",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Whom rules mean by project.owner.",
    )
    language = models.CharField(
        max_length=10,
        choices=settings.LANGUAGES,
        blank=True,
        default="",
        db_default="",
        help_text="In which its people work: whoever reads in it is offered this project first.",
    )
    catalog_version = models.BigIntegerField(
        default=0, editable=False, help_text="Grows by trigger whenever a group, member or role changes."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="project_slug_unique"),
            models.UniqueConstraint(fields=["organization", "id"], name="project_organization_id"),
            models.CheckConstraint(
                condition=models.Q(approval_profile__in=ApprovalProfile.values),
                name="project_approval_profile",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises ValidationError for an owner of another organization."""
        if self.owner and self.owner.organization_id != self.organization_id:
            raise ValidationError({"owner": ["This belongs to another organization."]})


class MembershipKind(models.TextChoices):
    HUMAN = "human", "Person"
    SERVICE = "service", "Service account"


class MembershipManager(models.Manager["Membership"]):
    def seeing(self, user: Any, project: Project) -> "Membership | None":
        """The user's active membership that includes the project, or None."""
        mine = self.filter(organization_id=project.organization_id, user=user, active=True)
        found = mine.select_related("custom_role").first()
        return found if found is not None and found.sees_project(project.pk) else None


class Membership(Created):
    """A user in an organization, and the boundary of what runs in their name may do.

    `projects` and `allowed_tools`: null means no restriction, a list is complete, an empty list
    allows nothing (rulings 1 and 3).
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.membership_id, editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    kind = models.CharField(
        max_length=10,
        choices=MembershipKind.choices,
        default=MembershipKind.HUMAN,
        help_text="Stays as it is: what a person decided, and what a service did, must not be mixed up.",
    )
    role = models.CharField(
        max_length=20,
        choices=MemberRole.choices,
        default=MemberRole.MEMBER,
        help_text="What this member may do in the organization.",
    )
    custom_role = models.ForeignKey(
        CustomRole,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="memberships",
        help_text="A role of the organization's own, in place of the one above.",
    )
    active = models.BooleanField(default=True)
    projects = ArrayField(models.CharField(max_length=ids.ID_LENGTH), null=True, blank=True)
    allowed_tools = ArrayField(models.CharField(max_length=64), null=True, blank=True)
    denied_tools = ArrayField(models.CharField(max_length=64), default=list, blank=True)

    not_known_yet = known.NotKnownYet()

    objects = MembershipManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "user"], name="membership_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=MembershipKind.values), name="membership_kind"
            ),
            models.CheckConstraint(condition=models.Q(role__in=MemberRole.values), name="membership_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.organization}"

    def clean(self) -> None:
        """Raises ValidationError: a changed kind, another tenant's role or project."""
        errors: dict[str, list[str]] = {}
        before = Membership.objects.filter(pk=self.pk).values_list("kind", flat=True).first()
        if before is not None and before != self.kind:
            errors["kind"] = ["A membership stays a person's, or a service account's, as it was made."]
        if self.custom_role and self.custom_role.organization_id != self.organization_id:
            errors["custom_role"] = ["This belongs to another organization."]
        if self.projects:
            there = Project.objects.filter(organization_id=self.organization_id, pk__in=self.projects)
            if there.count() != len(set(self.projects)):
                errors["projects"] = ["Some of these projects are not of this organization."]
        if errors:
            raise ValidationError(errors)
        known.check(self)

    def unknown_names(self) -> dict[str, list[str]]:
        """By field, what is wrong with its names now."""
        lists = {name: getattr(self, name) for name in ("allowed_tools", "denied_tools")}
        return known.unknown_tools(self.organization_id, lists)

    @property
    def role_name(self) -> str:
        """How the member's role is called."""
        return str(self.custom_role) if self.custom_role else self.role

    def sees_project(self, project_id: str) -> bool:
        """Whether this member may see what belongs to the project."""
        return self.active and (self.projects is None or project_id in self.projects)
