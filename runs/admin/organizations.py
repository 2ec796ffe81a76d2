"""What an organization has in use, on its page in the admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from common import times
from groups.admin.organizations import OrganizationAdmin
from groups.models import Organization
from runs.observe.in_use import in_use

admin.site.unregister(Organization)


@admin.register(Organization)
class OrganizationInUseAdmin(OrganizationAdmin):
    """The tenants, with what each takes of what it shares with the others."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = tuple(super().get_readonly_fields(request, obj))
        return (*fields, "in_use") if obj else fields

    @admin.display(description=gettext_lazy("In use"))
    def in_use(self, organization: Any) -> SafeString:
        found = in_use(organization.pk)
        lines = [
            _("Runs that wait for a worker: {} of {}").format(*found.runs),
            _("Calls of models and tools under way: {} of {}").format(*found.calls),
            _storage(*found.size, found.measured_at),
            _("Streams and waiting requests of this web process: {} of {}").format(*found.streams),
        ]
        return format_html_join("", "<div>{}</div>", [(line,) for line in lines])


def _storage(size: int | None, most: int | None, measured_at: Any) -> str:
    if size is None:
        return _("Storage: not measured yet")
    shown, when = filesizeformat(size), times.ago(measured_at)
    if most is None:
        return format_html(_("Storage: {size}, without a limit ({when})"), size=shown, when=when)
    return format_html(
        _("Storage: {size} of {most} ({when})"), size=shown, most=filesizeformat(most), when=when
    )
