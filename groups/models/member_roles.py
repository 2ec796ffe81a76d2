"""Member roles: what people and services may do in their organization."""

import re

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from common import ids
from common.models import Created
from groups import member_permissions

# Between the names of a list, or around one, in a form.
SEPARATES = re.compile(r"[,;:=]|[^\S ]|^\s|\s$")


class MemberRole(models.TextChoices):
    """The roles every organization has; each may do what those before it may."""

    VIEWER = "viewer", "Viewer: looks at runs, groups and knowledge"
    MEMBER = "member", "Member: also starts runs"
    DECIDER = "decider", "Decider: also sees rules, decides approvals and cancels runs"
    CURATOR = "curator", "Curator: a member who also curates knowledge and routing"
    ADMINISTRATOR = "administrator", "Administrator: everything in the organization"


class CustomRole(Created):
    """A member role of an organization's own: a name and a list of permissions."""

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.custom_role_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="custom_roles"
    )
    name = models.CharField(max_length=100)
    permissions = ArrayField(models.CharField(max_length=120), default=list, blank=True)

    class Meta:
        verbose_name = "member role"
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="custom_role_name")]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises ValidationError for a permission there is not, for a standard role's name, and for one that
        a list of names in a form would take for several.
        """
        if self.name.strip().lower() in MemberRole.values:  # rules name roles: each name means one
            raise ValidationError({"name": ["Every organization has a role of this name already."]})
        stored = CustomRole.objects.filter(pk=self.pk).values_list("name", flat=True)
        if SEPARATES.search(self.name) and self.name not in stored:
            raise ValidationError({"name": ["A name is one line and has none of these: , ; : ="]})
        unknown = sorted(set(self.permissions or ()) - member_permissions.every())
        if unknown:
            raise ValidationError({"permissions": [f"There is no permission '{name}'." for name in unknown]})
