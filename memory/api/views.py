"""Memories: what your agents know."""

from typing import Any

from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response

from common import redact
from common.api.errors import Problem, bad_query
from common.api.pagination import whole_number
from common.api.schema import documented
from common.api.views import only
from groups.api.access import find_project, shared, visible
from groups.models import AgentInstance, Group
from memory.api.curation import Curation
from memory.api.serializers import FoundSerializer, MemorySerializer
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryStatus, MemoryType
from memory.scope import Scope
from memory.search import MOST, memory_search_pa, memory_search_tiered


class MemoryFilter(filters.FilterSet):
    type = filters.MultipleChoiceFilter(choices=MemoryType.choices, help_text="Repeat it for several.")
    status = filters.MultipleChoiceFilter(choices=MemoryStatus.choices, help_text="Repeat it for several.")
    project = filters.CharFilter(field_name="project_id", help_text="A project's id.")
    group = filters.CharFilter(field_name="group_id")
    source_run = filters.CharFilter(method="by_run", help_text="What this run left, joined duplicates too.")

    class Meta:
        model = Memory
        fields: list[str] = []

    def by_run(self, queryset: Any, name: str, value: str) -> Any:
        return queryset.from_run(value)


class MemoryView(mixins.ListModelMixin, mixins.RetrieveModelMixin, Curation):
    area = "memory"
    serializer_class = MemorySerializer
    queryset = Memory.objects.none()
    filterset_class = MemoryFilter
    lookup_value_regex = "mem_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Memory]:
        """What the organization and the member's projects share, and the member's own."""
        mine = self.request.membership
        found = shared(Memory.objects.select_related("user"), mine)
        return found.filter(Q(user=None) | Q(user=mine.user_id))

    @documented("Memories, the newest first", description="What is shared with you, and your own.")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A memory")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Search memories",
        FoundSerializer,
        parameters=[
            OpenApiParameter("query", OpenApiTypes.STR, required=True),
            OpenApiParameter("project", OpenApiTypes.STR, description="Id or slug."),
            OpenApiParameter("group", OpenApiTypes.STR, description="Search as this group does."),
            OpenApiParameter("limit", OpenApiTypes.INT, description=f"At most {MOST}; 10 where left out."),
        ],
        refusals={404: {"NOT_FOUND": "No such project or group is visible to you."}},
        description="In tiers, as your personal agent searches: preferences, knowledge, past tasks.",
    )
    @action(detail=False, pagination_class=None, filter_backends=[])
    def search(self, request: Any) -> Response:
        only(request, "query", "project", "group", "limit")
        query = request.query_params.get("query", "")
        limit = whole_number(request, "limit", 10, least=1, most=MOST)
        try:
            hits = self._search(query, limit)
        except MemoryRefused as refused:
            raise bad_query("query", f"{refused}.") from None
        return Response({"results": [redact.masked(hit.as_dict()) for hit in hits]})

    def _search(self, query: str, limit: int) -> Any:
        params = self.request.query_params
        organization = self.request.organization.pk
        if "group" in params:
            groups = visible(Group.objects.all(), self.request.membership)
            group = self.get_object_or_404(groups, pk=params["group"])
            return memory_search_tiered(query, Scope(organization, None, group.project_id, group.pk), limit)
        project = find_project(self.request.membership, params["project"]) if "project" in params else None
        if project is None and "project" in params:
            raise Problem(404, "NOT_FOUND", "No such project is visible to you.")
        agents = AgentInstance.objects.filter(organization=organization, user=self.request.user)
        scope = Scope(
            organization,
            self.request.user.pk,
            project.pk if project else None,
            agent_instance_id=agents.values_list("pk", flat=True).first(),
        )
        return memory_search_pa(query, scope, limit)
