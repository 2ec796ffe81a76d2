"""Groups, roles and projects: read only, they are arranged in the admin."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from django_filters import rest_framework as filters
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response

from config.api.errors import Problem
from config.api.pagination import OldestFirst
from config.api.schema import documented
from config.api.views import ApiView, accepted
from groups.api import access
from groups.api.serializers import (
    GroupSerializer,
    ProjectSerializer,
    RoleSerializer,
    RoutedSerializer,
    RouteRequestSerializer,
)
from groups.models import Group, GroupMember, Project, Role
from groups.routing import rank

NO_PROJECT = {404: {"PROJECT_NOT_FOUND": "No project of this id or slug is visible to you."}}


def project_named(request: Any, name: str) -> Project:
    """The project a body names. Raises Problem."""
    found = access.find_project(request.membership, name)
    if found is None:
        detail = f"No project '{name}' is visible to you."
        error = {"pointer": "/project", "code": "not_found", "detail": detail}
        raise Problem(404, "PROJECT_NOT_FOUND", detail, [error])
    return found


class GroupFilter(filters.FilterSet):
    project = filters.CharFilter(field_name="project_id", help_text="A project's id.")
    active = filters.BooleanFilter()


class ReadOnly(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    area = "groups"
    pagination_class = OldestFirst


class ProjectView(ReadOnly):
    serializer_class = ProjectSerializer
    queryset = Project.objects.none()
    lookup_value_regex = "prj_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Project]:
        return access.projects(self.request.membership)

    @documented("The projects you see")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A project")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)


class RoleView(ReadOnly):
    serializer_class = RoleSerializer
    queryset = Role.objects.none()
    lookup_value_regex = "rol_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Role]:
        return Role.objects.filter(organization=self.request.organization)

    @documented("The organization's roles")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A role")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)


class GroupView(ReadOnly):
    serializer_class = GroupSerializer
    queryset = Group.objects.none()
    filterset_class = GroupFilter
    lookup_value_regex = "grp_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Group]:
        seats = GroupMember.objects.select_related("role").order_by("is_lead", "ordinal")
        groups = Group.objects.prefetch_related(Prefetch("members", seats))
        return access.visible(groups, self.request.membership)

    @documented("Groups of experts")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A group and its members")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Where a goal would go",
        RoutedSerializer,
        request=RouteRequestSerializer,
        refusals=NO_PROJECT,
        description="The score of every group that could take the goal, best first. Nothing is started.",
    )
    @action(detail=False, methods=["post"], scope="groups:read", filter_backends=[], pagination_class=None)
    def route(self, request: Any) -> Response:
        asked = accepted(RouteRequestSerializer, request)
        project = project_named(request, asked["project"])
        scores = [ranked.as_dict() for ranked in rank(asked["goal"], project.id)]
        return Response({"group": scores[0]["group_id"] if scores else None, "scores": scores})
