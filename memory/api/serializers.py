"""Memories as JSON, and the bodies that write and curate them."""

from typing import Any

from rest_framework import serializers

from common import redact
from common.api.views import StrictSerializer, TextField
from memory.models import Memory, MemoryType
from memory.write import MOST_CHARACTERS

KNOWLEDGE, PREFERENCE = "knowledge", "preference"
MOST_MERGED = 100


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

    def to_representation(self, memory: Memory) -> dict[str, Any]:
        """Without the keys in its texts; agents read them."""
        said: dict[str, Any] = super().to_representation(memory)
        return said | {name: redact.masked(said[name]) for name in ("content", "metadata")}


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


class MemoryChange(StrictSerializer):
    content = TextField(max_length=MOST_CHARACTERS)
    metadata = serializers.DictField(required=False, help_text="Without what the platform itself stamps.")
    importance = serializers.FloatField(required=False, min_value=0, max_value=1)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class MemoryInput(MemoryChange):
    kind = serializers.ChoiceField(
        [
            (KNOWLEDGE, "Of a project, or of the organization where none is named"),
            (PREFERENCE, "Your own, for your personal agent"),
        ],
        required=False,
        default=KNOWLEDGE,
    )
    project = TextField(max_length=63, required=False, allow_null=True, default=None, help_text="Id or slug.")


class SupersedeInput(StrictSerializer):
    content = TextField(max_length=MOST_CHARACTERS)


class MergeInput(StrictSerializer):
    memories = serializers.ListField(
        child=TextField(max_length=31),
        min_length=1,
        max_length=MOST_MERGED,
        help_text="Those that join this one.",
    )
