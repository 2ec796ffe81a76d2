"""What lists can be narrowed by."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django_filters import rest_framework as filters
from django_filters.fields import IsoDateTimeField

from common.times import instant
from groups.api.access import find_project
from runs.models import Approval, Run
from runs.models.choices import ApprovalStatus, RunKind, RunStatus


def in_project(queryset: QuerySet[Any], column: str, request: Any, name: str) -> QuerySet[Any]:
    """An id, or a slug of the asker's organization. One that nobody knows finds nothing."""
    project = find_project(request.membership, name)
    return queryset.filter(**{column: project.pk}) if project else queryset.none()


class InstantField(IsoDateTimeField):
    """A time that the database can be asked for."""

    def to_python(self, value: Any) -> Any:
        """In UTC. Raises ValidationError."""
        found = super().to_python(value)
        if found is None:
            return None
        if (there := instant(found.isoformat())) is None:
            raise ValidationError(self.error_messages["invalid"], "invalid")
        return there


class InstantFilter(filters.IsoDateTimeFilter):
    field_class = InstantField


class RunFilter(filters.FilterSet):
    status = filters.MultipleChoiceFilter(choices=RunStatus.choices, help_text="Repeat it for several.")
    kind = filters.ChoiceFilter(choices=RunKind.choices)
    project = filters.CharFilter(method="by_project", help_text="Id or slug.")
    user = filters.CharFilter(field_name="user__username", help_text="The name of whom the run works for.")
    session_key = filters.CharFilter(help_text="Runs of one conversation.")
    created_after = InstantFilter(field_name="created_at", lookup_expr="gte", help_text="Made then or later.")
    created_before = InstantFilter(field_name="created_at", lookup_expr="lt", help_text="Made earlier.")
    parent = filters.CharFilter(field_name="parent_run_id", help_text="The children of this run.")
    root = filters.CharFilter(field_name="root_id", help_text="The whole tree of this run.")

    class Meta:
        model = Run
        fields: list[str] = []

    def by_project(self, queryset: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return in_project(queryset, "project_id", self.request, value)


class ApprovalFilter(filters.FilterSet):
    status = filters.MultipleChoiceFilter(choices=ApprovalStatus.choices, help_text="Repeat it for several.")
    run = filters.CharFilter(field_name="run_id")
    root = filters.CharFilter(field_name="run__root_id", help_text="Of a run and all below it.")
    project = filters.CharFilter(method="by_project", help_text="Id or slug.")
    tool = filters.CharFilter(field_name="tool_call__tool")
    user = filters.CharFilter(
        field_name="run__user__username", help_text="The name of whom the run works for."
    )
    requested_after = InstantFilter(
        field_name="requested_at", lookup_expr="gte", help_text="Asked for then or later."
    )
    requested_before = InstantFilter(
        field_name="requested_at", lookup_expr="lt", help_text="Asked for earlier."
    )

    class Meta:
        model = Approval
        fields: list[str] = []

    def by_project(self, queryset: QuerySet[Approval], name: str, value: str) -> QuerySet[Approval]:
        return in_project(queryset, "run__project_id", self.request, value)
