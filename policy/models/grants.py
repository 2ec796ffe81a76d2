"""Standing approvals."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from common import ids, limits
from common.models import Created
from groups import known
from policy import checks, tools

from .belonging import strangers

if TYPE_CHECKING:
    from groups.actors import Actor


class Grant(Created):
    """Approves calls of a tool whose arguments match, until a time or for a number of uses.

    Which arguments matter is said, never implied: an empty pattern does not mean any arguments. It counts
    while `granted_by` could make it, by the door they did it at (policy/grants.py).
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.grant_id, editable=False)
    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey("groups.Project", on_delete=models.CASCADE, related_name="+")
    tool = models.CharField(max_length=64)
    arguments = models.JSONField(
        default=dict,
        blank=True,
        help_text="The values these arguments must have, exactly. "
        "Others are free, unless it is said below which.",
    )
    free = models.JSONField(
        null=True,
        editable=False,
        help_text="Which others there may be; none said: any. A decision says them.",
    )
    any_arguments = models.BooleanField(default=False, help_text="Whatever the arguments are.")
    reason = models.TextField(blank=True)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    via = models.CharField(
        max_length=10, default="", db_default="", editable=False, help_text="By which door it came."
    )
    token_id = models.CharField(max_length=ids.ID_LENGTH, null=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    max_uses = models.PositiveIntegerField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "standing approval"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(any_arguments=True, arguments={})
                | (models.Q(any_arguments=False) & ~models.Q(arguments={})),
                name="grant_names_arguments",
            ),
            models.CheckConstraint(
                condition=models.Q(expires_at__isnull=False) | models.Q(max_uses__isnull=False),
                name="grant_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} in {self.project}"

    def made_by(self, actor: "Actor") -> None:
        """Who makes it, or gives it a later end or more uses: from here on it counts while they could."""
        self.granted_by, self.via, self.token_id = actor.user, actor.via.value, actor.token_id

    def clean(self) -> None:
        """Raises ValidationError: another tenant's project, no end, and for a new one what it covers."""
        errors: dict[str, Any] = {}
        if self.expires_at is None and self.max_uses is None:
            errors["expires_at"] = ["A standing approval needs an end: a time or a number of uses."]
        if self._state.adding:  # afterwards tool, project and arguments stay as they are
            errors |= strangers(self, "project") | self._subject_errors()
        if errors:
            raise ValidationError(errors)
        if self._state.adding:
            self.check_room()

    def check_room(self) -> None:
        """Raises TooMany."""
        live = models.Q(expires_at=None) | models.Q(expires_at__gt=Now())
        others = Grant.objects.filter(live, organization_id=self.organization_id, revoked_at=None)
        said = gettext_lazy("There are %(most)s standing approvals that hold: revoke some first.")
        limits.room(others, settings.GRANTS, said)

    def _subject_errors(self) -> dict[str, list[str]]:
        facts = tools.tools(self.organization_id).get(self.tool)
        if facts is None:
            return {"tool": [known.words(self.tool, tools.tools(self.organization_id))]}
        if bool(self.arguments) == self.any_arguments:
            return {"arguments": ["Name the arguments that must stay the same, or say any: one of the two."]}
        problems = checks.argument_problems(self.arguments, facts)
        return {"arguments": problems} if problems else {}


class GrantUse(Created):
    """One call a grant let through."""

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    grant = models.ForeignKey(Grant, on_delete=models.CASCADE, related_name="uses")
    idempotency_key = models.CharField(max_length=64)

    class Meta:
        verbose_name = "use of a standing approval"
        verbose_name_plural = "uses of standing approvals"
        constraints = [
            models.UniqueConstraint(fields=["grant", "idempotency_key"], name="grant_used_once_a_call")
        ]

    def __str__(self) -> str:
        return self.idempotency_key[:12]
