"""The authorization with which calls go to a server in a person's own name: found, refreshed, or missing.

Always that of whoever the run works for. A token is used only for what it was made for (`bound_to`). It is
what the person has connected, or comes in exchange for their sign-in at a provider (RFC 8693).
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now

from common import sealed
from common.db import patiently, row
from common.links import link
from groups.models import IdentityProvider, Membership
from groups.sign_in import exchange, kept, providers
from groups.sign_in.providers import Provider
from runs.models import ConnectedAccount, McpServer
from runs.tools.base import WaitFor
from runs.tools.mcp import grants
from runs.tools.mcp.client import McpError, Unauthorized

logger = logging.getLogger(__name__)

T = TypeVar("T")

KIND = "account"  # of what calls need (runs/gate/repeats.py)
EARLY = timedelta(seconds=60)  # that a token is refreshed before it expires
PATIENCE = 15.0  # seconds that another's refreshing is waited for
WAITS = timedelta(days=7)  # for the person to connect their account
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.account ' || %s || ' ' || %s, 0))"
FRESH = ExpressionWrapper(Q(expires_at=None) | Q(expires_at__gt=Now() + EARLY), output_field=BooleanField())


class NotConnected(Exception):
    """The person has not connected an account, or their authorization does not count any more."""


def need(server_id: str) -> str:
    """What a call needs of its person that has to go to this server in their name."""
    return f"{KIND}:{server_id}"


def hold(server_id: str, user_id: int) -> None:
    """Until the transaction ends, nobody else connects this account, or looks whether it is connected."""
    row(ONE_AT_A_TIME, [server_id, str(user_id)])


def is_connected(organization_id: str, user_id: int, server_id: str) -> bool:
    """Whether the need is met (runs/gate/repeats.py)."""
    hold(server_id, user_id)
    server = McpServer.objects.filter(pk=server_id, organization_id=organization_id).first()
    return server is not None and (not server.as_person or is_there(server, user_id))


def is_there(server: McpServer, user_id: int) -> bool:
    """Whether calls to the server can go in this person's name."""
    if server.exchange_at:
        return not is_declined(server, user_id) and signed_in_at(server, user_id) is not None
    return bool(usable(server, user_id).exists())


def is_declined(server: McpServer, user_id: int) -> bool:
    """Whether the person does not want their sign-in exchanged for this server."""
    mine = ConnectedAccount.objects.filter(server=server, user_id=user_id, ended_at=None)
    return bool(mine.filter(declined=True).exists())


def provider_of(server: McpServer) -> Provider | None:
    """Where people sign in whose sign-ins are exchanged for this server. No other organization's."""
    found = providers.find(server.exchange_at)
    if isinstance(found, IdentityProvider) and found.organization_id != server.organization_id:
        return None
    return found


def signed_in_at(server: McpServer, user_id: int) -> Provider | None:
    """The provider, where the person's sign-in there is kept."""
    found = provider_of(server)
    return found if found is not None and kept.of(found, user_id).exists() else None


def usable(server: McpServer, user_id: int) -> Any:
    """The person's authorization, made for the server as it is now; one row at most."""
    mine = ConnectedAccount.objects.filter(server=server, user_id=user_id, ended_at=None, declined=False)
    return mine.filter(bound_to=server.bound_to()).annotate(fresh=FRESH)


def calling(server: McpServer, user_id: int, ask: Callable[[str], T]) -> T:
    """What `ask` answers with the person's token. One that the server refuses is refreshed once.

    Raises NotConnected, McpError.
    """
    token = bearer(server, user_id)
    try:
        return ask(token)
    except Unauthorized:
        token = bearer(server, user_id, refused=token)
    try:
        return ask(token)
    except Unauthorized:
        drop(server, user_id, token)
        if server.exchange_at:  # nothing that the person could do would get another
            raise
        raise NotConnected from None


def bearer(server: McpServer, user_id: int, refused: str = "") -> str:
    """The person's access token, a new one where it is about to expire, or is the one that was refused.

    Raises NotConnected, McpError (OAUTH_AWAY, MCP_SECRETS, EXCHANGE_REFUSED).
    """
    if server.exchange_at:
        return _in_exchange(server, user_id, refused)
    account = usable(server, user_id).first()
    if account is None:
        raise NotConnected
    if account.fresh and not refused:
        return _opened(account, account.sealed_access)
    return patiently(lambda: _refreshed(server, user_id, refused), PATIENCE)


