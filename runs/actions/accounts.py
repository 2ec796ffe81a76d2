"""A person connects their own account at a server, or their sign-in is exchanged for it; and ends that."""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from common import sealed
from groups import changes
from groups.models.providers import asked_as
from groups.sign_in import exchange, kept, providers
from groups.sign_in.providers import Provider
from runs.models import ConnectedAccount, McpServer
from runs.queue import put
from runs.tools.mcp import accounts, grants

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listed:
    """A server that is asked in people's own names, and what somebody has there.

    `provider`: whose sign-in is exchanged for it; None where people connect accounts. `connected`: calls go
    in the person's name. `declined`: they do not want that. `account` is None where there is none yet.
    """

    server: McpServer
    provider: Provider | None
    connected: bool
    declined: bool
    account: ConnectedAccount | None

    @property
    def since(self) -> datetime | None:
        return self.account.created_at if self.account and self.connected else None

    @property
    def scopes(self) -> list[str]:
        return self.account.scopes.split() if self.account and self.connected else []


def offered(organization_id: str) -> QuerySet[McpServer]:
    """The servers at which people of the organization can connect their accounts."""
    found = McpServer.objects.filter(organization_id=organization_id, as_person=True, enabled=True)
    return found.exclude(issuer="", exchange_at="").order_by("name")


def of(user: Any, organization_id: str) -> QuerySet[ConnectedAccount]:
    """The user's connected accounts in the organization."""
    mine = ConnectedAccount.objects.filter(organization_id=organization_id, user=user, ended_at=None)
    return mine.select_related("server").order_by("server__name")


def listed(user: Any, organization_id: str) -> list[Listed]:
    """Every server of the organization that is asked in people's own names, as it is for this user: what
    their page and the API show.
    """
    mine = {one.server_id: one for one in of(user, organization_id)}
    there = {one.pk: one for one in offered(organization_id)}
    theirs = {one.server_id: one.server for one in mine.values() if one.bound_to == one.server.bound_to()}
    servers = sorted({**theirs, **there}.values(), key=lambda server: server.name)
    return [_listed(server, user, mine.get(server.pk)) for server in servers]


def ending(user: Any, organization_id: str, server_id: str) -> McpServer | None:
    """The server, where the user has something to disconnect."""
    kept = of(user, organization_id).filter(server=server_id, declined=False).first()
    if kept is not None:
        return kept.server
    found = (one.server for one in listed(user, organization_id) if one.connected)
    return next((server for server in found if server.pk == server_id), None)


def _listed(server: McpServer, user: Any, account: ConnectedAccount | None) -> Listed:
    declined = bool(server.exchange_at and account and account.declined)
    good = account if account and not account.declined and account.bound_to == server.bound_to() else None
    if not server.exchange_at:
        return Listed(server, None, good is not None, False, good)
    connected = not declined and accounts.signed_in_at(server, user.pk) is not None
    return Listed(server, accounts.provider_of(server), connected, declined, good if connected else None)


def connect(server: McpServer, user: Any, tokens: grants.Tokens) -> ConnectedAccount:
    """Keep what the person was granted; what they had before ends. Their calls that wait for it go on."""
    with transaction.atomic():
        accounts.hold(server.pk, user.pk)
        _end(ConnectedAccount.objects.filter(server=server, user=user, ended_at=None))
        account = ConnectedAccount(
            organization_id=server.organization_id,
            server=server,
            user=user,
            bound_to=server.bound_to(),
            **{"scopes": server.scopes, **accounts.columns(tokens)},
        )
        account.save()
        _repeat(server, user.pk)
    return account


def _repeat(server: McpServer, user_id: int) -> None:
    """The person's calls that wait for the server are made again once the transaction has ended."""
    about = (server.organization_id, str(user_id), accounts.need(server.pk))
    put.enqueue_task("repeat_calls", *about, turn=put.for_people(server.organization_id))


def allow(server: McpServer, user: Any) -> None:
    """Take back that the person does not want their sign-in exchanged; their calls that wait go on."""
    with transaction.atomic():
        accounts.hold(server.pk, user.pk)
        _end(ConnectedAccount.objects.filter(server=server, user=user, ended_at=None, declined=True))
        _repeat(server, user.pk)


