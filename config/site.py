"""The admin's site: unfold's, without what no page of Deputy shows."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin import sites
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme
from unfold.apps import DefaultAppConfig
from unfold.sites import UnfoldAdminSite


class Site(UnfoldAdminSite):
    def get_urls(self) -> Any:
        """Without the one that looks up a row of any kind for its public page: Deputy's rows have none."""
        return [one for one in super().get_urls() if getattr(one, "name", "") != "view_on_site"]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Django's list of all applications, made where somebody looks at it: the sidebar is our own."""
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))

    def login(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """There is one door: that of people's own pages. Who is no administrator is told so behind it."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied
        after = own_address(request) or reverse("admin:index")
        if request.user.is_authenticated:
            return redirect(after)
        return redirect(f"{reverse('account_login')}?{urlencode({REDIRECT_FIELD_NAME: after})}")

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return redirect("account_change_password")


def own_address(request: HttpRequest) -> str:
    """Where the request wants to go next, if that is a page of Deputy's."""
    wanted = request.GET.get(REDIRECT_FIELD_NAME, "")
    own = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure())
    return wanted if own else ""


class Unfold(DefaultAppConfig):
    """unfold, with this site."""

    default = False

    def ready(self) -> None:
        admin.site = sites.site = Site()
