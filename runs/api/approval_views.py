"""Approvals: what waits for a decision, and the decision."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.pagination import NewestFirst
from common.api.schema import documented
from common.api.views import ApiView, accepted
from runs.actions import decide
from runs.api import access
from runs.api.filters import ApprovalFilter
from runs.api.refusals import as_problems
from runs.api.serializers import ApprovalSerializer, ApproveSerializer, OriginsSerializer, RejectSerializer
from runs.gate.origins import origins, shown
from runs.models import Approval
from runs.models.choices import ApprovalStatus

REFUSALS = {
    403: {
        "NOT_ENTITLED": "You may not decide approvals of this project.",
        "HUMAN_ONLY": "Only a person can decide this, signed in to Deputy's own pages.",
        "CONFIRM_FIRST": "A person has to decide this, and your session was not confirmed lately.",
        "OWN_RUN": "You cannot decide this for your own run.",
    },
    409: {
        "ALREADY_DECIDED": "It was decided otherwise, or is no longer open.",
        "EXPIRED": "The time to decide is over.",
        "CHANGED": "What would run is not what you have seen; `approval` names a newer one, if there is one.",
    },
    428: {"DIGEST_MISSING": "Say which arguments you decide about."},
}

EDITS = {
    409: {
        **REFUSALS[409],
        "UNDER_WAY": "A server is at work on the call as it stands: its arguments cannot be changed.",
    },
    422: {
        "INVALID_ARGUMENTS": "The arguments do not fit the tool's schema; `errors` says where.",
        "POLICY_DENIES": "With these arguments policy denies the call; the approval stays open.",
    },
}


def seen(request: Any, asked: dict[str, Any]) -> str | None:
    """The digest of the arguments the asker has seen, from the body or If-Match. Raises DecisionRefused for
    two that differ.
    """
    named: str | None = asked.get("arguments_digest")
    matched = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"')
    if named and matched and named != matched:
        raise decide.DecisionRefused("CHANGED", "The body and If-Match name different arguments: look again.")
    return named or matched or None


class QueueFirst(NewestFirst):
    """What is pending, where nothing else was asked for, in the order in which people decide it."""

    def get_ordering(self, request: Any, queryset: Any, view: Any) -> tuple[str, ...]:
        pending = request.query_params.getlist("status") == [ApprovalStatus.PENDING]
        if pending and "ordering" not in request.query_params:
            return ("id",)
        return super().get_ordering(request, queryset, view)


class ApprovalView(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    serializer_class = ApprovalSerializer
    queryset = Approval.objects.none()
    filterset_class = ApprovalFilter
    pagination_class = QueueFirst
    lookup_value_regex = "apr_[0-9a-z]{26}"
    area = "approvals"

    def get_queryset(self) -> QuerySet[Approval]:
        return access.approvals(self.request.actor)

    @documented(
        "Approvals, the newest first; the pending ones alone the oldest first",
        description=(
            "All of your projects where you may decide; otherwise those of your own runs. `status=pending` "
            "lists the queue in the order of Deputy's pages, unless `ordering` says otherwise."
        ),
    )
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("An approval")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Where the call's values came from",
        OriginsSerializer,
        description="By what the run had heard and read when it asked; each with the passages it stands in.",
    )
    @action(detail=True, methods=["get"])
    def origins(self, request: Any, pk: str) -> Response:
        approval = self.get_object_or_404(self.get_queryset(), pk=pk)
        found = shown(origins(approval), own=approval.run.user_id == request.user.pk)
        return Response(OriginsSerializer(found).data)

    @documented(
        "Let the call run",
        ApprovalSerializer,
        request=ApproveSerializer,
        refusals={**REFUSALS, **EDITS},
        description=(
            "As asked for, or with other `arguments`. Stays pending until `deciders_needed` agree. Say which "
            "arguments you have seen: their `arguments_digest`, in the body or as `If-Match`. Other "
            "`arguments` make a new approval with a demand of its own; the answer is that one."
        ),
        examples=[
            OpenApiExample(
                "Approve",
                value={"arguments_digest": "9f2c…", "reason": "Agreed with Ines."},
                request_only=True,
            ),
            OpenApiExample(
                "Approve with other arguments",
                value={
                    "arguments_digest": "9f2c…",
                    "arguments": {"to": ["ines@example.org"], "subject": "Prices", "body": "…"},
                },
                request_only=True,
            ),
        ],
    )
    @action(detail=True, methods=["post"], scope="approvals:decide")
    def approve(self, request: Any, pk: str) -> Response:
        asked = accepted(ApproveSerializer, request)
        remember = asked.get("remember")
        approval = self.get_object_or_404(self.get_queryset(), pk=pk)
        with as_problems():
            decided = decide.approve(
                approval.pk,
                request.actor,
                seen(request, asked),
                asked["reason"],
                asked.get("arguments"),
                decide.Remember(**{**remember, "fixed": tuple(remember["fixed"])}) if remember else None,
            )
        return self._shown(decided.pk)

    @documented("Refuse the call", ApprovalSerializer, request=RejectSerializer, refusals=REFUSALS)
    @action(detail=True, methods=["post"], scope="approvals:decide")
    def reject(self, request: Any, pk: str) -> Response:
        asked = accepted(RejectSerializer, request)
        approval = self.get_object_or_404(self.get_queryset(), pk=pk)
        with as_problems():
            decide.reject(approval.pk, request.actor, seen(request, asked), asked["reason"])
        return self._shown(pk)

    def _shown(self, pk: str) -> Response:
        return Response(ApprovalSerializer(self.get_queryset().get(pk=pk)).data)
