"""The record of changes over HTTP."""

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from rest_framework import mixins, serializers
from rest_framework.response import Response

from common.api.arranging import NOT_ENTITLED, require
from common.api.schema import documented
from common.api.views import ApiView, ListedFromReplica
from groups.api import access
from groups.models import Change, ChangeAction, Door

VIEW = "groups.view_change"


class ChangeSerializer(serializers.ModelSerializer):
    token = serializers.CharField(help_text="The token's id; empty where a session made the change.")
    before = serializers.DictField(help_text="The fields that differ; of what was removed all of them.")
    after = serializers.DictField(help_text="The same, as they are since; of what was added all of them.")

    class Meta:
        model = Change
        fields = [
            *("id", "created_at", "by", "via", "token", "action"),
            *("model", "object_id", "label", "before", "after"),
        ]
        read_only_fields = fields


class ChangeFilter(filters.FilterSet):
    action = filters.ChoiceFilter(choices=ChangeAction.choices)
    via = filters.ChoiceFilter(choices=Door.choices)
    model = filters.CharFilter(help_text="Such as policy.capabilityrule.")
    object_id = filters.CharFilter()
    by = filters.CharFilter(help_text="A user's name.")


class ChangeView(ListedFromReplica, mixins.RetrieveModelMixin, ApiView):
    area = "policy"
    serializer_class = ChangeSerializer
    queryset = Change.objects.none()
    filterset_class = ChangeFilter
    lookup_value_regex = "chg_[0-9a-z]{26}"

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require(request, VIEW)
        access.require_whole(request.membership, "The record of changes takes a member of the whole.")

    def get_queryset(self) -> QuerySet[Change]:
        return Change.objects.filter(organization=self.request.organization)

    @documented(
        "What was changed of policy, people, tokens and settings, the newest first",
        refusals=NOT_ENTITLED,
        description="Each change with who made it, by which door, and the values before and after.",
    )
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A change", refusals=NOT_ENTITLED)
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)
