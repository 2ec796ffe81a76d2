"""What tools' values are worth: as declared, as inferred, and as an admin corrects it."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy

from groups.admin.tenancy import NothingTakenForm, Related, TenantAdmin, sight
from groups.models import Organization
from policy import tools
from policy.models import ToolDeclaration
from policy.provenance.infer import Declaration


@dataclass(frozen=True)
class Stated:
    """One tool's declaration as the page lists it."""

    tool: str
    declaration: Declaration
    correction: str  # the id of the correction, if there is one

    @property
    def steering(self) -> str:
        return ", ".join(sorted(self.declaration.steering))

    @property
    def fields(self) -> list[tuple[str, str]]:
        return sorted(self.declaration.fields.items())


@admin.register(ToolDeclaration)
class ToolDeclarationAdmin(TenantAdmin):
    """A correction is made for one tool; the page lists what holds for every tool."""

    form = NothingTakenForm  # the model says what else is wrong
    list_display = ("tool", "output_trust", "steering", "effect", "organization")
    list_filter = ("output_trust", ("organization", Related))
    list_select_related = ("organization",)
    search_fields = ("tool",)
    ordering = ("tool",)
    autocomplete_fields = ("organization",)
    list_after_template = "admin/policy/tooldeclaration/stated.html"
    empty_message = gettext_lazy(
        "No correction yet: what tools declare, or what was inferred of them, holds."
    )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        shown = {"stated": stated(request), **(extra_context or {})}
        page: HttpResponse = super().changelist_view(request, shown)
        return page


def stated(request: HttpRequest) -> list[Stated]:
    """Every tool of the first organization the person sees, with what holds of its values there."""
    seen = sight(request)
    places = Organization.objects.order_by("id")
    organization = (places if seen.everything else places.filter(pk__in=seen.organizations)).first()
    if organization is None:
        return []
    corrections = {said.tool: said for said in ToolDeclaration.objects.filter(organization=organization)}
    found = []
    for name, facts in sorted(tools.tools(organization.pk).items()):
        said = corrections.get(name)
        declaration = facts.declaration.corrected(said.as_dict()) if said else facts.declaration
        found.append(Stated(name, declaration, said.pk if said else ""))
    return found
