"""My access: the person's own accounts at servers that are asked in their name; to a provider and back."""

import logging
import secrets
from typing import Any
from urllib.parse import urlsplit

from allauth.socialaccount.models import SocialAccount
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from common import csp
from common.db import row
from groups import current
from groups.sign_in import providers
from runs.actions import accounts
from runs.models import McpServer
from runs.tools.mcp import accounts as authorizations
from runs.tools.mcp import grants
from runs.web import access, pages
from runs.web.access import MemberRequest, member

log = logging.getLogger(__name__)

STATES = "deputy_accounts"  # the session's key: what has been begun and not finished
MOST = 5  # flows begun side by side in one browser
STATE_SECONDS = 600


class Refused(Exception):
    """Nothing was connected. `reason`: a few words for the log, nothing secret in them."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@never_cache
@require_safe
@member
def account(request: MemberRequest, server_id: str) -> HttpResponse:
    """Whom the person would authorize Deputy at, for what, and the way there."""
    server = _server(request, server_id)
    run = _run(request, request.GET.get("run", ""))
    if server.exchange_at:
        return _by_sign_in(request, server, run)
    mine = accounts.of(request.user, server.organization_id).filter(declined=False)
    context = {
        "server": server,
        "account": mine.filter(server=server).first(),
        "host": urlsplit(server.url).netloc,
        "provider": urlsplit(server.authorization_endpoint).netloc,
        "scopes": server.scopes.split(),
        "run": run,
        "here": "settings",
    }
    answer = pages.page(request, "web/account.html", context)
    to = urlsplit(server.authorization_endpoint)
    answer.headers[csp.HEADER] = csp.with_forms_to(f"{to.scheme}://{to.netloc}")
    return answer


def _by_sign_in(request: MemberRequest, server: McpServer, run: str) -> HttpResponse:
    """What the person's sign-in is exchanged for; what it takes: to sign in again, or to allow it again."""
    found = authorizations.provider_of(server)
    if found is None:
        raise Http404
    context = {
        "server": server,
        "host": urlsplit(server.url).netloc,
        "provider": found,
        "scopes": server.scopes.split(),
        "signed_in": authorizations.signed_in_at(server, request.user.pk) is not None,
        "declined": authorizations.is_declined(server, request.user.pk),
        "linked": SocialAccount.objects.filter(provider=found.pk, user=request.user).exists(),
        "way": providers.link(found, _after(request, run)),
        "run": run,
        "here": "settings",
    }
    return pages.page(request, "web/account_by_sign_in.html", context)


@never_cache
@require_POST
@member
def connect(request: MemberRequest, server_id: str) -> HttpResponse:
    """Send the browser to the server's authorization server, with a state that is this session's alone. Where
    the person's sign-in is exchanged, that is allowed again.
    """
    server = _server(request, server_id)
    if server.exchange_at:
        accounts.allow(server, request.user)
        return redirect(_after(request, request.POST.get("run", "")))
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    flows = dict(list(_flows(request).items())[-(MOST - 1) :])
    flows[state] = {
        "server": server.pk,
        "bound_to": server.bound_to(),
        "verifier": verifier,
        "user": request.user.pk,
        "run": _run(request, request.POST.get("run", "")),
        "at": _now(),
    }
    request.session[STATES] = flows
    return redirect(grants.authorization_address(server, state, verifier))


@never_cache
@require_safe
@member
def callback(request: MemberRequest, server_id: str) -> HttpResponse:
    """Back from the authorization server: check what it says, and keep what it grants."""
    try:
        flow = _flow(request)
        server = _server(request, server_id)
        _check(request, server, flow)
        tokens = grants.redeem(server, request.GET["code"], flow["verifier"])
    except (Refused, grants.NotGranted, grants.Away) as refused:
        log.warning("connecting an account at %r was refused: %s", server_id[:40], refused.reason)
        said = _("Your account was not connected: {why}.").format(why=_shown(refused))
        messages.error(request, said)
        return redirect("web:settings")
    accounts.connect(server, request.user, tokens)
    messages.success(request, _("Your account at {server} is connected.").format(server=server))
    return redirect(_after(request, flow["run"]))


@require_POST
@member
def disconnect(request: MemberRequest, server_id: str) -> HttpResponse:
    server = accounts.ending(request.user, request.membership.organization_id, server_id)
    if server is None:
        raise Http404
    accounts.disconnect(server, request.user)
    messages.success(request, _("Disconnected; it stopped being used at once."))
    return redirect("web:settings")


def _shown(refused: Refused | grants.NotGranted | grants.Away) -> str:
    """Why nothing was connected, for the person."""
    if isinstance(refused, grants.Away):
        return _("the authorization server cannot be asked now")
    if isinstance(refused, grants.NotGranted):
        return _("the authorization server refused")
    return _(refused.reason)


def _server(request: MemberRequest, server_id: str) -> McpServer:
    """The server, in whichever of the person's organizations it is. Raises Http404."""
    for membership in (request.membership, *request.memberships):
        found = accounts.offered(membership.organization_id).filter(pk=server_id).first()
        if found is not None:
            access.enter(request, membership)
            current.stand(request.user, membership)
            return found
    raise Http404


def _run(request: MemberRequest, run_id: str) -> str:
    """The person's run that waits for it, to go back to; empty for any other."""
    return run_id if run_id and access.own_runs(request).filter(pk=run_id).exists() else ""


def _after(request: MemberRequest, run_id: str) -> str:
    """The page to go on to: the conversation that waits for it, or My access."""
    run = access.own_runs(request).filter(pk=run_id).first() if run_id else None
    return reverse("web:conversation", args=[run.root_id]) if run else reverse("web:settings")


def _now() -> float:
    """Seconds, by the database's clock."""
    found: float = row("SELECT EXTRACT(epoch FROM clock_timestamp())::float8")[0]
    return found


def _flows(request: HttpRequest) -> dict[str, Any]:
    found = request.session.get(STATES)
    return dict(found) if isinstance(found, dict) else {}


def _flow(request: HttpRequest) -> dict[str, Any]:
    """What was begun under this state, which works once, in the session that got it. Raises Refused."""
    flows = _flows(request)
    flow = flows.pop(request.GET.get("state", ""), None)
    request.session[STATES] = flows
    if flow is None:
        raise Refused(gettext_noop("unknown or used state"))
    if flow["user"] != request.user.pk:
        raise Refused(gettext_noop("begun by somebody else"))
    if _now() - flow["at"] > STATE_SECONDS:
        raise Refused(gettext_noop("expired state"))
    return dict(flow)


def _check(request: HttpRequest, server: McpServer, flow: dict[str, Any]) -> None:
    """RFC 9207: what names another issuer, or none where it has to, was mixed up. Raises Refused."""
    if flow["server"] != server.pk:
        raise Refused(gettext_noop("answer for another server"))
    if flow["bound_to"] != server.bound_to():
        raise Refused(gettext_noop("the server has changed meanwhile"))
    told = request.GET.get("iss")
    if (told is None and server.names_issuer) or (told is not None and told != server.issuer):
        raise Refused(gettext_noop("answer of another authorization server"))
    if "error" in request.GET:
        raise Refused(gettext_noop("the authorization server refused"))
    if not request.GET.get("code"):
        raise Refused(gettext_noop("no code"))
