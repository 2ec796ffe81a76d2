"""Webhooks: where Deputy tells programs what happened, and what it has told them."""

from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE
from django.db import transaction
from django.db.models import Model, QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common.api.arranging import (
    CONFLICT,
    NOT_ENTITLED,
    Changeable,
    Removable,
    arranged,
    keep,
    note,
    require,
    require_permission,
)
from common.api.errors import Problem
from common.api.idempotency import KEYED, REUSED, once
from common.api.pagination import OldestFirst
from common.api.schema import documented
from common.api.views import ApiView, ListedFromReplica, accepted
from groups.api import access
from groups.api.views import NO_PROJECT, project_named
from runs.actions import webhooks
from runs.api.webhook_serializers import (
    DeliverySerializer,
    WebhookInput,
    WebhookSerializer,
    WebhookWithSecretSerializer,
)
from runs.models import DeliveryStatus, WebhookDelivery, WebhookEndpoint
from runs.webhooks import sending

EXAMPLE = {"url": "https://hooks.example.org/deputy", "events": ["approval.requested", "run.failed"]}
VIEW = "runs.view_webhookendpoint"
NO_STORE = {"Cache-Control": "no-store"}


class ForManagers(ApiView):
    """An address may hold a secret of its own, so looking takes the permission to."""

    area = "webhooks"

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require(request, VIEW)


@arranged(
    "A webhook",
    "Webhooks",
    add=EXAMPLE,
    change={"enabled": True},
    about="Messages follow the Standard Webhooks scheme; docs/api.md says what they hold.",
    refusals=NO_PROJECT,
)
class WebhookView(ForManagers, Changeable, Removable):
    serializer_class, accepts, changes = WebhookSerializer, WebhookInput, WebhookInput
    queryset = WebhookEndpoint.objects.none()
    pagination_class = OldestFirst
    lookup_value_regex = "whe_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[WebhookEndpoint]:
        return access.visible(WebhookEndpoint.objects.filter(run=None), self.request.membership)

    @documented(
        "Add: a webhook",
        WebhookWithSecretSerializer,
        status=201,
        request=WebhookInput,
        parameters=[KEYED],
        refusals={**REUSED, **NOT_ENTITLED, **CONFLICT, **NO_PROJECT},
        description="`secret` signs the messages. It is told this once, and not kept for an Idempotency-Key.",
        examples=[OpenApiExample("Add", value=EXAMPLE, request_only=True)],
    )
    def create(self, request: Any) -> Response:
        require_permission(request, "add", WebhookEndpoint)
        asked = accepted(WebhookInput, request)

        def act() -> Response:
            endpoint = WebhookEndpoint(organization=request.organization, **self.resolved(asked))
            secret = webhooks.give_secret(endpoint)
            with transaction.atomic():
                keep(endpoint)
                note(request, endpoint, ADDITION)
            location = reverse("api-webhook-detail", [endpoint.pk], request=request)
            shown = {**self._shown(endpoint.pk), "secret": secret}
            return Response(shown, status=201, headers={"Location": location, **NO_STORE})

        return once(request, act, secret=("secret",))

    def resolved(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = dict(asked)
        if "events" in asked:
            found["events"] = list(dict.fromkeys(asked["events"]))
        if asked.get("project") is not None:
            found["project"] = project_named(self.request, asked["project"])
        elif "project" in asked or self.action == "create":
            access.require_whole(self.request.membership, "Who sees only some projects hears of those.")
        return found

    def change(self, thing: Model, asked: dict[str, Any]) -> None:
        if asked.get("enabled"):  # somebody has looked: failures are counted anew
            thing.disabled_because, thing.failing_since = "", None  # type: ignore[attr-defined]
        super().change(thing, asked)

    @documented(
        "Send a ping",
        DeliverySerializer,
        status=202,
        request=None,
        refusals=NOT_ENTITLED,
        description="A message of type `ping`; its delivery says whether it arrived.",
    )
    @action(detail=True, methods=["post"])
    def ping(self, request: Any, pk: str) -> Response:
        endpoint = self.get_object_or_404(self.get_queryset(), pk=pk)
        require_permission(request, "change", WebhookEndpoint)
        return Response(DeliverySerializer(sending.ping(endpoint)).data, status=202)

    @documented(
        "Give it a new secret",
        WebhookWithSecretSerializer,
        request=None,
        refusals=NOT_ENTITLED,
        description="For a day messages carry a signature of the old one too. `secret` is told this once.",
    )
    @action(detail=True, methods=["post"])
    def rotate(self, request: Any, pk: str) -> Response:
        endpoint = self.get_object_or_404(self.get_queryset(), pk=pk)
        require_permission(request, "change", WebhookEndpoint)
        with transaction.atomic():
            secret = webhooks.rotate(endpoint)
            note(request, endpoint, CHANGE, ["secret"])
        return Response({**self._shown(pk), "secret": secret}, headers=NO_STORE)


class DeliveryFilter(filters.FilterSet):
    webhook = filters.CharFilter(field_name="endpoint_id")
    status = filters.ChoiceFilter(choices=DeliveryStatus.choices)
    event = filters.CharFilter()


class DeliveryView(ListedFromReplica, mixins.RetrieveModelMixin, ForManagers):
    serializer_class = DeliverySerializer
    queryset = WebhookDelivery.objects.none()
    filterset_class = DeliveryFilter
    lookup_value_regex = "msg_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        told = WebhookDelivery.objects.filter(endpoint__run=None)
        return access.visible(told, self.request.membership, "endpoint__project_id")

    @documented("What webhooks were told, the newest first")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A delivery")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Send it again",
        DeliverySerializer,
        status=202,
        request=None,
        refusals={**NOT_ENTITLED, 409: {"ON_ITS_WAY": "It has not been delivered or given up yet."}},
        description="The same message with the same `webhook-id`.",
    )
    @action(detail=True, methods=["post"])
    def redeliver(self, request: Any, pk: str) -> Response:
        delivery = self.get_object_or_404(self.get_queryset(), pk=pk)
        require_permission(request, "change", WebhookEndpoint)
        if not sending.send_again(delivery):
            raise Problem(409, "ON_ITS_WAY", "It has not been delivered or given up yet.")
        return Response(DeliverySerializer(self.get_queryset().get(pk=pk)).data, status=202)
