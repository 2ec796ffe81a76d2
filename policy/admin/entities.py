"""What applications of the organization protect, as far as rules and searches speak of it."""

from django.contrib import admin
from django.utils.translation import gettext_lazy

from groups.admin.tenancy import NothingTakenForm, Related, TenantAdmin
from policy.models import OutsideEntity


@admin.register(OutsideEntity)
class OutsideEntityAdmin(TenantAdmin):
    form = NothingTakenForm  # the model says what else is wrong
    list_display = ("type", "identifier", "organization")
    list_filter = ("type", ("organization", Related))
    list_select_related = ("organization",)
    search_fields = ("type", "identifier")
    ordering = ("type", "identifier")
    autocomplete_fields = ("organization",)
    empty_message = gettext_lazy(
        "No outside entity yet. Add what your own applications ask policy about, such as records."
    )
