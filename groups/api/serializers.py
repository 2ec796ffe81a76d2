"""Groups, roles and projects as JSON."""

from rest_framework import serializers

from config.api.views import StrictSerializer, TextField
from groups.models import Group, GroupMember, Project, Role


class ProjectSerializer(serializers.ModelSerializer):
    class Meta:
        model = Project
        fields = ["id", "slug", "name", "review_deposits", "allow_self_approval", "created_at"]
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
        fields = ["role", "name", "description", "agent", "ordinal", "is_lead"]
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
