"""The page on which somebody who is signed in confirms that they are there, by their password."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import authenticate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminPasswordWidget

from groups import actors


class ConfirmForm(forms.Form):
    """The password of whoever is signed in; nobody else's signs them in here."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        super().__init__(*args)
        self.request = request

    def clean_password(self) -> str:
        password = self.cleaned_data["password"]
        user: Any = self.request.user
        found = authenticate(self.request, username=user.get_username(), password=password)
        if found is None or found.pk != user.pk:
            raise forms.ValidationError(_("This is not your password."))
        return str(password)


@never_cache
def confirm_view(request: HttpRequest) -> HttpResponse:
    """Ask for the password; the session then counts as confirmed for CONFIRMED_SECONDS."""
    form = ConfirmForm(request, request.POST or None)
    after = request.POST.get("next") or request.GET.get("next", "")
    if request.method == "POST" and form.is_valid():
        actors.confirm(request)
        return redirect(_safe(request, after))
    context = {
        **admin.site.each_context(request),
        "title": _("Confirm your password"),
        "form": form,
        "next": _safe(request, after),
    }
    return TemplateResponse(request, "admin/confirm.html", context)


def _safe(request: HttpRequest, address: str) -> str:
    """The address where it is Deputy's own, else the first page."""
    own = url_has_allowed_host_and_scheme(address, {request.get_host()}, request.is_secure())
    return address if own else reverse("admin:index")
