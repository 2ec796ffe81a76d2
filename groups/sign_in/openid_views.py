"""The pages on the way to a provider of identities and back."""

import logging
import time
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.contrib.auth import logout as end_session
from django.contrib.sessions.models import Session
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from groups import actors
from groups.sign_in import identities, kept, openid, pace, providers, sessions
from groups.sign_in.openid import Refused
from groups.sign_in.providers import Provider

log = logging.getLogger(__name__)
CONNECTING = "deputy_connecting"  # the session's key: the identity that somebody is asked about


@never_cache
@require_safe
def door(request: HttpRequest, organization: str) -> HttpResponse:
    """An organization's own door. One that has no provider looks like one that is not there."""
    found = providers.of_organization(organization)
    if not found:
        raise Http404
    ways = [providers.link(one, _own(request, request.GET.get("next", ""))) for one in found]
    return render(
        request, "account/organization_door.html", {"ways": ways, "organization": found[0].organization}
    )


@never_cache
@require_safe
def begin(request: HttpRequest, provider_id: str, purpose: str = "login") -> HttpResponse:
    """Send the browser to the provider: to sign in, to connect an account, or to confirm that it is you."""
    provider = _provider(provider_id)
    after = _own(request, request.GET.get("next", ""))
    if purpose != "login" and not request.user.is_authenticated:
        return redirect("account_login")
    if purpose == "connect" and not actors.is_confirmed(request):
        return redirect(f"{reverse('web:confirm')}?next={request.get_full_path()}")
    try:
        pace_begin(request)
        return redirect(openid.begin(request, provider, purpose, after))
    except Refused as refused:
        return _refused(request, provider, refused)


def pace_begin(request: HttpRequest) -> None:
    """Take one of the address's attempts. Raises Refused."""
    if left := pace.buckets(request, "")[0].take():
        pace.refuse(request, left)
        raise Refused("too many attempts")


@never_cache
@require_safe
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Back from the provider: check what it says, and do what was begun."""
    provider = _provider(provider_id)
    try:
        begun, claims, brought = openid.finish(request, provider)
        if begun.purpose == "login":
            return _sign_in(request, provider, claims, brought, begun)
        if begun.user is None or begun.user != request.user.pk:
            raise Refused("begun by somebody else")
        if begun.purpose == "connect":
            return _connect(request, provider, claims)
        return _confirm(request, provider, claims, begun)
    except Refused as refused:
        return _refused(request, provider, refused)


def _sign_in(
    request: HttpRequest,
    provider: Provider,
    claims: dict[str, Any],
    brought: dict[str, Any],
    begun: openid.Begun,
) -> HttpResponse:
    user = identities.of(provider, claims)
    if request.user.is_authenticated:
        end_session(request)
    sessions.enter(request, provider, claims, user)
    kept.bring(request, provider, claims, brought, user)
    record_authentication(request, user, "socialaccount", provider=provider.pk, uid=str(claims["sub"]))
    answer: HttpResponse = perform_login(request, user, redirect_url=begun.after or reverse("web:home"))
    return answer


def _connect(request: HttpRequest, provider: Provider, claims: dict[str, Any]) -> HttpResponse:
    if sessions.through(request.session, request.user) or not actors.is_confirmed(request):
        raise Refused("not confirmed")
    request.session[CONNECTING] = {
        "provider": provider.pk,
        "sub": str(claims["sub"]),
        "address": identities.vouched_address(provider, claims),
        "at": time.time(),
    }
    told = claims.get("email") or claims.get("preferred_username") or claims["sub"]
    return render(request, "account/connect.html", {"provider": provider, "identity": str(told)[:200]})


@never_cache
@require_POST
def connected(request: HttpRequest, provider_id: str) -> HttpResponse:
    """The person has seen which identity it is, and wants it: whoever led them here has not pressed that."""
    provider, told = _provider(provider_id), request.session.pop(CONNECTING, None)
    try:
        if not request.user.is_authenticated or told is None or told["provider"] != provider.pk:
            raise Refused("nothing to connect")
        if time.time() - told["at"] > openid.STATE_SECONDS or not actors.is_confirmed(request):
            raise Refused("not confirmed")
        identities.connect(provider, told["sub"], told["address"], request.user)
    except Refused as refused:
        return _refused(request, provider, refused)
    return redirect("web:settings")


def _confirm(
    request: HttpRequest, provider: Provider, claims: dict[str, Any], begun: openid.Begun
) -> HttpResponse:
    how = sessions.through(request.session, request.user)
    if how is None or how.provider != provider.pk:
        raise Refused("another provider than signed in")
    if not identities.is_of(provider, claims, request.user):
        raise Refused("somebody else")
    if not sessions.confirm(request, provider, claims, begun.at):
        raise Refused("the provider does not say that the person has just signed in")
    return redirect(begun.after or reverse("web:home"))


@csrf_exempt
@never_cache
@require_POST
def logout(request: HttpRequest, provider_id: str) -> HttpResponse:
    """OpenID Connect Back-Channel Logout 1.0: end what the provider opened for this person or session, and
    what their sign-in left here.
    """
    provider = _provider(provider_id)
    try:
        pace_logout(request)
        claims = openid.logout_claims(provider, request.POST.get("logout_token", ""))
    except pace.TooMany:
        return HttpResponse(status=429)
    except Refused as refused:
        log.warning("a logout by provider %s was refused: %s", provider.pk, refused.reason)
        return HttpResponse(status=400)
    ended = [
        row.pk
        for row in sessions.that_may_be(provider, claims)
        if _is_of(row.get_decoded(), provider, claims)
    ]
    Session.objects.filter(pk__in=ended).delete()
    kept.end_at_logout(provider, claims)
    pace.forgive_logout(request)
    return HttpResponse(status=200)


def pace_logout(request: HttpRequest) -> None:
    """Take one of the address's attempts. Raises TooMany."""
    if left := pace.of_logout(request).take():
        raise pace.refuse(request, left)


def _is_of(session: dict[str, Any], provider: Provider, claims: dict[str, Any]) -> bool:
    told = session.get(sessions.THROUGH) or {}
    if told.get("provider") != provider.pk:
        return False
    if claims.get("sid"):
        return bool(told.get("sid") == claims["sid"])
    return identities.is_of_user(provider, str(claims["sub"]), told.get("user"))


def _provider(provider_id: str) -> Provider:
    found = providers.find(provider_id)
    if found is None:
        raise Http404
    return found


def _own(request: HttpRequest, address: str) -> str:
    """The path where it is a page of Deputy's, else nothing."""
    own = url_has_allowed_host_and_scheme(address, {request.get_host()}, request.is_secure())
    return address if own and not urlsplit(address).netloc else ""


def _refused(request: HttpRequest, provider: Provider, refused: Refused) -> HttpResponse:
    """A page that says so, and a line in the log that says why."""
    address = get_adapter().get_client_ip(request)
    log.warning("a sign-in by provider %s from %s was refused: %s", provider.pk, address, refused.reason)
    context = {"provider": provider, "reason": refused.reason}
    return render(request, "account/provider_refused.html", context, status=403)
