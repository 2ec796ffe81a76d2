"""The admin's site: unfold's, without what no page of Deputy shows."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin import sites
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from unfold.apps import DefaultAppConfig
from unfold.sites import UnfoldAdminSite


class Site(UnfoldAdminSite):  # type: ignore[misc]
    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Django's list of all applications, made where somebody looks at it: the sidebar is our own."""
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))

    def login(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The sign-in page. What is refused for its pace is refused as such (groups/sign_in.py)."""
        from groups import sign_in  # its form wants the applications

        return sign_in.answered(request, super().login(request, extra_context))


class Unfold(DefaultAppConfig):  # type: ignore[misc]
    """unfold, with this site."""

    default = False

    def ready(self) -> None:
        admin.site = sites.site = Site()
