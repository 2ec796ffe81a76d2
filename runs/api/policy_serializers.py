"""An AuthZEN evaluation request, and the decision with its reasons."""

from rest_framework import serializers

from common.api.views import StrictSerializer, TextField

SUBJECTS = ("user", "agent", "role")
RESOURCES = ("project", "group")
MAX_NAMES = 500


class DelegatedSerializer(StrictSerializer):
    allowed_tools = serializers.ListField(
        child=TextField(max_length=64), required=False, allow_null=True, max_length=MAX_NAMES
    )
    denied_tools = serializers.ListField(child=TextField(max_length=64), required=False, max_length=MAX_NAMES)


class SubjectPropertiesSerializer(StrictSerializer):
    user = TextField(
        max_length=150, required=False, help_text="Whom an agent or a role works for; you, unless named."
    )
    role = TextField(max_length=31, required=False, help_text="A role's id, in place of the agent's own.")
    delegated_permissions = DelegatedSerializer(
        required=False,
        help_text="What the parent passed on; unless named, what the user's agent could.",
    )


class SubjectSerializer(StrictSerializer):
    type = serializers.ChoiceField(SUBJECTS, help_text="user: the personal agent of this user.")
    id = TextField(max_length=150, help_text="A username, an agent's id or a role's id.")
    properties = SubjectPropertiesSerializer(required=False)


class ActionPropertiesSerializer(StrictSerializer):
    arguments = serializers.DictField(required=False, help_text="What the tool would be called with.")


class ActionSerializer(StrictSerializer):
    name = TextField(max_length=64, help_text="The tool.")
    properties = ActionPropertiesSerializer(required=False)


class ResourceSerializer(StrictSerializer):
    type = serializers.ChoiceField(RESOURCES, help_text="Where the call is made.")
    id = TextField(max_length=63, help_text="A project's id or slug, or a group's id.")


class EvaluationRequestSerializer(StrictSerializer):
    subject = SubjectSerializer()
    action = ActionSerializer()
    resource = ResourceSerializer()
    context = serializers.DictField(
        required=False, help_text="Accepted, as AuthZEN has it; nothing rests on it."
    )


class ConsideredSerializer(serializers.Serializer):
    layer = serializers.CharField(help_text="delegated, boundary, role, risk, rule, grant or approval.")
    id = serializers.CharField(allow_null=True)
    name = serializers.CharField()
    spoke = serializers.BooleanField()
    why = serializers.CharField(help_text="What it said, or why it said nothing.")


class ShadowedSerializer(serializers.Serializer):
    rule_id = serializers.CharField()
    effect = serializers.CharField()
    error = serializers.CharField(allow_null=True)


class ArgumentProblemSerializer(serializers.Serializer):
    path = serializers.CharField(help_text="JSON Pointer into the arguments.")
    problem = serializers.CharField()


class ReasonsSerializer(serializers.Serializer):
    reason = serializers.CharField(help_text="In words.")
    reason_code = serializers.CharField()
    effect = serializers.CharField(help_text="allow, require_approval, require_human or deny.")
    rule = serializers.CharField(allow_null=True)
    matched = serializers.ListField(child=serializers.CharField())
    capability = serializers.CharField(allow_null=True)
    capabilities = serializers.ListField(child=serializers.CharField())
    unlockable = serializers.BooleanField(help_text="Whether an approval would let the call run.")
    deciders = serializers.CharField(help_text="Who could approve it, in words.")
    deciders_needed = serializers.IntegerField()
    may_decide = serializers.ListField(child=serializers.CharField(), help_text="Who could today.")
    timeout = serializers.IntegerField(allow_null=True, help_text="Seconds; null: the deployment's.")
    on_expiry = serializers.CharField()
    considered = ConsideredSerializer(many=True)
    shadowed = ShadowedSerializer(many=True)
    problems = ArgumentProblemSerializer(many=True, help_text="What keeps the arguments from fitting.")
    delegated_permissions = serializers.DictField(allow_null=True)
    policy = serializers.CharField(help_text="Digest of the rules and roles it rests on.")


class EvaluationSerializer(serializers.Serializer):
    decision = serializers.BooleanField(help_text="true: the call would run now, without anybody's approval.")
    context = ReasonsSerializer()
