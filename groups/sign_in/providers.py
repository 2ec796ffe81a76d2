"""The providers of identities: each organization's own, and the installation's, by environment."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.urls import reverse

from groups.models import IdentityProvider, Organization
from groups.models.providers import INSTALLATION


@dataclass(frozen=True)
class Installation:
    """The provider of settings.OIDC. It vouches for people everywhere; the operator trusts it."""

    name: str
    issuer: str
    client_id: str
    secret: str = field(repr=False)
    scopes: str
    groups_claim: str
    rules: list[dict[str, Any]]
    default_role: str
    domains: list[str]
    only: bool
    organization: str  # its slug; where the groups make people members
    makes_accounts: bool = True
    pk: str = INSTALLATION


Provider = IdentityProvider | Installation


def installation() -> Installation | None:
    """The provider that the environment names, or None."""
    return Installation(**settings.OIDC) if settings.OIDC else None


def find(provider_id: str) -> Provider | None:
    """The active provider of this id, or None."""
    if provider_id == INSTALLATION:
        return installation()
    return IdentityProvider.objects.filter(pk=provider_id, active=True).first()


def of_organization(slug: str) -> list[IdentityProvider]:
    return list(IdentityProvider.objects.filter(organization__slug=slug, active=True).order_by("name"))


def home_of(provider: Provider) -> Organization | None:
    """The organization whose members the provider's groups arrange, or None."""
    if isinstance(provider, IdentityProvider):
        return provider.organization
    slug = provider.organization if isinstance(provider, Installation) else ""
    return Organization.objects.filter(slug=slug).first() if slug else None


def rules_of(organization_id: str | None) -> list[dict[str, Any]]:
    """The rules by which providers make people members of the organization, whichever provider has them."""
    own = IdentityProvider.objects.filter(organization_id=organization_id).values_list("rules", flat=True)
    one = installation()
    home = home_of(one) if one else None
    theirs = one.rules if one and home and home.pk == organization_id else []
    return [rule for rules in (*own, theirs) for rule in rules]


def ways(request: Any) -> list[dict[str, str]]:
    """What the door offers besides a password: the installation's provider. An organization's own stand on
    its own door, so that the names of organizations are nobody else's to read.
    """
    one = installation()
    return [link(one, str(request.GET.get("next", "")))] if one else []


def link(provider: Provider, after: str = "") -> dict[str, str]:
    address, connect = (reverse(name, args=[provider.pk]) for name in ("oidc_begin", "oidc_connect"))
    to = f"{address}?{urlencode({'next': after})}" if after else address
    return {"name": provider.name, "address": to, "connect": connect}


def connectable(user: Any, organization_id: str) -> list[dict[str, str]]:
    """The providers that somebody may connect their account with and has not."""
    own = IdentityProvider.objects.filter(organization_id=organization_id, active=True)
    found: list[Provider] = [] if user.is_superuser else list(own.order_by("name"))
    if one := installation():
        found.append(one)
    if not found:
        return []
    linked = set(SocialAccount.objects.filter(user=user).values_list("provider", flat=True))
    return [link(each) for each in found if each.pk not in linked]
