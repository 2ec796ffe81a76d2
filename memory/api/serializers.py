"""Memories as JSON."""

from rest_framework import serializers

from memory.models import Memory, MemoryType


class MemorySerializer(serializers.ModelSerializer):
    user = serializers.CharField(source="user.username", default=None, allow_null=True)
    project = serializers.CharField(source="project_id", allow_null=True)
    group = serializers.CharField(source="group_id", allow_null=True)
    agent = serializers.CharField(source="agent_instance_id", allow_null=True)
    source_run = serializers.CharField(source="source_run_id", allow_null=True)
    metadata = serializers.DictField()

    class Meta:
        model = Memory
        fields = [
            "id",
            "type",
            "status",
            "content",
            "importance",
            "user",
            "project",
            "group",
            "agent",
            "source_run",
            "metadata",
            "superseded_by",
            "expires_at",
            "created_at",
        ]
        read_only_fields = fields


class HitSerializer(serializers.Serializer):
    id = serializers.CharField()
    tier = serializers.IntegerField()
    score = serializers.FloatField(help_text="Compares within a tier.")
    content = serializers.CharField()
    snippet = serializers.CharField()
    type = serializers.ChoiceField(MemoryType.choices)
    metadata = serializers.DictField()
    source_run_id = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class FoundSerializer(serializers.Serializer):
    results = HitSerializer(many=True)
