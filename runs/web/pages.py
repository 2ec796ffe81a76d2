"""What every page of these has: the conversations beside it, what waits, the reader's theme."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy

from groups.sign_in import providers
from runs.web import access, conversations
from runs.web.access import MemberRequest

BRAND = "Deputy"
DEMO_ACCOUNTS = "demo.txt"  # in DEPUTY_HOME; `make run` writes it (launch/prepare.py)
NOWHERE = "common.mail.PrivateFiles"
THEME = "theme"  # the cookie
THEMES = {
    "auto": gettext_lazy("As the system"),
    "light": gettext_lazy("Light"),
    "dark": gettext_lazy("Dark"),
}


def theme(request: HttpRequest) -> dict[str, Any]:
    """For every template: what this is called, and the theme the reader chose in this browser."""
    chosen = request.COOKIES.get(THEME, "")
    return {"brand": BRAND, "theme": chosen if chosen in THEMES else "auto"}


def door(request: HttpRequest) -> dict[str, Any]:
    """For the sign-in page: what this installation offers there."""
    if getattr(request.resolver_match, "url_name", "") != "account_login":
        return {}
    demo = (settings.DEPUTY_HOME / DEMO_ACCOUNTS).exists()
    return {
        "demo_accounts": DEMO_ACCOUNTS if demo else "",
        "mail_works": settings.EMAIL_BACKEND != NOWHERE,
        "ways": providers.ways(request),
    }


def page(
    request: MemberRequest,
    template: str,
    context: dict[str, Any] | None = None,
    status: int = 200,
    listed_before: tuple[list[conversations.Listed], bool] | None = None,
) -> HttpResponse:
    """The page with what stands beside all of them; `listed_before`: the list, where a view has read it."""
    context = context or {}
    listed, more = listed_before or conversations.listed(request)
    beside = {
        "membership": request.membership,
        "memberships": request.memberships,
        "conversations": listed,
        "more_conversations": more,
        "waiting": waiting(request, listed),
        "here": "",
    }
    return render(request, template, {**beside, **context}, status=status)


def waiting(request: MemberRequest, listed: list[conversations.Listed] | None = None) -> dict[str, int]:
    """How much waits for this person, or is new to them."""
    listed = conversations.listed(request)[0] if listed is None else listed
    decide, questions = access.count_to_decide(request), access.own_waits(request).count()
    return {
        "decide": decide,
        "questions": questions,
        "unseen": sum(one.unseen for one in listed),
        "count": decide + questions,
    }
