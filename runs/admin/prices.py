"""What models cost: reached from the page of models, which shows it."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy

from groups.admin.tenancy import OneOrganizationForm, Related, TenantAdmin
from runs.models import ModelPrice


@admin.register(ModelPrice)
class ModelPriceAdmin(TenantAdmin):
    form = OneOrganizationForm
    fixed = ("organization", "model")
    list_display = ("model", "organization", "input_price", "output_price", "currency")
    list_filter = (("organization", Related),)
    list_select_related = ("organization",)
    search_fields = ("model",)
    ordering = ("model",)
    autocomplete_fields = ("organization",)
    fields = ("organization", "model", "input_price", "output_price", "currency")
    empty_message = gettext_lazy("No price is set. With prices, runs say what they have cost.")

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponse:
        return redirect(f"{reverse('admin:runs_models')}?organization={obj.organization_id}")

    response_post_save_change = response_post_save_add
