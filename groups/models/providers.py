"""Providers of identities: who else says that somebody is who they are, over OpenID Connect."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from common import ids, sealed
from common.canonical import digest
from common.models import Created, store_also
from common.outbound import OutboundError, check

from .member_roles import MemberRole
from .organizations import Organization

INSTALLATION = "installation"  # the id of the provider that the environment names
MAX_SECRET = 1000
NOT_RESOLVED = "CONNECTION"  # a name that leads nowhere today may do so tomorrow


class IdentityProvider(Created):
    """An organization's own provider. It vouches for people in this organization and nowhere else.

    `rules`: which of the provider's groups makes somebody what here, the first that fits: a list of
    `{"group": …, "role": …, "projects": [ids] or null}`. Without rules and default role, administrators
    arrange memberships and the provider only says who signs in. `domains`: of e-mail addresses that the
    provider may vouch for; a superuser has found out whose they are.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.identity_provider_id, editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="identity_providers"
    )
    name = models.CharField(max_length=60, help_text="What the button says that leads there.")
    issuer = models.CharField(
        max_length=500,
        help_text="As the provider's own configuration names it, such as https://id.example.org.",
    )
    client_id = models.CharField("client id", max_length=300)
    sealed_secret = models.TextField(blank=True, editable=False)
    scopes = models.CharField(max_length=300, default="openid profile email", blank=True)
    groups_claim = models.CharField(
        max_length=100, default="groups", blank=True, help_text="The claim that lists somebody's groups."
    )
    rules = models.JSONField(default=list, blank=True, editable=False)
    default_role = models.CharField(
        max_length=20,
        blank=True,
        choices=MemberRole.choices,
        help_text="Of members in none of the groups. Empty: they are no members.",
    )
    domains = ArrayField(
        models.CharField(max_length=253),
        default=list,
        blank=True,
        help_text="Of the e-mail addresses it may vouch for. Only a superuser changes them.",
    )
    only = models.BooleanField(
        "only through the provider",
        default=False,
        help_text="Who signs in otherwise is not in this organization; superusers are.",
    )
    makes_accounts = models.BooleanField(
        "makes accounts",
        default=False,
        db_default=False,
        help_text="For whoever it names and Deputy does not know. Where members sign in otherwise too, some "
        "of them may get a second account, and with it a second vote: leave it off, and have them connect.",
    )
    active = models.BooleanField(default=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "identity provider"
        constraints = [
            models.UniqueConstraint(fields=["organization", "issuer"], name="identity_provider_unique"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def secret(self) -> str:
        """The client secret. Raises sealed.Unreadable."""
        return sealed.unseal(self.sealed_secret) if self.sealed_secret else ""

    def keep_secret(self, secret: str) -> None:
        self.sealed_secret = sealed.seal(secret.strip()) if secret.strip() else ""

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store it. The secret that was meant for one issuer is never sent to another, and neither are the
        tokens that people's sign-ins brought.
        """
        before = IdentityProvider.objects.filter(pk=self.pk).first()
        if before and before.issuer != self.issuer and before.sealed_secret == self.sealed_secret:
            self.sealed_secret = ""
        store_also(kwargs, "sealed_secret", "changed_at")
        super().save(*args, **kwargs)
        if before and (not self.active or asked_as(before) != asked_as(self)):
            KeptSignIn.objects.filter(provider=self.pk).delete()

    def clean(self) -> None:
        """Raises ValidationError for an issuer that Deputy will not ask."""
        self.issuer = self.issuer.strip()
        try:
            check(self.issuer, allow_private=frozenset(settings.IDENTITY_ALLOW))
        except OutboundError as error:
            if error.code != NOT_RESOLVED:
                raise ValidationError({"issuer": f"This address is refused: {error.message}."}) from None
        if not self.issuer.startswith("https://") and not _allowed(self.issuer):
            raise ValidationError({"issuer": "An issuer starts with https://."})
        if "openid" not in self.scopes.split():
            raise ValidationError({"scopes": "The scopes name openid."})


def asked_as(provider: Any) -> str:
    """Whom a provider's tokens come from, and as whom Deputy gets them, as a digest: others get none."""
    return digest(provider.issuer, provider.client_id)


class ProviderSession(models.Model):
    """A browser's session that somebody opened by a provider, so that the provider's logout finds it: what a
    session holds cannot be searched. `provider` as in KeptSignIn; `session`: the provider's own (`sid`).
    """

    session_key = models.CharField(primary_key=True, max_length=40)
    provider = models.CharField(max_length=ids.ID_LENGTH)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session = models.CharField(max_length=255, blank=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["provider", "session"], name="provider_session_sid")]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.provider}"


class KeptSignIn(Created):
    """A person's own tokens of their last sign-in at a provider, encrypted.

    Kept only where an MCP server's tokens come in exchange for them (groups/sign_in/kept.py). `provider`: an
    IdentityProvider's id, or that of the installation's, which has no `organization`. `session`: the
    provider's (`sid`). `asked_as`: the digest of the issuer and client that they are for.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.kept_sign_in_id, editable=False
    )
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    provider = models.CharField(max_length=ids.ID_LENGTH)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    subject = models.CharField(max_length=255)
    session = models.CharField(max_length=255, blank=True)
    sealed_access = models.TextField()
    sealed_refresh = models.TextField(blank=True)
    expires_at = models.DateTimeField(null=True)
    asked_as = models.CharField(max_length=64)

    class Meta:
        verbose_name = "kept sign-in"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["provider", "user"], name="kept_sign_in_once")]

    def __str__(self) -> str:
        return f"{self.user} at {self.provider}"


def _allowed(issuer: str) -> bool:
    """Whether the operator lets this issuer be asked although it is not public; then also without TLS."""
    return issuer.partition("://")[2].split("/")[0] in settings.IDENTITY_ALLOW
