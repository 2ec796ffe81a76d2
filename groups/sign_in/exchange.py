"""RFC 8693: a person's own sign-in, exchanged at its provider for a token of one server and nothing else.

The person's tokens go to their provider's token endpoint alone, as its own configuration names it, and
what comes back is looked at before it is used: whom it is for, and who acts.
"""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now

from common import sealed, token_endpoint
from common.db import patiently
from common.token_endpoint import Away, Client, NotGranted, Tokens
from groups.models import KeptSignIn
from groups.sign_in import kept, openid
from groups.sign_in.openid import Refused
from groups.sign_in.providers import Provider

log = logging.getLogger(__name__)

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
ISSUED = (ACCESS, "urn:ietf:params:oauth:token-type:jwt", "")  # what is taken for an access token
EARLY = timedelta(seconds=30)  # that the person's token is refreshed before it expires
PATIENCE = 15.0  # seconds that another's refreshing is waited for
SHORT, LONGEST = 300, 3600  # seconds that a token is used: where nobody says how long it lasts; at most
# What signing in again would not mend: Deputy's client at the provider, or what is asked for, is not allowed.
UNMENDED = {
    "invalid_client",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_target",
    "invalid_scope",
}
FRESH = ExpressionWrapper(Q(expires_at=None) | Q(expires_at__gt=Now() + EARLY), output_field=BooleanField())


