"""Groups, roles, projects and tokens as JSON."""

from rest_framework import serializers

from common import redact
from common.api.views import StrictSerializer, TextField
from groups.models import Group, GroupMember, Project, Role, RoutingExample, Token
from groups.models.groups import ExampleKind


class ProjectSerializer(serializers.ModelSerializer):
    class Meta:
        model = Project
        fields = [
            "id",
            "slug",
            "name",
            "review_deposits",
            "allow_self_approval",
            "published",
            "approval_profile",
            "created_at",
        ]
        read_only_fields = fields


class RoleSerializer(serializers.ModelSerializer):
    class Meta:
        model = Role
        fields = [
            "id",
            "name",
            "description",
            "system_prompt",
            "allowed_tools",
            "denied_tools",
            "delegable_tools",
            "model",
            "not_known_yet",
            "created_at",
        ]
        read_only_fields = fields


class SeatSerializer(serializers.ModelSerializer):
    role = serializers.CharField(source="role_id")
    name = serializers.CharField(source="role.name", help_text="The role's name.")
    description = serializers.CharField(source="role.description")
    agent = serializers.CharField(source="agent_instance_id")

    class Meta:
        model = GroupMember
        fields = ["id", "role", "name", "description", "agent", "ordinal", "is_lead"]
        read_only_fields = fields


class MemberSerializer(SeatSerializer):
    group = serializers.CharField(source="group_id")

    class Meta(SeatSerializer.Meta):
        fields = ["id", "group", *SeatSerializer.Meta.fields[1:]]
        read_only_fields = fields


class ExampleSerializer(serializers.ModelSerializer):
    group = serializers.CharField(source="group_id")
    goal = serializers.SerializerMethodField(help_text="Without keys.")
    fits = serializers.SerializerMethodField()
    source_run = serializers.CharField(source="source_run_id", allow_null=True)
    corrected_by = serializers.CharField(source="corrected_by.username", default=None, allow_null=True)

    class Meta:
        model = RoutingExample
        fields = ["id", "group", "goal", "fits", "source_run", "corrected_by", "created_at"]
        read_only_fields = fields

    def get_goal(self, example: RoutingExample) -> str:
        return redact.shown(example.goal)

    def get_fits(self, example: RoutingExample) -> bool:
        return example.kind == ExampleKind.FITS


class TokenSerializer(serializers.ModelSerializer):
    scopes = serializers.ListField(child=serializers.CharField(), help_text="How far it reaches.")

    class Meta:
        model = Token
        fields = ["id", "name", "prefix", "scopes", "expires_at", "last_used_at", "revoked_at", "created_at"]
        read_only_fields = fields


class IssuedSerializer(TokenSerializer):
    secret = serializers.CharField(required=False, help_text="Told once.")

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class GroupSerializer(serializers.ModelSerializer):
    project = serializers.CharField(source="project_id")
    members = SeatSerializer(many=True, help_text="In speaking order; the lead speaks last.")
    capabilities = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Group
        fields = [
            "id",
            "project",
            "name",
            "description",
            "capabilities",
            "members",
            "max_rounds",
            "active",
            "published",
            "created_at",
        ]
        read_only_fields = fields


class RouteRequestSerializer(StrictSerializer):
    project = TextField(max_length=63, help_text="Id or slug.")
    goal = TextField(max_length=50_000)


class ScoreSerializer(serializers.Serializer):
    group_id = serializers.CharField()
    name = serializers.CharField()
    score = serializers.FloatField(help_text="0 to 1.")
    fits = serializers.BooleanField(help_text="Good enough for an agent to escalate of its own accord.")
    matched = serializers.ListField(child=serializers.CharField(), help_text="What spoke for it.")


class RoutedSerializer(serializers.Serializer):
    group = serializers.CharField(allow_null=True, help_text="Where the goal would go; null: no group.")
    scores = ScoreSerializer(many=True)
