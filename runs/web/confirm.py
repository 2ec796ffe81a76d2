"""To confirm that whoever is signed in is there: with a password, a code, a passkey, or at their provider.

Deciders need not be staff, so this is no page of the admin; the admin's pages lead here too.
"""

from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@never_cache
@login_required
@require_safe
def confirm(request: HttpRequest) -> HttpResponse:
    """Lead to the first page on which this account can confirm itself; the others are linked there. The
    session then counts as confirmed for CONFIRMED_SECONDS.
    """
    ways = get_adapter().get_reauthentication_methods(request.user)
    if not ways:
        return render(request, "web/no_confirmation.html", status=403)
    after = request.GET.get("next", "")
    own = url_has_allowed_host_and_scheme(after, {request.get_host()}, request.is_secure())
    return redirect(f"{ways[0]['url']}?{urlencode({'next': after if own else '/'})}")