class SignInAgain(Exception):
    """The person has to sign in at the provider first. `reason`: words for the log, nothing secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Target:
    """What a token is asked for: by the name that the provider has for it (`audience`), or else by its
    address (`resource`). `actor`: Deputy's own token goes with it, and the token has to name who acts
    (`act`).
    """

    resource: str
    audience: str
    scopes: str
    actor: bool

    @property
    def wanted(self) -> str:
        return self.audience or self.resource


def exchanged(provider: Provider, user_id: int, target: Target) -> Tokens:
    """A token of the person's for the target, which lasts an hour at most; there is no refresh token.

    Raises SignInAgain; NotGranted where that would not help; Away.
    """
    described = _described(provider)
    mine = _access(provider, described, user_id)
    try:
        try:
            tokens = _asked(provider, described, mine, target)
        except NotGranted as no:
            if no.code in UNMENDED:
                raise
            mine = _access(
                provider, described, user_id, refused=mine
            )  # it may have been revoked before its time
            tokens = _asked(provider, described, mine, target)
    except NotGranted as no:
        if no.code in UNMENDED:
            raise
        _forget(provider, user_id, mine)
        raise SignInAgain(no.reason) from None
    _check(provider, described, tokens, target)
    seconds = SHORT if tokens.seconds is None else min(tokens.seconds, LONGEST)
    return replace(tokens, refresh="", seconds=seconds)


def revoke(provider: Provider, refresh: str) -> None:
    """Tell the provider that a kept refresh token is not used any more (RFC 7009). Raises Away."""
    address = _described(provider).get("revocation_endpoint")
    if isinstance(address, str) and address:
        token_endpoint.revoke(_client(provider), _safe(provider, address), refresh, "refresh_token")


def _asked(provider: Provider, described: dict[str, Any], mine: str, target: Target) -> Tokens:
    told = {"grant_type": GRANT, "subject_token": mine, "subject_token_type": ACCESS}
    told |= {"requested_token_type": ACCESS}
    told |= {"audience": target.audience} if target.audience else {"resource": target.resource}
    if target.scopes:
        told["scope"] = target.scopes
    if target.actor:
        told |= {"actor_token": _own(provider, described), "actor_token_type": ACCESS}
    return token_endpoint.granted(_client(provider), described["token_endpoint"], told)


def _own(provider: Provider, described: dict[str, Any]) -> str:
    """Deputy's own token there. Raises NotGranted, which is no matter of the person's; Away."""
    try:
        told = {"grant_type": "client_credentials"}
        return token_endpoint.granted(_client(provider), described["token_endpoint"], told).access
    except NotGranted as no:
        raise NotGranted(f"Deputy gets no token of its own: {no.reason}", "unauthorized_client") from None


def _check(provider: Provider, described: dict[str, Any], tokens: Tokens, target: Target) -> None:
    """Whether the token is for the target alone and names who acts. Raises NotGranted, Away."""
    if tokens.issued not in ISSUED:
        raise NotGranted("it gave no access token in exchange")
    claims = _claims(provider, described, tokens.access)
    told = claims.get("aud")
    if told != target.wanted and told != [target.wanted]:
        raise NotGranted("it gave a token that is for somebody else, too, or for nobody in particular")
    acts = claims.get("act")
    if target.actor and not (isinstance(acts, dict) and acts.get("sub")):
        raise NotGranted("it gave a token that does not name who acts")


def _claims(provider: Provider, described: dict[str, Any], token: str) -> dict[str, Any]:
    """What the provider says of its token: in it (RFC 9068), or when asked (RFC 7662)."""
    if token.count(".") == 2:
        try:
            return openid.signed(provider, described, token)
        except Refused as refused:
            raise NotGranted(f"it gave a token that cannot be checked: {refused.reason}") from None
    address = described.get("introspection_endpoint")
    if not isinstance(address, str) or not address:
        raise NotGranted("it does not say whom its token is for")
    status, found = token_endpoint.answered(_client(provider), _safe(provider, address), {"token": token})
    if status != 200 or found.get("active") is not True:
        raise NotGranted("it does not say whom its token is for")
    return found


def _access(provider: Provider, described: dict[str, Any], user_id: int, refused: str = "") -> str:
    """The person's own token, refreshed where it is about to expire, or is the one that was refused.

    Raises SignInAgain, Away.
    """
    found = kept.of(provider, user_id).annotate(fresh=FRESH).first()
    if found is None:
        raise SignInAgain("there is no sign-in")
    if found.fresh and not refused:
        try:
            return _opened(found, found.sealed_access)
        except SignInAgain:
            found.delete()
            raise
    return patiently(lambda: _refreshed(provider, described, user_id, refused), PATIENCE)


def _refreshed(provider: Provider, described: dict[str, Any], user_id: int, refused: str) -> str:
    """Whoever has the row asks; the others find what it got: a refresh token is often good for one use."""
    gone: SignInAgain | None = None
    with transaction.atomic():
        rows = kept.of(provider, user_id).annotate(fresh=FRESH)
        found = rows.select_for_update(of=("self",), no_key=True).first()
        if found is None:
            raise SignInAgain("there is no sign-in")
        try:
            if found.fresh and (access := _opened(found, found.sealed_access)) != refused:
                return access
            tokens = _renewed(provider, described, found)
        except SignInAgain as again:
            found.delete()
            gone = again
        else:
            lasts = None if tokens.seconds is None else Now() + timedelta(seconds=tokens.seconds)
            now = kept.sealed_columns(tokens)
            KeptSignIn.objects.filter(pk=found.pk).update(**now, expires_at=lasts)
    if gone is not None:  # outside: the row has to stay deleted
        raise gone
    return tokens.access


def _renewed(provider: Provider, described: dict[str, Any], found: Any) -> Tokens:
    """Raises SignInAgain, Away."""
    if not found.sealed_refresh:
        raise SignInAgain("there is no refresh token")
    old = _opened(found, found.sealed_refresh)
    told = {"grant_type": "refresh_token", "refresh_token": old}
    try:
        tokens = token_endpoint.granted(_client(provider), described["token_endpoint"], told)
    except NotGranted as no:
        raise SignInAgain(no.reason) from None
    return tokens if tokens.refresh else replace(tokens, refresh=old)


def _forget(provider: Provider, user_id: int, mine: str) -> None:
    """The provider exchanges this sign-in for nothing; one that has come meanwhile stays."""
    with transaction.atomic():
        found = kept.of(provider, user_id).select_for_update(of=("self",)).first()
        if found is not None and _opened(found, found.sealed_access) == mine:
            found.delete()


def _opened(found: Any, text: str) -> str:
    try:
        return sealed.unseal(text)
    except sealed.Unreadable:
        raise SignInAgain("it was kept with another key") from None


def _described(provider: Provider) -> dict[str, Any]:
    """Raises Away."""
    try:
        return openid.metadata(provider)
    except Refused as refused:
        raise Away(refused.reason) from None


def _safe(provider: Provider, address: str) -> str:
    """The address, where it is no step back from https. Raises Away."""
    if not address.startswith("https://") and not provider.issuer.startswith("http://"):
        raise Away("an endpoint is not https")
    return address


def _client(provider: Provider) -> Client:
    """Raises Away."""
    try:
        secret = provider.secret
    except sealed.Unreadable:
        raise Away("the client secret cannot be read") from None
    in_body = openid.secret_in_body(_described(provider))
    return Client(provider.client_id, secret, in_body, frozenset(settings.IDENTITY_ALLOW))
