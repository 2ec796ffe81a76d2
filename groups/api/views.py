"""Groups, their members, roles, projects, and what routing learnt."""

from typing import Any

from django.db.models import Max, Model, Prefetch, QuerySet
from django_filters import rest_framework as filters
from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.arranging import Changeable, Removable, arranged, keep, referred
from common.api.errors import Problem
from common.api.pagination import OldestFirst
from common.api.permissions import require_scope
from common.api.schema import documented
from common.api.views import accepted
from groups import members
from groups.api import access
from groups.api.inputs import (
    ExampleInput,
    GroupChange,
    GroupInput,
    MemberChange,
    MemberInput,
    ProjectInput,
    RoleInput,
)
from groups.api.serializers import (
    ExampleSerializer,
    GroupSerializer,
    MemberSerializer,
    ProjectSerializer,
    RoleSerializer,
    RoutedSerializer,
    RouteRequestSerializer,
)
from groups.models import AgentInstance, Group, GroupMember, Project, Role, RoutingExample
from groups.routing import learn, rank

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


class InGroup(filters.FilterSet):
    group = filters.CharFilter(field_name="group_id", help_text="A group's id.")


@arranged(
    "A project",
    "The projects you see",
    add={"slug": "atlas", "name": "Atlas"},
    change={"review_deposits": True},
)
class ProjectView(Changeable):
    area = "groups"
    # not Removable: all that is in a project would go with it
    serializer_class, accepts, changes = ProjectSerializer, ProjectInput, ProjectInput
    queryset = Project.objects.none()
    pagination_class = OldestFirst
    lookup_value_regex = "prj_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Project]:
        return access.projects(self.request.membership)

    def add(self, asked: dict[str, Any]) -> Model:
        access.require_whole(self.request.membership, "Who sees only some projects adds none.")
        self._check(None, Project(**self.resolved(asked)))
        return super().add(asked)

    def change(self, thing: Model, asked: dict[str, Any]) -> None:
        wanted = Project.objects.get(pk=thing.pk)  # not a copy, which would share what is kept of relations
        for name, value in self.resolved(asked).items():
            setattr(wanted, name, value)
        self._check(thing, wanted)  # type: ignore[arg-type]
        super().change(thing, asked)

    def _check(self, before: Project | None, wanted: Project) -> None:
        if members.says_who_approves(before, wanted):
            require_scope(self.request, "policy:write")
        if refused := members.refuses_project(self.request.user, before, wanted):
            raise Problem(403, "NOT_ENTITLED", refused)


@arranged(
    "A role",
    "The organization's roles",
    add={"name": "Analyst", "system_prompt": "Compare prices.", "allowed_tools": ["memory_search"]},
    change={"denied_tools": ["send_email"]},
)
class RoleView(Changeable, Removable):
    area = "groups"
    whole = True
    serializer_class, accepts, changes = RoleSerializer, RoleInput, RoleInput
    queryset = Role.objects.none()
    pagination_class = OldestFirst
    lookup_value_regex = "rol_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Role]:
        return Role.objects.filter(organization=self.request.organization)


@arranged(
    "A group and its members",
    "Groups of experts",
    add={"project": "atlas", "name": "Market", "description": "Competitors and prices"},
    change={"active": False},
    refusals=NO_PROJECT,
)
class GroupView(Changeable, Removable):
    area = "groups"
    serializer_class, accepts, changes = GroupSerializer, GroupInput, GroupChange
    queryset = Group.objects.none()
    filterset_class = GroupFilter
    pagination_class = OldestFirst
    lookup_value_regex = "grp_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Group]:
        seats = GroupMember.objects.select_related("role").order_by("is_lead", "ordinal")
        groups = Group.objects.prefetch_related(Prefetch("members", seats))
        return access.visible(groups, self.request.membership)

    def resolved(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "project" not in asked:
            return asked
        return {**asked, "project": project_named(self.request, asked["project"])}

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


@arranged(
    "A group's member",
    "Members of groups",
    add={"group": "grp_01…", "role": "rol_01…", "is_lead": True},
    change={"ordinal": 2},
)
class MemberView(Changeable, Removable):
    area = "groups"
    serializer_class, accepts, changes = MemberSerializer, MemberInput, MemberChange
    queryset = GroupMember.objects.none()
    filterset_class = InGroup
    pagination_class = OldestFirst
    lookup_value_regex = "gmb_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[GroupMember]:
        seats = GroupMember.objects.select_related("role")
        return access.visible(seats, self.request.membership, "group__project_id")

    def resolved(self, asked: dict[str, Any]) -> dict[str, Any]:
        mine = {"organization": self.request.organization}
        found = dict(asked)
        if "group" in asked:
            groups = access.visible(Group.objects.all(), self.request.membership)
            found["group"] = referred(groups.select_for_update(no_key=True), "group", asked["group"])
        if "role" in asked:
            found["role"] = referred(Role.objects.filter(**mine), "role", asked["role"])
        if "agent" in asked:
            agents = AgentInstance.objects.filter(**mine, user=None)
            found["agent_instance"] = referred(agents, "agent", found.pop("agent"))
        return found

    def add(self, asked: dict[str, Any]) -> Model:
        """A seat: after the others unless `ordinal` says when; with a new agent unless one is named."""
        found = self.resolved(asked)
        owned = {"organization": self.request.organization, "role": found["role"]}
        if "ordinal" not in found:
            last = found["group"].members.aggregate(last=Max("ordinal"))["last"]
            found["ordinal"] = 0 if last is None else last + 1
        if "agent_instance" not in found:
            found["agent_instance"] = AgentInstance.objects.create(**owned, name=found["role"].name)
        seat = GroupMember(**owned | found)
        keep(seat)
        return seat


@arranged(
    "What routing learnt",
    "What routing learnt, the newest first",
    add={"group": "grp_01…", "goal": "What do our competitors charge?", "fits": True},
    about="Goals that groups completed, and people's words on where a goal belongs.",
)
class ExampleView(Removable):
    area = "groups"
    serializer_class, accepts = ExampleSerializer, ExampleInput
    queryset = RoutingExample.objects.none()
    filterset_class = InGroup
    lookup_value_regex = "rex_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[RoutingExample]:
        examples = RoutingExample.objects.select_related("corrected_by")
        return access.visible(examples, self.request.membership, "group__project_id")

    def add(self, asked: dict[str, Any]) -> Model:
        groups = access.visible(Group.objects.all(), self.request.membership)
        group = referred(groups, "group", asked["group"])
        kept = learn(group.organization_id, group.pk, asked["goal"], fits=asked["fits"], by=self.request.user)
        assert kept is not None  # noqa: S101  (a person's word on a goal that is not empty)
        return kept
