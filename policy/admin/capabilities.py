"""Capabilities and what binds tools to them."""

from django.contrib import admin
from django.utils.translation import gettext_lazy

from groups.admin.tenancy import NothingTakenForm, Related, TenantAdmin
from policy.models import Capability, ToolBinding


@admin.register(Capability)
class CapabilityAdmin(TenantAdmin):
    fixed = ("organization", "name")
    list_display = ("name", "description", "organization")
    list_filter = (("organization", Related),)
    list_select_related = ("organization",)
    search_fields = ("name", "description")
    ordering = ("name",)
    autocomplete_fields = ("organization",)
    empty_message = gettext_lazy(
        "No capability yet. Add what rules should speak about, such as send_email or payment."
    )


@admin.register(ToolBinding)
class ToolBindingAdmin(TenantAdmin):
    form = NothingTakenForm  # the model says what else is wrong
    list_display = ("pattern", "capability", "organization")
    list_filter = (("capability", Related), ("organization", Related))
    list_select_related = ("capability", "organization")
    search_fields = ("pattern", "capability__name")
    ordering = ("pattern",)
    autocomplete_fields = ("organization", "capability")
    empty_message = gettext_lazy(
        "No binding yet. Tools have the capabilities they declare; bindings add to them."
    )