def disconnect(server: McpServer, user: Any) -> bool:
    """Use it no more, from now on, and have it revoked where it was granted. False where there is none.

    Where sign-ins are exchanged, none of the person's is exchanged for this server until they allow it again.
    """
    with transaction.atomic():
        if server.exchange_at:
            return _decline(server, user)
        return _end(ConnectedAccount.objects.filter(server=server, user=user, ended_at=None))


def _decline(server: McpServer, user: Any) -> bool:
    accounts.hold(server.pk, user.pk)
    mine = ConnectedAccount.objects.filter(server=server, user=user, ended_at=None)
    if mine.filter(declined=True).exists():
        return False
    mine.delete()
    home, bound_to = server.organization_id, server.bound_to()
    ConnectedAccount(organization_id=home, server=server, user=user, bound_to=bound_to, declined=True).save()
    return True


def end(organization_id: str, user_id: int) -> None:
    """What somebody has connected in an organization ends with their membership."""
    with transaction.atomic():
        theirs = ConnectedAccount.objects.filter(organization_id=organization_id, user_id=user_id)
        _end(theirs.filter(ended_at=None))


def _end(found: QuerySet[ConnectedAccount]) -> bool:
    ids = list(found.values_list("pk", "organization_id"))
    with changes.settled():
        changes.update(found, ended_at=Now())
    for account_id, organization_id in ids:
        put.enqueue_task("revoke_account", account_id, turn=put.in_background(organization_id))
    return bool(ids)


def revoke(account_id: str) -> None:
    """Tell the authorization server that an account was disconnected (RFC 7009), once, and forget it.

    Nothing is sent where the server has changed since: its tokens are for nobody else.
    """
    account = ConnectedAccount.objects.select_related("server").filter(pk=account_id).first()
    if account is None or account.ended_at is None:
        return
    server = account.server
    if account.sealed_access and server.revocation_endpoint and account.bound_to == server.bound_to():
        kind = "refresh_token" if account.sealed_refresh else "access_token"
        try:
            token = sealed.unseal(account.sealed_refresh or account.sealed_access)
            grants.revoke(server, token, kind)
        except (grants.Away, grants.NotGranted, sealed.Unreadable) as failed:
            logger.warning("%s could not be revoked at its authorization server: %s", account.pk, failed)
    account.delete()


# Sign-ins that are exchanged (groups/sign_in/kept.py)


def exchanging(provider_id: str) -> QuerySet[McpServer]:
    """The servers whose tokens come in exchange for sign-ins at this provider."""
    return McpServer.objects.filter(exchange_at=provider_id, as_person=True).exclude(exchange_at="")


def is_exchanged(provider_id: str) -> bool:
    return exchanging(provider_id).exists()


def hold_exchanges(provider_id: str, user_id: int) -> None:
    """Until the transaction ends, nobody else finds out whether this person is signed in for them."""
    for server_id in exchanging(provider_id).order_by("id").values_list("pk", flat=True):
        accounts.hold(server_id, user_id)


def repeat_exchanges(provider_id: str, user_id: int) -> None:
    """The person has signed in: their calls that waited for it are made again."""
    for server in exchanging(provider_id).order_by("id"):
        _repeat(server, user_id)


def sign_in_gone(provider_id: str, asked: str, refresh: str) -> None:
    put.enqueue_task("revoke_sign_in", provider_id, asked, refresh)


def revoke_sign_in(provider_id: str, asked: str, refresh: str) -> None:
    """Tell the provider once that the refresh token of a sign-in is used no more; nobody else is told."""
    provider = providers.find(provider_id)
    if provider is None or asked_as(provider) != asked:
        return
    try:
        exchange.revoke(provider, sealed.unseal(refresh))
    except (grants.Away, sealed.Unreadable) as failed:
        logger.warning("a sign-in at %s could not be revoked: %s", provider_id, failed)


EXCHANGER = kept.Exchanger(is_exchanged, hold_exchanges, repeat_exchanges, sign_in_gone)
