"""API tokens: shown once, stored as a hash, found by their prefix."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import PermissionDenied
from django.db import connection, models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from common import ids, limits
from common.models import Created
from groups.scopes import DEFAULT

from .cells import Cell
from .organizations import Membership, Organization

SECRET_BYTES = 32  # of a random secret: nothing to guess, so a fast hash is enough


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenManager(models.Manager["Token"]):
    def issue(
        self,
        organization: Organization,
        user: Any,
        name: str = "",
        scopes: Sequence[str] | None = None,
        **fields: Any,
    ) -> tuple["Token", str]:
        """A new token and its secret `dpt_…`, which is not kept and cannot be shown again. In a cell with a
        number it begins with that, `dpt_2_…`, so that others can say where it leads (groups/cells.py).

        Without `scopes` it reads, and no more. Who may issue it: groups/tokens.py. Raises TooMany, and
        PermissionDenied where the user is no member any more: the end of a membership, which revokes its
        tokens, comes before this one or after.
        """
        held = Membership.objects.filter(organization=organization, user=user, active=True)
        if connection.in_atomic_block:
            held = held.select_for_update(no_key=True)
        if held.first() is None:
            raise PermissionDenied(_("Tokens are for members."))
        self.check_room(organization.pk, user.pk)
        number = Cell.objects.filter(number__gt=0).values_list("number", flat=True).first()
        secret = f"dpt_{f'{number}_' if number else ''}{secrets.token_urlsafe(SECRET_BYTES)}"
        token = self.create(
            organization=organization,
            user=user,
            name=name,
            prefix=secret[:12],
            secret_hash=hash_secret(secret),
            scopes=list(DEFAULT if scopes is None else scopes),
            **fields,
        )
        return token, secret

    def check_room(self, organization_id: str, user_id: int) -> None:
        """Raises TooMany: each token has an allowance of its own."""
        live = Q(expires_at=None) | Q(expires_at__gt=Now())
        mine = self.filter(live, organization_id=organization_id, user_id=user_id, revoked_at=None)
        said = gettext_lazy("There are %(most)s tokens of this account that work: revoke some first.")
        limits.room(mine, settings.TOKENS, said)


class Token(Created):
    """A user's key to the API in one organization. It reaches as far as its scopes: none, nowhere."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.token_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="tokens")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="deputy_tokens")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=12, editable=False)
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = TokenManager()

    def __str__(self) -> str:
        return f"{self.prefix}… {self.name}".strip()

    def clean(self) -> None:
        """Raises TooMany."""
        if self._state.adding and self.organization_id and self.user_id:
            Token.objects.check_room(self.organization_id, self.user_id)
