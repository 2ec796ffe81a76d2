"""Rules, capabilities, bindings and standing approvals as JSON, and the bodies that arrange them."""

from django.utils.functional import cached_property
from rest_framework import serializers

from common.api.views import StrictBoolean, StrictSerializer, TextField
from policy import grants
from policy.models import Capability, CapabilityRule, Grant, ToolBinding
from policy.models.rules import Effect, OnExpiry

ID = 31
MOST = 2**31 - 1


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
            "not_known_yet",
            "effect",
            "condition",
            "timeout_seconds",
            "on_expiry",
            "deciders_needed",
            "deciders",
            "in_order",
            "shadow",
            "active",
            "limited",
            "created_at",
        ]
        read_only_fields = fields


class RuleInput(StrictSerializer):
    effect = serializers.ChoiceField(Effect.choices)
    capability = TextField(
        max_length=64, required=False, allow_null=True, help_text="Its name. A capability or a tool."
    )
    tool = TextField(max_length=64, required=False, allow_blank=True)
    condition = TextField(
        max_length=10_000, required=False, allow_blank=True, help_text="CEL, on the arguments."
    )
    project = TextField(
        max_length=63, required=False, allow_null=True, help_text="Id or slug; null: every one."
    )
    group = TextField(max_length=ID, required=False, allow_null=True)
    role = TextField(max_length=ID, required=False, allow_null=True)
    name = TextField(max_length=200, required=False, allow_blank=True)
    timeout_seconds = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MOST, help_text="null: the deployment's."
    )
    on_expiry = serializers.ChoiceField(OnExpiry.choices, required=False)
    deciders_needed = serializers.IntegerField(required=False, min_value=1, max_value=32_767)
    deciders = serializers.ListField(
        child=TextField(max_length=80),
        required=False,
        max_length=50,
        help_text="Who may decide: run.user, project.owner, role:…, member:… None: all who decide.",
    )
    in_order = StrictBoolean(required=False, help_text="They are told one after the other.")
    not_known_yet = StrictBoolean(required=False, help_text="Accept a tool that Deputy does not know yet.")
    shadow = StrictBoolean(required=False, help_text="Recorded, not applied.")
    active = StrictBoolean(required=False)
    limited = StrictBoolean(
        required=False,
        help_text="It asks for no less than rules of all projects: always so where a member of some projects "
        "arranged it last.",
    )


class CapabilitySerializer(serializers.ModelSerializer):
    class Meta:
        model = Capability
        fields = ["id", "name", "description", "created_at"]
        read_only_fields = fields


class CapabilityInput(StrictSerializer):
    name = TextField(max_length=64, help_text="Letters, digits, - and _.")
    description = TextField(max_length=10_000, required=False, allow_blank=True)


class BindingSerializer(serializers.ModelSerializer):
    capability = serializers.CharField(source="capability.name")

    class Meta:
        model = ToolBinding
        fields = ["id", "pattern", "capability", "not_known_yet", "created_at"]
        read_only_fields = fields


class BindingInput(StrictSerializer):
    pattern = TextField(max_length=64, help_text="A tool's name; * stands for any characters.")
    capability = TextField(max_length=64, help_text="Its name.")
    not_known_yet = StrictBoolean(required=False, help_text="Accept a tool that Deputy does not know yet.")


class GrantSerializer(serializers.ModelSerializer):
    project = serializers.CharField(source="project_id")
    arguments = serializers.DictField(help_text="The values these must have, exactly.")
    free = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Which others there may be: those of the call that was approved with it. null: any.",
    )
    granted_by = serializers.CharField(source="granted_by.username")
    uses = serializers.IntegerField(source="uses_total")
    void = serializers.SerializerMethodField(
        help_text="Why it does not count now, ended or not: who made it could make it no more. null where "
        "they could."
    )

    class Meta:
        model = Grant
        fields = [
            "id",
            "project",
            "tool",
            "arguments",
            "free",
            "any_arguments",
            "reason",
            "granted_by",
            "expires_at",
            "max_uses",
            "uses",
            "revoked_at",
            "void",
            "created_at",
        ]
        read_only_fields = fields

    def get_void(self, grant: Grant) -> str | None:
        return self._void.get(grant.pk)

    @cached_property
    def _void(self) -> dict[str, str]:
        """Of all that are shown together."""
        return grants.void([self.instance] if self.parent is None else self.parent.instance)


class GrantInput(StrictSerializer):
    project = TextField(max_length=63, help_text="Id or slug.")
    tool = TextField(max_length=64)
    arguments = serializers.DictField(
        required=False, help_text="The values these must have, exactly; others are free."
    )
    any_arguments = StrictBoolean(required=False, help_text="Whatever the arguments are.")
    reason = TextField(max_length=5_000, required=False, allow_blank=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    max_uses = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=1_000_000)
