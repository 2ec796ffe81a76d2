"""Webhooks and their deliveries as JSON, and the bodies that arrange them."""

from rest_framework import serializers

from common.api.views import StrictBoolean, StrictSerializer, TextField
from runs.models import WebhookDelivery, WebhookEndpoint, WebhookEvent


class WebhookSerializer(serializers.ModelSerializer):
    project = serializers.CharField(
        source="project_id", allow_null=True, help_text="null: the whole organization."
    )
    events = serializers.ListField(child=serializers.ChoiceField(WebhookEvent.choices))
    disabled_because = serializers.CharField(help_text="Why Deputy switched it off; empty where it did not.")

    class Meta:
        model = WebhookEndpoint
        fields = [
            *("id", "url", "description", "project", "events", "enabled"),
            *("failing_since", "disabled_because", "created_at"),
        ]
        read_only_fields = fields


class WebhookWithSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(help_text="`whsec_…`: told this once.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class WebhookInput(StrictSerializer):
    url = TextField(max_length=2000, help_text="http or https, at a public address.")
    events = serializers.ListField(
        child=serializers.ChoiceField(WebhookEvent.choices), min_length=1, max_length=len(WebhookEvent)
    )
    project = TextField(
        max_length=63, required=False, allow_null=True, help_text="Id or slug; null: every one."
    )
    description = TextField(max_length=200, required=False, allow_blank=True)
    enabled = StrictBoolean(required=False)


class AttemptSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    status = serializers.IntegerField(allow_null=True)
    problem = serializers.CharField()


class DeliverySerializer(serializers.ModelSerializer):
    webhook = serializers.CharField(source="endpoint_id")
    payload = serializers.DictField(help_text="What was sent: `type`, `timestamp` and `data`.")
    history = AttemptSerializer(many=True, help_text="The last twenty attempts.")

    class Meta:
        model = WebhookDelivery
        fields = [
            *("id", "webhook", "event", "payload", "status", "attempts", "response_status", "problem"),
            *("next_attempt_at", "delivered_at", "history", "created_at"),
        ]
        read_only_fields = fields
