"""Rules, what they speak of, and standing approvals. runs/api/policy_views.py says what they would decide."""

from typing import Any

from django.contrib.admin.models import CHANGE
from django.db.models import Count, Model, QuerySet
from django.db.models.functions import Now
from django_filters import rest_framework as filters
from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.arranging import (
    NOT_ENTITLED,
    Arranged,
    Changeable,
    Removable,
    arranged,
    keep,
    note,
    referred,
)
from common.api.errors import Problem
from common.api.pagination import OldestFirst
from common.api.schema import documented
from groups import changes
from groups.api import access
from groups.api.views import NO_PROJECT, project_named
from groups.models import Group, Role
from policy.api.serializers import (
    BindingInput,
    BindingSerializer,
    CapabilityInput,
    CapabilitySerializer,
    GrantInput,
    GrantSerializer,
    RuleInput,
    RuleSerializer,
)
from policy.authority import NotAllowed, Verb, may
from policy.loosening import loosened
from policy.models import Capability, CapabilityRule, Grant, ToolBinding
from policy.models.rules import Effect


def check(request: Any, verb: Verb, thing: Model) -> None:
    """Raises Problem unless the asker may do this."""
    try:
        may(request.actor, verb, thing)
    except NotAllowed as refused:
        raise Problem(403, refused.code, refused.message) from None


class RuleFilter(filters.FilterSet):
    effect = filters.ChoiceFilter(choices=Effect.choices)
    tool = filters.CharFilter()
    capability = filters.CharFilter(field_name="capability__name")
    project = filters.CharFilter(field_name="project_id", help_text="A project's id.")
    active = filters.BooleanFilter()
    shadow = filters.BooleanFilter()


@arranged(
    "A rule",
    "Rules",
    add={"capability": "send_email", "effect": "require_human", "condition": "size(to) > 1"},
    change={"shadow": False},
    about="Those of the organization and of your projects. With `shadow` a rule is recorded, not applied.",
    refusals=NO_PROJECT,
)
class RuleView(Changeable, Removable):
    area = "policy"
    serializer_class, accepts, changes = RuleSerializer, RuleInput, RuleInput
    queryset = CapabilityRule.objects.none()
    filterset_class = RuleFilter
    pagination_class = OldestFirst
    lookup_value_regex = "rul_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[CapabilityRule]:
        return access.shared(CapabilityRule.objects.select_related("capability"), self.request.membership)

    def resolved(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Rows for names; none of them of another organization, or of a project out of sight."""
        mine = {"organization": self.request.organization}
        found = {**asked, "limited": True} if self.request.membership.projects is not None else {**asked}
        if asked.get("project") is not None:
            found["project"] = project_named(self.request, asked["project"])
        if "group" in asked:
            groups = access.visible(Group.objects.all(), self.request.membership)
            found["group"] = referred(groups, "group", asked["group"])
        if "role" in asked:
            found["role"] = referred(Role.objects.filter(**mine), "role", asked["role"])
        if "capability" in asked:
            name = asked["capability"]
            found["capability"] = referred(Capability.objects.filter(**mine), "capability", name, by="name")
        return found

    def add(self, asked: dict[str, Any]) -> Model:
        self._check_reach(asked.get("project") is None)
        return super().add(asked)

    def change(self, thing: Model, asked: dict[str, Any]) -> None:
        self._check_reach(thing.project_id is None or asked.get("project", "") is None)  # type: ignore[attr-defined]
        super().change(thing, asked)

    def keep(self, thing: Model) -> None:
        """Before a second person is asked: nobody could confirm what is not theirs to loosen."""
        if self.request.membership.projects is not None and (wider := loosened(thing)):  # type: ignore[arg-type]
            raise Problem(403, "NOT_ENTITLED", f"The rule '{wider}' of the whole organization asks for more.")
        super().keep(thing)

    def destroy(self, request: Any, pk: str) -> Response:
        rule = self.get_object_or_404(self.get_queryset(), pk=pk)
        self._check_reach(rule.project_id is None)
        return super().destroy(request, pk)

    def _check_reach(self, everywhere: bool) -> None:
        if everywhere:
            why = "Who sees only some projects arranges no rule of all."
            access.require_whole(self.request.membership, why)


class OfOrganization(Changeable, Removable):
    area = "policy"
    whole = True
    pagination_class = OldestFirst


@arranged(
    "A capability",
    "What rules can speak of",
    add={"name": "payment", "description": "Moves money"},
    change={"description": "Moves money out"},
)
class CapabilityView(OfOrganization):
    serializer_class, accepts, changes = CapabilitySerializer, CapabilityInput, CapabilityInput
    queryset = Capability.objects.none()
    lookup_value_regex = "cap_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Capability]:
        return Capability.objects.filter(organization=self.request.organization)


@arranged(
    "A binding",
    "Which tools have which capability beside those they declare",
    add={"pattern": "pay_*", "capability": "payment"},
    change={"pattern": "pay_out"},
)
class BindingView(OfOrganization):
    serializer_class, accepts, changes = BindingSerializer, BindingInput, BindingInput
    queryset = ToolBinding.objects.none()
    lookup_value_regex = "tbd_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[ToolBinding]:
        bindings = ToolBinding.objects.select_related("capability")
        return bindings.filter(organization=self.request.organization)

    def resolved(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "capability" not in asked:
            return asked
        rows = Capability.objects.filter(organization=self.request.organization)
        name = asked["capability"]
        return {**asked, "capability": referred(rows, "capability", name, by="name")}


@arranged(
    "A standing approval",
    "Standing approvals, the newest first",
    add={"project": "atlas", "tool": "send_email", "arguments": {"to": ["a@example.org"]}, "max_uses": 5},
    about="Calls of a tool that pass without a further decision, until a time or for a number of uses.",
    refusals=NO_PROJECT,
)
class GrantView(Arranged):
    area = "policy"
    # neither Changeable nor Removable: what was granted stays on record
    serializer_class, accepts = GrantSerializer, GrantInput
    queryset = Grant.objects.none()
    lookup_value_regex = "grt_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Grant]:
        grants = Grant.objects.select_related("granted_by").annotate(uses_total=Count("uses"))
        return access.visible(grants, self.request.membership)

    def resolved(self, asked: dict[str, Any]) -> dict[str, Any]:
        project = project_named(self.request, asked["project"])
        check(self.request, Verb.GRANT, project)
        return {**asked, "project": project}

    def add(self, asked: dict[str, Any]) -> Model:
        grant = Grant(organization=self.request.organization, **self.resolved(asked))
        grant.made_by(self.request.actor)
        keep(grant)
        return grant

    @documented("Revoke a standing approval", GrantSerializer, request=None, refusals=NOT_ENTITLED)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Any, pk: str) -> Response:
        grant = self.get_object_or_404(self.get_queryset(), pk=pk)
        check(request, Verb.REVOKE, grant)
        if changes.update(Grant.objects.filter(pk=pk, revoked_at=None), revoked_at=Now()):
            note(request, grant, CHANGE, ["revoked_at"])
        return Response(self._shown(pk))