def _refreshed(server: McpServer, user_id: int, refused: str) -> str:
    """Whoever has the row asks; the others find what it got: a refresh token is often good for one use."""
    gone = False
    with transaction.atomic():
        account = usable(server, user_id).select_for_update(of=("self",), no_key=True).first()
        if account is None:
            raise NotConnected
        try:
            if account.fresh and (access := sealed.unseal(account.sealed_access)) != refused:
                return access
            if not account.sealed_refresh:
                raise grants.NotGranted("there is no refresh token")
            tokens = grants.refresh(server, sealed.unseal(account.sealed_refresh))
        except sealed.Unreadable:
            account.delete()
            gone = True
        except grants.NotGranted as no:
            logger.info("%s cannot be refreshed: %s", account.pk, no.reason)
            account.delete()
            gone = True
        except grants.Away as away:
            said = f"The authorization server of '{server}' cannot be asked now: {away.reason}."
            raise McpError("OAUTH_AWAY", said) from None
        else:
            ConnectedAccount.objects.filter(pk=account.pk).update(**columns(tokens))
    if gone:  # outside: the row has to stay deleted
        raise NotConnected
    return tokens.access


def _in_exchange(server: McpServer, user_id: int, refused: str) -> str:
    """A token that came in exchange for the person's sign-in: the last one while it lasts, or a new one."""
    provider = None if is_declined(server, user_id) else signed_in_at(server, user_id)
    if provider is None:
        raise NotConnected
    account = usable(server, user_id).first()
    if account is not None and account.fresh:
        with suppress(sealed.Unreadable):
            if (access := sealed.unseal(account.sealed_access)) != refused:
                return access
    try:
        tokens = exchange.exchanged(provider, user_id, _target(server))
    except exchange.SignInAgain as again:
        logger.info("nothing is exchanged for %s's sign-in at %s: %s", user_id, provider.pk, again.reason)
        raise NotConnected from None
    except grants.NotGranted as no:
        said = f"'{provider.name}' gives Deputy no token for '{server}': {no.reason}. Ask an administrator."
        raise McpError("EXCHANGE_REFUSED", said) from None
    except grants.Away as away:
        said = f"The authorization server of '{server}' cannot be asked now: {away.reason}."
        raise McpError("OAUTH_AWAY", said) from None
    _keep(server, user_id, tokens)
    return tokens.access


def _target(server: McpServer) -> exchange.Target:
    return exchange.Target(grants.resource(server), server.audience, server.scopes, server.with_actor)


def _keep(server: McpServer, user_id: int, tokens: grants.Tokens) -> None:
    """Keep it for the next calls. Raises NotConnected where it is not the person's to use by now."""
    member = Membership.objects.filter(organization_id=server.organization_id, user_id=user_id, active=True)
    with transaction.atomic():
        hold(server.pk, user_id)
        if not member.exists() or is_declined(server, user_id):
            raise NotConnected
        now = {**columns(tokens), "bound_to": server.bound_to()}
        mine = ConnectedAccount.objects.filter(server=server, user_id=user_id, ended_at=None)
        if not mine.update(**now):
            home = server.organization_id
            ConnectedAccount(organization_id=home, server=server, user_id=user_id, **now).save()


def columns(tokens: grants.Tokens) -> dict[str, Any]:
    """The columns that keep them."""
    lasts = None if tokens.seconds is None else Now() + timedelta(seconds=tokens.seconds)
    kept = {
        "sealed_access": sealed.seal(tokens.access),
        "sealed_refresh": sealed.seal(tokens.refresh) if tokens.refresh else "",
        "expires_at": lasts,
    }
    return {**kept, "scopes": tokens.scopes} if tokens.scopes else kept


def drop(server: McpServer, user_id: int, token: str) -> None:
    """The server does not accept this token any more; another that has come meanwhile stays."""
    with transaction.atomic():
        account = usable(server, user_id).select_for_update(of=("self",), no_key=True).first()
        if account is not None and _opened(account, account.sealed_access) == token:
            account.delete()


def _opened(account: ConnectedAccount, text: str) -> str:
    """The token; one that cannot be read any more is as good as gone."""
    try:
        return sealed.unseal(text)
    except sealed.Unreadable:
        account.delete()
        raise NotConnected from None


def wanted(server: McpServer, tool: str, run_id: str) -> WaitFor:
    """The call waits until its person has connected their account."""
    to = f"{link('web:account', server.pk)}?run={run_id}"
    provider = provider_of(server) if server.exchange_at else None
    first = f"Sign in at '{provider.name}' again" if provider else f"Connect your account at '{server}'"
    words = f"{first}, so that '{tool}' can be called in your name: {to}"
    return WaitFor("input", words, WAITS, key=need(server.pk), repeats=True, link=to)
