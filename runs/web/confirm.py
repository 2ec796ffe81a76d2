"""The pages that take a password: to sign in, and to confirm that whoever is signed in is there.

Deciders need not be staff, so the second is no page of the admin; the admin's pages lead here too.
"""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache

from groups import actors, sign_in


class SignIn(LoginView):
    """The door to people's own pages. What is refused for its pace is refused as such (groups/sign_in.py)."""

    form_class = sign_in.MemberSignInForm
    template_name = "web/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        answer: HttpResponse = sign_in.answered(request, super().post(request, *args, **kwargs))
        return answer


class ConfirmForm(forms.Form):
    """The password of whoever is signed in; nobody else's signs them in here."""

    password = forms.CharField(label=gettext_lazy("Password"), strip=False, max_length=4096)

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        super().__init__(*args)
        self.request = request

    def clean_password(self) -> str:
        password = self.cleaned_data["password"]
        user: Any = self.request.user
        name = user.get_username()

        def look() -> None:
            found = authenticate(self.request, username=name, password=password)
            if found is None or found.pk != user.pk:
                raise forms.ValidationError(_("This is not your password."))

        sign_in.paced(self.request, name, look)
        return str(password)


@never_cache
@login_required
def confirm(request: HttpRequest) -> HttpResponse:
    """Ask for the password; the session then counts as confirmed for CONFIRMED_SECONDS."""
    form = ConfirmForm(request, request.POST or None)
    after = request.POST.get("next") or request.GET.get("next", "")
    if request.method == "POST" and form.is_valid():
        actors.confirm(request)
        return redirect(_safe(request, after))
    return render(request, "web/confirm.html", {"form": form, "next": _safe(request, after)})


def _safe(request: HttpRequest, address: str) -> str:
    """The address where it is Deputy's own, else the first page."""
    own = url_has_allowed_host_and_scheme(address, {request.get_host()}, request.is_secure())
    return address if own else reverse("web:home")
