"""What every page of these has: the conversations beside it, what waits, the reader's theme."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy

from runs.web import access, conversations
from runs.web.access import MemberRequest

BRAND = "Deputy"
THEME = "theme"  # the cookie
THEMES = {
    "auto": gettext_lazy("As the system"),
    "light": gettext_lazy("Light"),
    "dark": gettext_lazy("Dark"),
}


def theme(request: HttpRequest) -> dict[str, str]:
    """For every template: what this is called, and the theme the reader chose in this browser."""
    chosen = request.COOKIES.get(THEME, "")
    return {"brand": BRAND, "theme": chosen if chosen in THEMES else "auto"}


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
