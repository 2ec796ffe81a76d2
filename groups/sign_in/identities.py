"""Whom a provider's claims mean here, and what they are made of here: accounts, links, memberships.

An identity is the provider and the subject (`sub`), never an e-mail address. An organization's provider
vouches for people in that organization alone: the session it opens sees nothing else, is never a
superuser's, and changes nothing about how the account signs in (groups/sign_in/sessions.py).
"""

import logging
import re
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q

from common.db import execute
from groups import changes
from groups.models import (
    Change,
    ChangeAction,
    CustomRole,
    IdentityProvider,
    MemberRole,
    Membership,
    Project,
)
from groups.models.organizations import MembershipKind
from groups.models.providers import INSTALLATION
from groups.sign_in.addresses import had, is_plain, is_same, lowered, only_saying, owners
from groups.sign_in.openid import Refused
from groups.sign_in.providers import Provider, home_of

log = logging.getLogger(__name__)
User = get_user_model()
ANYBODY = {  # issuers of people of no one organization
    "https://accounts.google.com",
    "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
    "https://appleid.apple.com",
    "https://gitlab.com",
}
ASKED = ("issuer", "client_id", "sealed_secret")  # of a provider's entry: whom it has Deputy ask, and as whom
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.identity ' || %s, 0))"
NAME = re.compile(r"[^\w.+-]")


@transaction.atomic
def of(provider: Provider, claims: dict[str, Any]) -> Any:
    """The claims' account, made where there is none, with the membership its groups make. Raises Refused."""
    subject = str(claims["sub"])
    provider = _as_it_is(provider)
    address = vouched_address(provider, claims)
    _one_at_a_time(provider, subject, address)
    link = SocialAccount.objects.filter(provider=provider.pk, uid=subject).select_related("user").first()
    user = link.user if link else _owner_of_address(provider, address)
    if user is not None and user.is_superuser and isinstance(provider, IdentityProvider):
        raise Refused("a superuser signs in by no organization's provider")
    if user is not None and not user.is_active:
        raise Refused("the account is not active")
    if user is None:
        if not _open_to(provider, claims):
            raise Refused("an e-mail address the provider may not vouch for")
        if wanted(provider, claims) is None:
            raise Refused("in no group that makes a member")
        if not provider.makes_accounts:
            raise Refused("no account is connected to this identity, and the provider makes none")
        user = _made(provider, claims)
    with changes.acting(user):
        if link is None:
            link = SocialAccount.objects.create(provider=provider.pk, uid=subject, user=user)
        _keep(link, address)
        arrange(provider, claims, user)
    return user


@transaction.atomic
def connect(provider: Provider, subject: str, address: str, user: Any) -> None:
    """Link the identity, and the address that the provider vouches for, to the account of who is signed in.
    Raises Refused.
    """
    provider = _as_it_is(provider)
    if isinstance(provider, IdentityProvider) and (user.is_superuser or not _member(provider, user)):
        raise Refused("an organization's provider is connected by its members")
    _one_at_a_time(provider, subject, address)
    link, _ = SocialAccount.objects.get_or_create(provider=provider.pk, uid=subject, defaults={"user": user})
    if link.user_id != user.pk:
        raise Refused("the identity is connected to another account")
    _keep(link, address)


def _as_it_is(provider: Provider) -> Provider:
    """The provider's entry by now, held until the end: it may have been changed while the provider was asked.
    Raises Refused where another was asked than it names.
    """
    if not isinstance(provider, IdentityProvider):
        return provider
    entry = (
        IdentityProvider.objects.select_for_update(no_key=True).filter(pk=provider.pk, active=True).first()
    )
    if entry is None or any(getattr(entry, name) != getattr(provider, name) for name in ASKED):
        raise Refused("the provider's entry has been changed meanwhile")
    return entry


def _one_at_a_time(provider: Provider, subject: str, address: str) -> None:
    """Whoever comes in twice at once is one person: hold the identity and its address until the end."""
    for one in sorted({f"{provider.pk} {subject}", lowered(address)} - {""}):
        execute(ONE_AT_A_TIME, [one])


def _keep(link: SocialAccount, address: str) -> None:
    """Note the addresses that the identity has come with."""
    kept = {"email": address, "emails": sorted({*_kept(link), lowered(address)})}
    if address and kept != link.extra_data:
        SocialAccount.objects.filter(pk=link.pk).update(extra_data=kept)


def _kept(link: SocialAccount) -> set[str]:
    """`email` alone was noted by versions before."""
    last = link.extra_data.get("email", "")
    return {lowered(last), *link.extra_data.get("emails", ())} - {""}


