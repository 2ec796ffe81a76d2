"""The page of who decided what, and its exports; for those whose projects, runs or decisions they are."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from unfold.widgets import UnfoldAdminTextInputWidget

from groups.actors import actors_of
from groups.admin.tenancy import sight
from runs.deciding import decided as page
from runs.models import ApprovalDecision
from runs.observe import decided


class DecidedForm(page.DecidedForm):
    """Its fields as the admin draws them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget = UnfoldAdminTextInputWidget(field.widget.attrs)


class DecidedPages:
    """Adds the pages to an admin class."""

    admin_site: admin.AdminSite

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("decided/", wrap(require_safe(self.decided_view)), name="runs_decided"),
            path("decided/export/", wrap(require_safe(self.decided_export)), name="runs_decided_export"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def decided_view(self, request: HttpRequest) -> HttpResponse:
        """Who decided what, the newest first."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("Who decided what"),
            **page.listed(request, self._decided_form(request), self._decisions(request)),
        }
        return TemplateResponse(request, "admin/runs/approval/decided.html", context)

    def decided_export(self, request: HttpRequest) -> StreamingHttpResponse:
        """The same, all of them, as a file."""
        return page.export(request, self._decided_form(request), self._decisions(request))

    def _decided_form(self, request: HttpRequest) -> DecidedForm:
        if not request.user.has_perm("runs.view_approval"):
            raise PermissionDenied
        return DecidedForm(request.GET)

    def _decisions(self, request: HttpRequest) -> QuerySet[ApprovalDecision]:
        if sight(request).everything:
            return ApprovalDecision.objects.all()
        found = ApprovalDecision.objects.none()
        for actor in actors_of(request):
            found = found | decided.seen(actor)
        return found
