"""Calls of outside agents as JSON, and the bodies that are accepted."""

from typing import Any

from rest_framework import serializers

from common.api.views import StrictSerializer, TextField
from runs.actions.resolve import OUTCOMES
from runs.execution.outside_agents import AGENT_FAILED, CALL_ID, CODE, MAX_MESSAGE, MAX_NAME, MAX_OUTPUT
from runs.models import ToolCall
from runs.models.choices import CallStatus, WaitKind
from runs.observe import showing


class CallRequestSerializer(StrictSerializer):
    call_id = TextField(
        max_length=64, trim_whitespace=False, help_text="Yours: 1 to 64 visible ASCII characters."
    )
    name = TextField(max_length=MAX_NAME, trim_whitespace=False, help_text="The tool.")
    arguments = serializers.DictField(required=False, default=dict)

    def validate_call_id(self, value: str) -> str:
        if not CALL_ID.fullmatch(value):
            raise serializers.ValidationError("A call id is visible ASCII.", "BAD_CALL_ID")
        return value


class WaitsForSerializer(serializers.Serializer):
    kind = serializers.ChoiceField(WaitKind.choices)
    correlation_key = serializers.CharField()
    expires_at = serializers.DateTimeField(allow_null=True)
    child_run = serializers.CharField(allow_null=True)
    approval = serializers.CharField(allow_null=True)
    question = serializers.CharField(allow_null=True)


class CallErrorSerializer(serializers.Serializer):
    code = serializers.CharField()
    message = serializers.CharField()

    def to_representation(self, instance: Any) -> Any:
        return instance  # with whatever details there are


class CallSerializer(serializers.Serializer):
    run = serializers.CharField()
    call_id = serializers.CharField()
    name = serializers.CharField()
    arguments = serializers.DictField(help_text="What ran or will run: an approval may have changed them.")
    status = serializers.ChoiceField(CallStatus.choices)
    result = serializers.JSONField(allow_null=True)
    error = CallErrorSerializer(allow_null=True)
    waits_for = WaitsForSerializer(allow_null=True)

    def to_representation(self, instance: Any) -> Any:
        """Whole for whom the run works for: their agent goes on with it."""
        said, own = super().to_representation(instance), self.context["own"]
        return said if own else for_reader(said, own)


class CallSummarySerializer(serializers.ModelSerializer):
    name = serializers.CharField(source="tool")
    arguments = serializers.DictField(source="effective_arguments")
    error = CallErrorSerializer(allow_null=True)

    class Meta:
        model = ToolCall
        fields = ["call_id", "name", "agent", "arguments", "status", "error", "created_at", "ended_at"]
        read_only_fields = fields

    def to_representation(self, instance: Any) -> Any:
        return for_reader(super().to_representation(instance), self.context["own"])


def for_reader(said: dict[str, Any], own: bool) -> dict[str, Any]:
    """A call as a reader may see it."""
    words = ("arguments", "result", "error")
    return said | {name: showing.call(said["name"], said[name], own) for name in words if name in said}


class CompleteSerializer(StrictSerializer):
    output = TextField(max_length=MAX_OUTPUT, allow_blank=True, help_text="What the run leaves.")


class FailSerializer(StrictSerializer):
    message = TextField(max_length=MAX_MESSAGE, help_text="What went wrong.")
    code = serializers.RegexField(
        f"^{CODE.pattern}\\Z", required=False, default=AGENT_FAILED, help_text="Capital letters."
    )


class WordOnCallSerializer(StrictSerializer):
    outcome = serializers.ChoiceField(OUTCOMES)
    correlation_key = TextField(
        max_length=200,
        required=False,
        default="",
        help_text="What the call waits for, as `waits_for` has it: needed once it was interrupted again.",
    )
    result = serializers.JSONField(required=False, allow_null=True, default=None)
    message = TextField(max_length=MAX_MESSAGE, required=False, allow_blank=True, default="")
