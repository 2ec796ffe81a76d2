"""A person connects their own account at a server, and disconnects it."""

import logging
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from common import sealed
from groups import changes
from runs.models import ConnectedAccount, McpServer
from runs.queue import put
from runs.tools.mcp import accounts, grants

logger = logging.getLogger(__name__)


def offered(organization_id: str) -> QuerySet[McpServer]:
    """The servers at which people of the organization can connect their accounts."""
    found = McpServer.objects.filter(organization_id=organization_id, as_person=True, enabled=True)
    return found.exclude(issuer="").order_by("name")


def of(user: Any, organization_id: str) -> QuerySet[ConnectedAccount]:
    """The user's connected accounts in the organization."""
    mine = ConnectedAccount.objects.filter(organization_id=organization_id, user=user, ended_at=None)
    return mine.select_related("server").order_by("server__name")


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
        about = (server.organization_id, str(user.pk), accounts.need(server.pk))
        put.enqueue_task("repeat_calls", *about, turn=put.for_people(server.organization_id))
    return account


def disconnect(server: McpServer, user: Any) -> bool:
    """Use it no more, from now on, and have it revoked where it was granted. False where there is none."""
    with transaction.atomic():
        return _end(ConnectedAccount.objects.filter(server=server, user=user, ended_at=None))


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
    if server.revocation_endpoint and account.bound_to == server.bound_to():
        kind = "refresh_token" if account.sealed_refresh else "access_token"
        try:
            token = sealed.unseal(account.sealed_refresh or account.sealed_access)
            grants.revoke(server, token, kind)
        except (grants.Away, grants.NotGranted, sealed.Unreadable) as failed:
            logger.warning("%s could not be revoked at its authorization server: %s", account.pk, failed)
    account.delete()
