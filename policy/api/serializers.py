"""Rules as JSON."""

from rest_framework import serializers

from policy.models import CapabilityRule


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