def _owner_of_address(provider: Provider, address: str) -> Any:
    """The one account that has the e-mail address, which the provider vouches for; None where there is none.
    An organization's provider finds only people of the organization.

    Raises Refused for an address of somebody who is here and cannot be meant: another account would give them
    a second vote, or bring back who was closed.
    """
    if not address:
        return None
    theirs = owners(address)
    now, earlier = _identified(provider, address)
    people = (*_people(provider, theirs), *now)
    found = list({user.pk: user for user in people}.values())
    if len(found) > 1:
        raise Refused("several accounts have the e-mail address")
    if not found:
        before = list(User.objects.filter(pk__in=had(address)))
        if _have_left(provider, [*theirs, *before]):
            raise Refused("an account that has left the organization has the e-mail address")
        if earlier or _people(provider, before):
            raise Refused("an account had the e-mail address: sign in to it and connect this identity")
        if _people(provider, only_saying(address)):
            raise Refused("an account has not shown that the e-mail address is its own")
        return None
    (user,) = found
    if user.is_superuser and not isinstance(provider, IdentityProvider):
        raise Refused("a superuser connects the identity by hand")
    if SocialAccount.objects.filter(provider=provider.pk, user=user).exists():
        raise Refused("the account is connected to another identity")
    return user


def _people(provider: Provider, users: list[Any]) -> list[Any]:
    """Those whom the provider may find: of an organization's, its members, whether switched on or off."""
    if not isinstance(provider, IdentityProvider):
        return users
    human = Membership.objects.filter(organization_id=provider.organization_id, kind=MembershipKind.HUMAN)
    there = set(human.filter(user__in=users).values_list("user_id", flat=True))
    return [user for user in users if user.pk in there]


def _identified(provider: Provider, address: str) -> tuple[list[Any], list[Any]]:
    """The accounts that an identity is connected to which came with this address last, or earlier: at a
    provider that the same home has or had; at the installation's, of those whom the provider may find.
    """
    home = home_of(provider)
    gone = Change.objects.filter(model=IdentityProvider._meta.label_lower, organization=home)
    there = IdentityProvider.objects.filter(organization=home)
    own = {provider.pk, *there.values_list("pk", flat=True), *gone.values_list("object_id", flat=True)}
    came_with = Q(extra_data__email__iexact=address) | Q(extra_data__emails__contains=[lowered(address)])
    links = SocialAccount.objects.filter(came_with, provider__in=[*own, INSTALLATION]).select_related("user")
    may_find = _people(provider, [link.user for link in links if link.provider not in own])
    found: tuple[list[Any], list[Any]] = ([], [])
    for link in links:
        if link.provider not in own and link.user not in may_find:
            continue
        if is_same(link.extra_data["email"], address):
            found[0].append(link.user)
        elif lowered(address) in _kept(link):
            found[1].append(link.user)
    return found


def _have_left(provider: Provider, users: list[Any]) -> bool:
    """Whether one of them was a member of the organization and is none, by the record of changes."""
    if not isinstance(provider, IdentityProvider):
        return False
    places = Membership.objects.filter(organization_id=provider.organization_id)
    gone = {user.pk for user in users} - set(places.filter(user__in=users).values_list("user_id", flat=True))
    removed = Change.objects.filter(
        organization_id=provider.organization_id,
        model=Membership._meta.label_lower,
        action=ChangeAction.REMOVED,
        before__user_id__in=list(gone),
    )
    return bool(gone) and removed.exists()


def _member(provider: IdentityProvider, user: Any) -> bool:
    found = Membership.objects.filter(organization_id=provider.organization_id, user=user, active=True)
    return found.filter(kind=MembershipKind.HUMAN).exists()


def vouched_address(provider: Provider, claims: dict[str, Any]) -> str:
    """The claims' e-mail address where it is verified and of one of the provider's domains, else nothing."""
    address = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(address, str) or len(address) > 254:
        return ""
    domain = lowered(address.rpartition("@")[2])
    return address if is_plain(address) and domain in map(lowered, provider.domains) else ""


def _made(provider: Provider, claims: dict[str, Any]) -> Any:
    """A new account without a password. Its name says whose provider made it, so that it is nobody else's."""
    wanted = str(claims.get("preferred_username") or claims.get("email") or claims["sub"]).split("@")[0]
    home = home_of(provider)
    at = f"@{home.slug}" if home and isinstance(provider, IdentityProvider) else ""
    base = NAME.sub("", wanted)[: 140 - len(at)] or "person"
    execute(ONE_AT_A_TIME, [f"named {base.casefold()}{at}"])
    names = (f"{base}{number or ''}{at}" for number in range(10_000))
    name = next(name for name in names if not User.objects.filter(username__iexact=name).exists())
    address = vouched_address(provider, claims)
    taken = bool(address) and User.objects.filter(email__iexact=address).exists()
    with changes.acting(None):
        user = User(username=name, email="" if taken else address)
        user.first_name = str(claims.get("given_name") or "")[:150]
        user.last_name = str(claims.get("family_name") or "")[:150]
        user.set_unusable_password()
        user.save()
    log.info("account %s made for an identity of provider %s", user.pk, provider.pk)
    return user


