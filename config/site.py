"""The admin's site: unfold's, without what no page of Deputy shows."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin import sites
from django.http import HttpRequest
from django.urls import path
from django.utils.functional import SimpleLazyObject
from unfold.apps import DefaultAppConfig
from unfold.sites import UnfoldAdminSite


class Site(UnfoldAdminSite):  # type: ignore[misc]
    def get_urls(self) -> list[Any]:
        from groups.admin.confirm import confirm_view

        return [path("confirm/", self.admin_view(confirm_view), name="confirm"), *super().get_urls()]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Django's list of all applications, made where somebody looks at it: the sidebar is our own."""
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))


class Unfold(DefaultAppConfig):  # type: ignore[misc]
    """unfold, with this site."""

    default = False

    def ready(self) -> None:
        admin.site = sites.site = Site()
