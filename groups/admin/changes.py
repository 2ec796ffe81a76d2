"""What was changed: for those who look after the organization."""

import json
from typing import Any

from django.contrib import admin
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.paginator import InfinitePaginator

from groups import members
from groups.models import Change

from .tenancy import History, ListedFromReplica, Related, TenantAdmin


@admin.register(Change)
class ChangeAdmin(ListedFromReplica, History, TenantAdmin):
    """Of accounts that belong to no organization, superusers see them."""

    fixed = ()
    paginator = InfinitePaginator
    list_display = ("created_at", "label", "model", "action", "by", "via", "fields_shown")
    list_display_links = ("label",)
    list_filter = (
        ("action", ChoicesDropdownFilter),
        ("via", ChoicesDropdownFilter),
        ("organization", Related),
    )
    list_select_related = ("organization",)
    search_fields = ("label", "by", "object_id__exact", "model")
    ordering = ("-id",)
    fields = readonly_fields = (
        *("created_at", "label", "model", "object_id", "action", "by", "via", "token"),
        *("was", "now", "organization"),
    )
    empty_message = gettext_lazy("Nothing has been changed yet.")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_view_permission(request, obj)) and members.whole(request.user)

    @admin.display(description=gettext_lazy("Fields"))
    def fields_shown(self, change: Change) -> str:
        return ", ".join(sorted(change.after or change.before)[:5])

    @admin.display(description=gettext_lazy("Before"))
    def was(self, change: Change) -> SafeString:
        return written(change.before)

    @admin.display(description=gettext_lazy("After"))
    def now(self, change: Change) -> SafeString:
        return written(change.after)


def written(values: Any) -> SafeString:
    text = json.dumps(values, indent=2, ensure_ascii=False, sort_keys=True, cls=DjangoJSONEncoder)
    return format_html('<pre class="dp-pre">{}</pre>', text if values else "–")
