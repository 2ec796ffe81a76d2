"""My access: tokens, where one is, language, time zone, theme."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE
from django.db import transaction
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django.views.i18n import set_language

from common import cron
from common.limits import TooMany
from groups import changes, current, readers
from groups.models import Token
from groups.scopes import SCOPES
from groups.sign_in import providers
from policy.authority import About, NotAllowed, may_arrange
from runs.actions import accounts
from runs.web import access, doing, pages
from runs.web.access import MemberRequest, member
from runs.web.forms import TokenForm

A_YEAR = 365 * 24 * 3600  # seconds


@require_safe
@member
def settings(request: MemberRequest) -> HttpResponse:
    return _page(request, TokenForm())


def _page(request: MemberRequest, form: TokenForm, secret: str = "", status: int = 200) -> HttpResponse:
    zone = access.time_zone(request)
    context = {
        "form": form,
        "scopes": {name: _(does) for name, does in SCOPES.items()},
        "chosen": request.POST.getlist("scopes") if form.is_bound else ["runs:read"],
        "secret": secret,
        "tokens": list(own_tokens(request).order_by("revoked_at", "-id")[:50]),
        "may_issue": may_issue(request),
        "accounts": accounts.listed(request.user, request.membership.organization_id),
        "connectable": providers.connectable(request.user, request.membership.organization_id),
        "themes": pages.THEMES,
        "zone": str(zone) if zone else "",
        "zones": sorted(cron.zones()),
        "here": "settings",
    }
    return pages.page(request, "web/settings.html", context, status)


def may_issue(request: MemberRequest) -> bool:
    mine = About(request.membership.organization_id, user_id=request.user.pk)
    try:
        may_arrange(request.actor, "add", Token, [mine])
    except NotAllowed:
        return False
    return True


def own_tokens(request: MemberRequest) -> Any:
    return Token.objects.filter(organization_id=request.membership.organization_id, user=request.user)


@require_POST
@member
def issue(request: MemberRequest) -> HttpResponse:
    """A new token; its secret is told in this answer and never again."""
    form = TokenForm(request.POST)
    if not may_issue(request):
        messages.error(request, _("You may not issue tokens: ask an administrator."))
        return _page(request, form, status=403)
    if not form.is_valid():
        messages.error(request, _("No token was issued: give it a name, a scope and an end."))
        return _page(request, form, status=422)
    said = form.cleaned_data
    ends: Any = Now() + timedelta(days=said["days"])  # by the database's clock
    organization = request.membership.organization
    try:
        with transaction.atomic():
            token, secret = Token.objects.issue(
                organization, request.user, said["name"], scopes=said["scopes"], expires_at=ends
            )
            doing.record(request, token, ADDITION)
    except TooMany as refused:
        messages.error(request, refused.messages[0])
        return _page(request, form, status=422)
    return _page(request, TokenForm(), secret)


@require_POST
@member
def revoke(request: MemberRequest, token_id: str) -> HttpResponse:
    token = own_tokens(request).filter(pk=token_id).first()
    if token is None:
        raise Http404
    if changes.update(own_tokens(request).filter(pk=token_id, revoked_at=None), revoked_at=Now()):
        doing.record(request, token, CHANGE)
    messages.success(request, _("Revoked; it stopped working at once."))
    return redirect("web:settings")


@require_POST
@member
def choose(request: MemberRequest) -> HttpResponse:
    """The theme and the time zone of this browser, and the organization of this session."""
    response = redirect(_back(request))
    theme, zone = request.POST.get("theme"), request.POST.get("time_zone")
    if theme in pages.THEMES:
        _keep(response, pages.THEME, theme)
    if zone is not None and (zone == "" or zone in cron.zones()):
        _keep(response, access.TIME_ZONE, zone)
    if chosen := request.POST.get("organization"):
        current.choose(request, chosen)
    return response


@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """The language of this browser; and of what the person is sent, where somebody is signed in."""
    response = set_language(request)
    chosen = request.POST.get("language", "")
    if request.user.is_authenticated and chosen in dict(django_settings.LANGUAGES):
        readers.note(request.user, chosen)
    return response


def _keep(response: HttpResponse, name: str, value: str) -> None:
    secure = django_settings.SESSION_COOKIE_SECURE
    response.set_cookie(name, value, max_age=A_YEAR, samesite="Lax", httponly=True, secure=secure)


def _back(request: MemberRequest) -> str:
    """The page the form stood on, if it is one of ours."""
    to = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(to, {request.get_host()}, request.is_secure())
    return urlsplit(to).path if safe and to.startswith("/") else "/settings/"
