"""What waits for a second person, over HTTP."""

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.arranging import NOT_ENTITLED, require
from common.api.errors import Problem
from common.api.schema import documented
from common.api.views import ApiView
from groups import changes
from groups.api import access
from groups.models import ProposalState, ProposedChange
from policy.authority import NotAllowed
from runs.actions import second
from runs.actions.second import SecondRefused

VIEW = "groups.view_proposedchange"
REFUSALS = {
    403: {
        "NOT_ENTITLED": "You have proposed it yourself, or may not make such a change.",
        "HUMAN_ONLY": "Only a person confirms it, signed in to Deputy's own pages.",
        "CONFIRM_FIRST": "Your session was not confirmed lately.",
    },
    409: {
        "ALREADY_DECIDED": "Somebody has confirmed or rejected it.",
        "STALE": "What it is about has changed since.",
        "INVALID": "It cannot be any more.",
    },
}


class ProposalSerializer(serializers.ModelSerializer):
    before = serializers.SerializerMethodField(help_text="The columns that would differ; secrets masked.")
    after = serializers.SerializerMethodField(help_text="The same, as they would be.")
    token = serializers.CharField(help_text="The token's id; empty where a session proposed it.")
    decided_by = serializers.CharField(allow_null=True, help_text="Who confirmed or rejected it.")

    class Meta:
        model = ProposedChange
        fields = [
            *("id", "created_at", "by", "via", "token", "action", "model", "object_id", "label", "why"),
            *("before", "after", "state", "decided_by", "decided_at"),
        ]
        read_only_fields = fields

    def get_before(self, proposal: ProposedChange) -> dict[str, Any]:
        return changes.shown(proposal.before)

    def get_after(self, proposal: ProposedChange) -> dict[str, Any]:
        return changes.shown(proposal.after)


class ProposalFilter(filters.FilterSet):
    state = filters.ChoiceFilter(choices=ProposalState.choices)


class ProposalView(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    area = "policy"
    serializer_class = ProposalSerializer
    queryset = ProposedChange.objects.none()
    filterset_class = ProposalFilter
    lookup_value_regex = "prp_[0-9a-z]{26}"

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require(request, VIEW)
        access.require_whole(request.membership, "Proposed changes take a member of the whole.")

    def get_queryset(self) -> QuerySet[ProposedChange]:
        mine = ProposedChange.objects.filter(organization=self.request.organization)
        return mine.select_related("decided_by")

    @documented("What was proposed and takes a second person, the newest first", refusals=NOT_ENTITLED)
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A proposed change", refusals=NOT_ENTITLED)
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Confirm it as a second person",
        ProposalSerializer,
        request=None,
        refusals=REFUSALS,
        description="Carries the change out. Takes a person's browser session, lately confirmed; no token.",
    )
    @action(detail=True, methods=["post"], scope="policy:write")
    def confirm(self, request: Any, pk: str) -> Response:
        return self._decided(request, pk, second.confirm)

    @documented("Reject it, or take back one's own", ProposalSerializer, request=None, refusals=REFUSALS)
    @action(detail=True, methods=["post"], scope="policy:write")
    def reject(self, request: Any, pk: str) -> Response:
        return self._decided(request, pk, second.reject)

    def _decided(self, request: Any, pk: str, decide: Any) -> Response:
        proposal = self.get_object_or_404(self.get_queryset(), pk=pk)
        try:
            return Response(self.serializer_class(decide(request.actor, proposal.pk)).data)
        except NotAllowed as refused:
            raise Problem(403, refused.code, refused.message) from None
        except SecondRefused as refused:
            raise Problem(409, refused.code, refused.message) from None
