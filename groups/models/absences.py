"""Who is away, and who decides in their place meanwhile."""

from django.db import models
from django.db.models import F, Q

from common.models import Created


class Absence(Created):
    """A member is away, and another stands in for them: in what the rules name the absent one for, and only
    as far as the stand-in may decide approvals themself (policy/authority.py).
    """

    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE, related_name="+")
    membership = models.OneToOneField("groups.Membership", on_delete=models.CASCADE, related_name="absence")
    stand_in = models.ForeignKey(
        "groups.Membership", on_delete=models.CASCADE, null=True, related_name="stands_in_for"
    )
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="absence_ends_later"),
            models.CheckConstraint(
                condition=~Q(stand_in=F("membership")), name="absence_stand_in_is_another"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.membership}"
