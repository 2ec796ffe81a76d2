"""Policy: the rules there are, and what they would say. They are changed in the admin."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample
from rest_framework import mixins
from rest_framework.response import Response

from config.api.errors import Problem, invalid
from config.api.pagination import OldestFirst
from config.api.schema import documented
from config.api.views import ApiView, accepted
from groups.api.views import NO_PROJECT, project_named
from policy.api import simulate
from policy.api.serializers import AnswerSerializer, QuestionSerializer, RuleSerializer
from policy.models import CapabilityRule
from policy.models.rules import Effect


class RuleFilter(filters.FilterSet):
    effect = filters.ChoiceFilter(choices=Effect.choices)
    tool = filters.CharFilter()
    capability = filters.CharFilter(field_name="capability__name")
    project = filters.CharFilter(field_name="project_id", help_text="A project's id.")
    active = filters.BooleanFilter()


class RuleView(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
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


class EvaluateView(ApiView):
    serializer_class = AnswerSerializer
    scope = "read"
    pagination_class = None
    filter_backends = ()

    @documented(
        "What policy would say",
        AnswerSerializer,
        request=QuestionSerializer,
        refusals={
            403: {"NOT_ENTITLED": "Asking about others takes the permission groups.view_membership."},
            **NO_PROJECT,
            422: {"INVALID_ARGUMENTS": "The arguments do not fit the tool's schema."},
        },
        description="The decision a call would get, and why. Nothing is called and nothing is kept.",
        examples=[
            OpenApiExample(
                "A mail",
                value={
                    "project": "atlas",
                    "tool": "send_email",
                    "arguments": {"to": ["ines@example.org"], "subject": "Prices", "body": "5"},
                },
                request_only=True,
            )
        ],
    )
    def create(self, request: Any) -> Response:
        asked = accepted(QuestionSerializer, request)
        question = simulate.Question(
            project=project_named(request, asked["project"]),
            user_id=self._whom(asked.get("user")),
            tool=asked["tool"],
            arguments=asked["arguments"],
            role=asked.get("role"),
            group=asked.get("group"),
            delegated=asked["delegated_permissions"],
        )
        return Response(AnswerSerializer(simulate.answer(question)).data)

    def _whom(self, username: str | None) -> int:
        me = self.request.user
        if username is None or username == me.get_username():
            return int(me.pk)
        if not me.has_perm("groups.view_membership"):
            raise Problem(403, "NOT_ENTITLED", "You may ask about yourself only.")
        members = get_user_model().objects.filter(memberships__organization=self.request.organization)
        found = members.filter(username=username).first()
        if found is None:
            raise invalid("/user", "not_found", f"Nobody here is called '{username}'.")
        return int(found.pk)
