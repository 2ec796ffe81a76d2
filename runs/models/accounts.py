"""People's own accounts at the servers that agents use, and how Deputy is authorized there."""

from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from common import ids, sealed
from common.canonical import digest
from common.models import Created
from common.outbound import OutboundError, check
from groups.models import IdentityProvider
from groups.models.providers import INSTALLATION

NOT_RESOLVED = "CONNECTION"  # a name that leads nowhere today may do so tomorrow
ENDPOINTS = ("issuer", "authorization_endpoint", "token_endpoint")
MAX_SECRET = 1000


class AsPerson(models.Model):
    """How a server is asked in a person's own name: Deputy as a client of its authorization server.

    OAuth 2.1 by the code flow with PKCE. What stands in the endpoints is what the server and its
    authorization server publish (RFC 9728, RFC 8414), or was entered; it stays until somebody changes it.

    Or, with `exchange_at`, a provider of identities that people sign in at: tokens come in exchange for their
    sign-in there (RFC 8693), and Deputy is the client that it is for the sign-in.
    """

    as_person = models.BooleanField(
        "acts as the person",
        default=False,
        db_default=False,
        help_text="Calls go with the authorization of the person the run works for, and without the headers.",
    )
    exchange_at = models.CharField(
        "in exchange for the sign-in at",
        max_length=ids.ID_LENGTH,
        blank=True,
        default="",
        db_default="",
        help_text="Empty: each person connects their own account at the server's authorization server.",
    )
    audience = models.CharField(
        max_length=300,
        blank=True,
        default="",
        db_default="",
        help_text="How the provider names the server in an exchange. Empty: by its address (resource).",
    )
    with_actor = models.BooleanField(
        "names who acts",
        default=False,
        db_default=False,
        help_text="Deputy's own token goes with an exchange, and what comes has to name who acts (act).",
    )
    client_id = models.CharField("client id", max_length=300, blank=True, default="", db_default="")
    sealed_secret = models.TextField(blank=True, editable=False, default="", db_default="")
    scopes = models.CharField(
        max_length=1000,
        blank=True,
        default="",
        db_default="",
        help_text="What is asked for, separated by blanks. Empty: what the server asks for.",
    )
    issuer = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text="Of its authorization server. Empty, with the endpoints: Deputy asks the server.",
    )
    authorization_endpoint = models.CharField(max_length=2000, blank=True, default="", db_default="")
    token_endpoint = models.CharField(max_length=2000, blank=True, default="", db_default="")
    revocation_endpoint = models.CharField(max_length=2000, blank=True, default="", db_default="")
    resource = models.CharField(
        max_length=2000,
        blank=True,
        default="",
        db_default="",
        help_text="What tokens are for (RFC 8707). Empty: the server's address.",
    )
    secret_in_body = models.BooleanField(default=False, db_default=False, editable=False)
    names_issuer = models.BooleanField(default=False, db_default=False, editable=False)  # RFC 9207, promised

    class Meta:
        abstract = True

    @property
    def secret(self) -> str:
        """The client secret. Raises sealed.Unreadable."""
        return sealed.unseal(self.sealed_secret) if self.sealed_secret else ""

    def keep_secret(self, secret: str) -> None:
        self.sealed_secret = sealed.seal(secret.strip()) if secret.strip() else ""

    def clean_as_person(self) -> None:
        """Raises ValidationError for what no person could be sent to, or no code redeemed at."""
        if not self.as_person:
            return
        if self.exchange_at:
            self._clean_exchange()
            return
        if not self.client_id.strip():
            raise ValidationError({"client_id": "Acting as the person takes a client id."})
        given = [name for name in ENDPOINTS if getattr(self, name)]
        if given and len(given) < len(ENDPOINTS):
            missing = next(name for name in ENDPOINTS if name not in given)
            raise ValidationError({missing: "Issuer and both endpoints are entered together, or none."})
        if self.sealed_secret and not self.issuer:
            raise ValidationError(
                {"issuer": "A secret is for one authorization server: save without it, see which was found."}
            )
        for name in (*ENDPOINTS, "revocation_endpoint"):
            if (address := getattr(self, name)) and (problem := refused(address)):
                raise ValidationError({name: f"This address is refused: {problem}."})

    def _clean_exchange(self) -> None:
        """Raises ValidationError for a sign-in that is not the organization's, and an address to which no
        token may go.
        """
        own = IdentityProvider.objects.filter(pk=self.exchange_at, organization_id=self.organization_id)  # type: ignore[attr-defined]
        if not own.exists() and not (self.exchange_at == INSTALLATION and settings.OIDC):
            raise ValidationError({"exchange_at": "There is no such provider in this organization."})
        if problem := refused(self.url):  # type: ignore[attr-defined]
            raise ValidationError({"url": f"This address is refused: {problem}."})

    def bound_to(self) -> str:
        """What authorizations are made for, as a digest: they count for nothing else."""
        exchange = (self.exchange_at, self.audience, str(self.with_actor)) if self.exchange_at else ()
        revoked_at = (self.revocation_endpoint,) if self.revocation_endpoint else ()  # it is sent tokens, too
        return digest(
            *(self.url, str(self.as_person), self.client_id, self.scopes, self.issuer, self.resource),  # type: ignore[attr-defined]
            *(self.authorization_endpoint, self.token_endpoint, *exchange, *revoked_at),
        )


def refused(address: str) -> str:
    """Why Deputy neither asks this address nor sends people there; empty where it may. What is public has
    TLS; what is not, the operator has named (MCP_ALLOW).
    """
    try:
        parts = urlsplit(address)
        check(address, allow_private=frozenset(settings.MCP_ALLOW))
    except OutboundError as error:
        if error.code != NOT_RESOLVED:
            return error.message
    except ValueError:
        return "it is none"
    if parts.fragment:
        return "it has a fragment"
    if parts.scheme != "https" and parts.netloc not in settings.MCP_ALLOW:
        return "it does not start with https://"
    return ""


class ConnectedAccount(Created):
    """A person's authorization of Deputy at an MCP server: tokens, encrypted, that go with their runs' calls.

    `bound_to` is the digest of the server's address and settings that they were made for. One that has been
    disconnected (`ended_at`) is not used any more, and goes once it has been revoked. `declined`: the person
    does not want their sign-in exchanged for this server, and there are no tokens.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.connected_account_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    server = models.ForeignKey(
        "runs.McpServer", on_delete=models.CASCADE, related_name="accounts", db_index=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    sealed_access = models.TextField()
    sealed_refresh = models.TextField(blank=True)
    expires_at = models.DateTimeField(null=True)
    scopes = models.CharField(max_length=1000, blank=True)
    bound_to = models.CharField(max_length=64)
    ended_at = models.DateTimeField(null=True)
    declined = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name = "connected account"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["server", "user"], condition=Q(ended_at=None), name="connected_account_once"
            ),
        ]
        indexes = [models.Index(fields=["organization", "user"], name="connected_account_of")]

    def __str__(self) -> str:
        return f"{self.user} at {self.server}"
