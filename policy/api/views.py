"""The rules there are. They are changed in the admin; runs/api/policy_views.py says what they would say."""

from typing import Any

from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters
from rest_framework import mixins
from rest_framework.response import Response

from config.api.pagination import OldestFirst
from config.api.schema import documented
from config.api.views import ApiView
from policy.api.serializers import RuleSerializer
from policy.models import CapabilityRule
from policy.models.rules import Effect


class RuleFilter(filters.FilterSet):
    effect = filters.ChoiceFilter(choices=Effect.choices)
    tool = filters.CharFilter()
    capability = filters.CharFilter(field_name="capability__name")
    project = filters.CharFilter(field_name="project_id", help_text="A project's id.")
    active = filters.BooleanFilter()


class RuleView(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    area = "policy"
    serializer_class = RuleSerializer
    queryset = CapabilityRule.objects.none()
    filterset_class = RuleFilter
    pagination_class = OldestFirst
    lookup_value_regex = "rul_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[CapabilityRule]:
        mine = self.request.membership
        found = CapabilityRule.objects.filter(organization=mine.organization_id).select_related("capability")
        if mine.projects is None:
            return found
        return found.filter(Q(project=None) | Q(project__in=mine.projects))

    @documented("Rules", description="Those of the organization and of your projects.")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A rule")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)
