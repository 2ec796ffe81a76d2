"""The tokens that somebody's sign-in at a provider brings: kept where something exchanges them, and only
there.

Who exchanges them registers here how to see whether a provider's are used, and is told when somebody's have
come or gone. They end with the membership, with the provider's own logout (back-channel), with the identity's
link to the account, and with the last use of the provider's.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest

from common import sealed
from common.token_endpoint import NotGranted, Tokens, tokens_of
from groups.models import IdentityProvider, KeptSignIn
from groups.models.providers import asked_as
from groups.sign_in.providers import Provider, find

log = logging.getLogger(__name__)

BROUGHT = "deputy_brought"  # the session's key: what a sign-in has brought that is not complete yet
OFFLINE = (
    "offline_access"  # the scope by which a provider is asked for a refresh token (OpenID Connect Core, 11)
)


@dataclass(frozen=True)
class Exchanger:
    """Who exchanges the tokens of sign-ins.

    `used`: whether a provider's are. `hold`: until the transaction ends, nobody else finds out whether a
    person's are there. `came`: they are there, once the transaction ends. `gone`: a refresh token (encrypted)
    of this provider, got as its digest says, is used no more. Users are named by id.
    """

    used: Callable[[str], bool]
    hold: Callable[[str, int], None]
    came: Callable[[str, int], None]
    gone: Callable[[str, str, str], None]


_exchangers: list[Exchanger] = []


def register(exchanger: Exchanger) -> None:
    _exchangers[:] = [exchanger]


def is_used(provider: Provider) -> bool:
    """Whether something is exchanged for this provider's sign-ins."""
    return _is_used(provider.pk)


def _is_used(provider_id: str) -> bool:
    return any(one.used(provider_id) for one in _exchangers)


def scopes(provider: Provider, described: dict[str, Any]) -> str:
    """What a sign-in asks for: also a refresh token, where one is used and the provider offers it."""
    wanted = provider.scopes or "openid"
    offered = described.get("scopes_supported")
    if OFFLINE in wanted.split() or not isinstance(offered, list) or OFFLINE not in offered:
        return wanted
    return f"{wanted} {OFFLINE}" if is_used(provider) else wanted


def bring(
    request: HttpRequest, provider: Provider, claims: dict[str, Any], brought: dict[str, Any], user: Any
) -> None:
    """Note in the session what a sign-in has brought, encrypted, until it is complete: a second factor may be
    asked for first. `brought`: the token endpoint's answer.
    """
    request.session.pop(BROUGHT, None)
    if not is_used(provider):
        return
    try:
        tokens = tokens_of(brought)
    except NotGranted as no:
        log.warning("a sign-in by provider %s brought nothing to exchange: %s", provider.pk, no.reason)
        return
    request.session[BROUGHT] = {
        "user": user.pk,
        "provider": provider.pk,
        "asked_as": asked_as(provider),
        "subject": str(claims["sub"]),
        "session": str(claims.get("sid") or "")[:255],
        **sealed_columns(tokens),
        "seconds": tokens.seconds,
    }


def keep(request: HttpRequest, user: Any) -> None:
    """The sign-in is complete: what it has brought takes the place of what an earlier one did."""
    told = request.session.pop(BROUGHT, None)
    if not isinstance(told, dict) or told.pop("user") != user.pk:
        return
    provider = find(told["provider"])
    if provider is None or told["asked_as"] != asked_as(provider) or not is_used(provider):
        return
    seconds = told.pop("seconds")
    lasts = None if seconds is None else Now() + timedelta(seconds=seconds)
    home = provider.organization_id if isinstance(provider, IdentityProvider) else None
    now = {**told, "expires_at": lasts, "organization_id": home}
    with transaction.atomic():
        for one in _exchangers:
            one.hold(provider.pk, user.pk)
        KeptSignIn.objects.update_or_create(provider=provider.pk, user=user, defaults=now)
        for one in _exchangers:
            one.came(provider.pk, user.pk)


def sealed_columns(tokens: Tokens) -> dict[str, str]:
    """The columns that keep them, encrypted."""
    return {
        "sealed_access": sealed.seal(tokens.access),
        "sealed_refresh": sealed.seal(tokens.refresh) if tokens.refresh else "",
    }


def of(provider: Provider, user_id: int) -> QuerySet[KeptSignIn]:
    """The person's kept sign-in at the provider as it is now, while the identity is linked to the account;
    one row at most.
    """
    mine = KeptSignIn.objects.filter(provider=provider.pk, user_id=user_id, asked_as=asked_as(provider))
    linked = SocialAccount.objects.filter(provider=provider.pk, user_id=user_id).values("uid")
    return mine.filter(subject__in=linked)


def end(rows: QuerySet[KeptSignIn]) -> int:
    """Use these no more, from now on; how many there were."""
    with transaction.atomic():
        found = list(rows.select_for_update(of=("self",)))
        for row in found:
            for one in _exchangers if row.sealed_refresh else ():
                one.gone(row.provider, row.asked_as, row.sealed_refresh)
        return int(KeptSignIn.objects.filter(pk__in=[row.pk for row in found]).delete()[0])


def end_of_member(organization_id: str, user_id: int) -> int:
    """With a membership end the person's sign-ins that the organization could use: its own provider's, and
    that of the installation's, which other organizations ask for anew.
    """
    mine = KeptSignIn.objects.filter(user_id=user_id)
    return end(mine.filter(organization_id=organization_id)) + end(mine.filter(organization_id=None))


def end_at_logout(provider: Provider, claims: dict[str, Any]) -> int:
    """What the provider says has ended: one session of its (`sid`), or all of somebody's."""
    told = KeptSignIn.objects.filter(provider=provider.pk)
    subject, session = str(claims.get("sub") or ""), str(claims.get("sid") or "")[:255]
    if subject:
        told = told.filter(subject=subject)
    if session:  # a sign-in that named no session ends with any of the person's
        told = told.filter(Q(session=session) | Q(session="") if subject else Q(session=session))
    return end(told)


def end_all_unused() -> int:
    """What nothing is exchanged for any more goes."""
    known = KeptSignIn.objects.values_list("provider", flat=True).distinct()
    unused = [provider for provider in known if not _is_used(provider)]
    return end(KeptSignIn.objects.filter(provider__in=unused)) if unused else 0
