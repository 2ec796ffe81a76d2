"""Rules and decisions as JSON."""

from rest_framework import serializers

from config.api.views import StrictSerializer, TextField
from policy.models import CapabilityRule
from policy.models.rules import Effect


class RuleSerializer(serializers.ModelSerializer):
    project = serializers.CharField(source="project_id", allow_null=True, help_text="null: every project.")
    group = serializers.CharField(source="group_id", allow_null=True)
    role = serializers.CharField(source="role_id", allow_null=True)
    capability = serializers.CharField(source="capability.name", default=None, allow_null=True)

    class Meta:
        model = CapabilityRule
        fields = [
            "id",
            "name",
            "project",
            "group",
            "role",
            "capability",
            "tool",
            "effect",
            "condition",
            "timeout_seconds",
            "on_expiry",
            "deciders_needed",
            "shadow",
            "active",
            "created_at",
        ]
        read_only_fields = fields


class GivenSerializer(StrictSerializer):
    """What a parent would have passed on."""

    allowed_tools = serializers.ListField(child=TextField(max_length=64), allow_null=True, max_length=500)
    denied_tools = serializers.ListField(child=TextField(max_length=64), default=list, max_length=500)


class QuestionSerializer(StrictSerializer):
    project = TextField(max_length=63, help_text="Id or slug.")
    tool = TextField(max_length=64)
    arguments = serializers.DictField(required=False, default=dict)
    user = TextField(max_length=150, required=False, help_text="A username; yours where left out.")
    role = TextField(max_length=31, required=False, help_text="Id; the personal agent's where left out.")
    group = TextField(max_length=31, required=False, help_text="Id.")
    delegated_permissions = GivenSerializer(required=False, allow_null=True, default=None)


class ConsideredSerializer(serializers.Serializer):
    layer = serializers.CharField()
    id = serializers.CharField(allow_null=True)
    name = serializers.CharField()
    spoke = serializers.BooleanField()
    why = serializers.CharField()


class AnswerSerializer(serializers.Serializer):
    effect = serializers.ChoiceField(Effect.choices)
    reason_code = serializers.CharField()
    message = serializers.CharField()
    matched = serializers.ListField(child=serializers.CharField())
    capability = serializers.CharField(allow_null=True)
    rule = serializers.CharField(source="rule_id", allow_null=True)
    grant = serializers.CharField(source="grant_id", allow_null=True)
    timeout = serializers.IntegerField(allow_null=True, help_text="Seconds to decide in.")
    deciders_needed = serializers.IntegerField()
    unlockable = serializers.BooleanField(help_text="Whether an approval could turn it into allow.")
    considered = ConsideredSerializer(many=True, help_text="Everything that was asked, in order.")
