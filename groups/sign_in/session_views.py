"""One's own sessions: where one is signed in, and ending that."""

from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from groups import accounts


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def listed(request: HttpRequest) -> HttpResponse:
    """List the sessions; a POST ends one of them, or all but this one."""
    if request.method == "POST":
        _end(request, request.POST.get("end", ""))
        messages.success(request, _("Ended."))
        return redirect("account_sessions")
    user: Any = request.user
    found = sorted(UserSession.objects.purge_and_list(user), key=lambda one: one.created_at, reverse=True)
    return render(request, "account/sessions.html", {"sessions": found})


def _end(request: HttpRequest, which: str) -> None:
    user: Any = request.user
    if which == "others":
        accounts.end_sessions(user, but=request.session.session_key)
        return
    one = UserSession.objects.filter(user=user, pk=which if which.isdigit() else None).first()
    if one is None:
        raise Http404
    one.end()