def _open_to(provider: Provider, claims: dict[str, Any]) -> bool:
    """Whether somebody new may come: where domains are named, with an address in them. Issuers at which
    anybody has an account are trusted for their named domains only.
    """
    if not provider.domains:
        return provider.issuer not in ANYBODY
    return bool(vouched_address(provider, claims))


def groups_of(provider: Provider, claims: dict[str, Any]) -> set[str]:
    told = claims.get(provider.groups_claim) if provider.groups_claim else None
    return (
        {str(one) for one in told} if isinstance(told, list) else {told} if isinstance(told, str) else set()
    )


def wanted(provider: Provider, claims: dict[str, Any]) -> dict[str, Any] | None:
    """The rule that fits somebody; None where they are to be no member. `{}`: administrators arrange it."""
    if not provider.rules and not provider.default_role:
        return {}
    theirs = groups_of(provider, claims)
    for rule in provider.rules:
        if rule["group"] in theirs:
            return dict(rule)
    return {"role": provider.default_role, "projects": None} if provider.default_role else None


def arrange(provider: Provider, claims: dict[str, Any], user: Any) -> None:
    """Make the membership what the provider's groups say now; at every sign-in, so that taking away works.

    What the groups say was settled with the provider's entry.
    """
    with changes.settled():
        _arrange(provider, claims, user)


def _arrange(provider: Provider, claims: dict[str, Any], user: Any) -> None:
    home, rule = home_of(provider), wanted(provider, claims)
    if home is None or rule == {}:
        return
    places = Membership.objects.select_for_update(no_key=True).filter(organization=home, user=user)
    found = places.first()
    if found is not None and found.kind != MembershipKind.HUMAN:
        raise Refused("a service account signs in by no provider")
    if rule is None:
        if found is not None and found.active:
            found.active = False
            found.save()
        return
    if (found is None or not found.active) and _ended_by_another(home.pk, user):
        raise Refused("an administrator has ended the membership: they give it back")
    role, custom = _role(home.pk, rule["role"])
    projects = _projects(home.pk, rule.get("projects"))
    now = {"role": role, "custom_role": custom, "projects": projects, "active": True}
    if found is None:
        Membership.objects.create(organization=home, user=user, **now)
    elif any(getattr(found, name) != value for name, value in now.items()):
        for name, value in now.items():
            setattr(found, name, value)
        found.save()


def _ended_by_another(organization_id: str, user: Any) -> bool:
    """Whether somebody has switched the user's membership off, or removed it, and no sign-in, which does so
    where the provider says no more of them.
    """
    own = Change.objects.filter(organization_id=organization_id, model=Membership._meta.label_lower)
    theirs = Q(before__user_id=user.pk) | Q(after__user_id=user.pk)
    known = {*own.filter(theirs).values_list("object_id", flat=True)}
    known.update(
        Membership.objects.filter(organization_id=organization_id, user=user).values_list("pk", flat=True)
    )
    ended = Q(action=ChangeAction.REMOVED) | Q(after__active=False)
    again = Q(after__active=True)
    last = own.filter(ended | again, object_id__in=known).order_by("-id").first()
    return last is not None and last.after.get("active") is not True and last.user_id != user.pk


def _role(organization_id: str, name: str) -> tuple[str, CustomRole | None]:
    if name in MemberRole.values:
        return name, None
    custom = CustomRole.objects.filter(organization_id=organization_id, name=name).first()
    if custom is None:
        raise Refused("a rule of the provider names a role there is not")
    return MemberRole.MEMBER, custom


def _projects(organization_id: str, slugs: list[str] | None) -> list[str] | None:
    """Ids of the projects that are still there; a list of projects that are gone is an empty one."""
    if slugs is None:
        return None
    there = Project.objects.filter(organization_id=organization_id, slug__in=slugs)
    return sorted(there.values_list("pk", flat=True))


def is_of(provider: Provider, claims: dict[str, Any], user: Any) -> bool:
    """Whether the claims are about the account's own identity."""
    return is_of_user(provider, str(claims["sub"]), user.pk)


def is_of_user(provider: Provider, subject: str, user_id: Any) -> bool:
    return bool(SocialAccount.objects.filter(provider=provider.pk, uid=subject, user_id=user_id).exists())
