"""Runs, events, approvals and tools as JSON, and the bodies that are accepted."""

from typing import Any

from drf_spectacular.helpers import lazy_serializer
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common import redact
from common.api.views import ShownSerializer, StrictBoolean, StrictSerializer, TextField
from memory.context.models import PageKind, SegmentPermission, SegmentType
from policy.models.rules import Effect
from runs.actions.message import MAX_CONTENT
from runs.actions.start import MAX_CONTEXT, MAX_GOAL
from runs.models import Approval, ApprovalDecision, Run, RunEvent, Wait
from runs.models.choices import Driver
from runs.observe import showing

MAX_REASON = 5_000
MAX_SEQ = 2**31 - 1

SAID = ("goal", "context", "output", "error")  # of a run, by people and models: may hold secrets
SOURCES = ("user", "organization", "outside", "unknown")


class RunErrorSerializer(serializers.Serializer):
    code = serializers.CharField()
    message = serializers.CharField()


class PermissionsSerializer(serializers.Serializer):
    allowed_tools = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null: no restriction; []: nothing."
    )
    denied_tools = serializers.ListField(child=serializers.CharField())


class WaitSerializer(ShownSerializer):
    """Something the run waits for now, and the key that resolves it."""

    tool = serializers.CharField(source="tool_call.tool", default=None, allow_null=True)
    call_id = serializers.CharField(source="tool_call.call_id", default=None, allow_null=True)
    child = serializers.CharField(source="child_run_id", allow_null=True)
    approval = serializers.SerializerMethodField()

    class Meta:
        model = Wait
        fields = [
            "kind",
            "correlation_key",
            "tool",
            "call_id",
            "child",
            "approval",
            "expires_at",
            "created_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_approval(self, wait: Wait) -> str | None:
        pending: dict[tuple[str, str], str] = self.context.get("pending", {})
        return pending.get((wait.run_id, wait.correlation_key))


class RunSummarySerializer(ShownSerializer):
    project = serializers.CharField(source="project_id")
    user = serializers.CharField(source="user.username", help_text="Whom the run works for.")
    parent = serializers.CharField(source="parent_run_id", allow_null=True)
    root = serializers.CharField(source="root_id")
    group = serializers.CharField(source="group_id", allow_null=True)
    error = RunErrorSerializer(allow_null=True)
    usage = serializers.DictField(child=serializers.IntegerField())

    class Meta:
        model = Run
        fields = [
            "id",
            "project",
            "user",
            "parent",
            "root",
            "depth",
            "kind",
            "driver",
            "group",
            "session_key",
            "goal",
            "status",
            "waiting_reason",
            "output",
            "error",
            "usage",
            "created_at",
            "started_at",
            "ended_at",
        ]
        read_only_fields = fields

    def to_representation(self, run: Run) -> dict[str, Any]:
        said: dict[str, Any] = super().to_representation(run)
        return said | {name: redact.masked(said[name]) for name in SAID if name in said}


class WithWaits(RunSummarySerializer):
    waits = serializers.SerializerMethodField(help_text="What the run waits for now.")

    @extend_schema_field(WaitSerializer(many=True))
    def get_waits(self, run: Any) -> Any:
        pending = {(a.run_id, a.correlation_key): a.pk for a in run.pending_approvals}
        return WaitSerializer(run.open_waits, many=True, context={"pending": pending}).data


class DoingSerializer(serializers.Serializer):
    """What the run is at without a person: since when, and how many are before it where it waits its turn."""

    kind = serializers.ChoiceField(["model", "tool", "worker"])
    name = serializers.CharField(help_text="The model or the tool.")
    since = serializers.DateTimeField()
    under_way = serializers.BooleanField(help_text="false: it waits for its turn.")
    before = serializers.IntegerField(help_text="How many wait for the same and came before.")


class RunSerializer(WithWaits):
    doing = serializers.SerializerMethodField(help_text="null while a worker has it, it waits, or has ended.")
    role = serializers.CharField(source="role_id", allow_null=True)
    agent = serializers.CharField(source="agent_instance_id", allow_null=True)
    budgets = serializers.DictField(child=serializers.IntegerField())
    delegated_permissions = PermissionsSerializer(
        allow_null=True, help_text="What the parent passed on; null on a personal agent's run."
    )

    class Meta(RunSummarySerializer.Meta):
        fields = [
            *RunSummarySerializer.Meta.fields,
            "context",
            "role",
            "agent",
            "budgets",
            "deadline",
            "delegated_permissions",
            "last_seq",
            "doing",
            "waits",
        ]
        read_only_fields = fields

    @extend_schema_field(DoingSerializer(allow_null=True))
    def get_doing(self, run: Run) -> Any:
        found = self.context.get("doing")
        return DoingSerializer(found).data if found else None


class RunNodeSerializer(WithWaits):
    """A run with everything below it."""

    children = serializers.SerializerMethodField()

    class Meta(RunSummarySerializer.Meta):
        fields = [*RunSummarySerializer.Meta.fields, "waits", "children"]
        read_only_fields = fields

    @extend_schema_field(lazy_serializer("runs.api.serializers.RunNodeSerializer")(many=True))
    def get_children(self, run: Run) -> Any:
        below: dict[str | None, list[Run]] = self.context["below"]
        return RunNodeSerializer(below.get(run.pk, []), many=True, context=self.context).data


class EventSerializer(ShownSerializer):
    run = serializers.CharField(source="run_id")

    class Meta:
        model = RunEvent
        fields = ["run", "seq", "type", "agent", "payload", "created_at", "digest"]
        read_only_fields = fields

    def to_representation(self, event: RunEvent) -> dict[str, Any]:
        """The digest is that of the payload as stored, without anything masked. `own` in the context: for the
        person the run works for.
        """
        said = super().to_representation(event)
        return {**said, "payload": showing.payload(event.type, event.payload, self.context["own"])}


class EventPageSerializer(serializers.Serializer):
    results = EventSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class StreamedEventSerializer(serializers.Serializer):
    """One server-sent event of a stream."""

    id = serializers.CharField(required=False, help_text="`{run}:{seq}`; for Last-Event-ID.")
    event = serializers.ChoiceField(
        ["message", "delta", "end", "resync"], help_text="`message` where it is left out."
    )
    data = serializers.CharField(
        help_text="JSON: an event as `events/` has it; of a delta {run, agent, after, text}; else `{}`."
    )


class WordSerializer(ShownSerializer):
    user = serializers.CharField(source="user.username")

    class Meta:
        model = ApprovalDecision
        fields = ["user", "approved", "as_human", "via", "arguments_digest", "reason", "created_at"]
        read_only_fields = fields


class ApprovalSerializer(ShownSerializer):
    run = serializers.CharField(source="run_id")
    project = serializers.CharField(source="run.project_id")
    user = serializers.CharField(source="run.user.username", help_text="Whom the run works for.")
    tool = serializers.CharField(source="tool_call.tool")
    call_id = serializers.CharField(source="tool_call.call_id")
    agent = serializers.CharField(source="tool_call.agent")
    arguments = serializers.DictField(help_text="Exactly what will run once approved.")
    decided_by = serializers.CharField(source="decided_by.username", default=None, allow_null=True)
    edited_arguments = serializers.DictField(allow_null=True)
    deciders = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Lists of names, each of which every decider must be on; empty: whoever decides approvals.",
    )
    replaces = serializers.CharField(
        source="replaces_id", allow_null=True, help_text="The approval it was asked for in the place of."
    )
    decisions = WordSerializer(many=True, help_text="Every decider's word, also before it suffices.")

    class Meta:
        model = Approval
        fields = [
            "id",
            "run",
            "project",
            "user",
            "agent",
            "tool",
            "call_id",
            "arguments",
            "arguments_digest",
            "capability",
            "effect",
            "rule",
            "explanation",
            "correlation_key",
            "status",
            "requested_at",
            "expires_at",
            "decided_at",
            "decided_by",
            "decided_as_human",
            "reason",
            "edited_arguments",
            "deciders_needed",
            "deciders",
            "replaces",
            "decisions",
            "on_expiry",
            "consumed_at",
        ]
        read_only_fields = fields


class PassageSerializer(serializers.Serializer):
    run = serializers.CharField()
    event = serializers.IntegerField(help_text="The seq of the event that brought the message or the result.")
    field = serializers.CharField(help_text="The place within a result; empty in a message.")
    before = serializers.CharField()
    marked = serializers.CharField(help_text="The passage itself.")
    after = serializers.CharField()
    source = serializers.ChoiceField(SOURCES)
    how = serializers.CharField(help_text="How it was found, where not as it stands: part, date, base64, …")
    why = serializers.CharField(help_text="Why a passage of the organization counts for less.")


class OriginSerializer(serializers.Serializer):
    argument = serializers.CharField(help_text="The argument, or the path of a value inside it.")
    value = serializers.CharField()
    source = serializers.ChoiceField(SOURCES)
    steers = serializers.BooleanField(help_text="Whether it decides where the effect goes.")
    doubtful = serializers.BooleanField(
        help_text="Steers, and neither the person nor the organization said it."
    )
    why = serializers.CharField()
    passages = PassageSerializer(many=True)


class OriginsSerializer(serializers.Serializer):
    values = OriginSerializer(many=True)
    asked_for = serializers.BooleanField(
        help_text="Whether the person's own words ask for what the tool does."
    )
    rights = serializers.ListField(child=serializers.CharField(), help_text="What those words ask for.")
    read_outside = serializers.BooleanField(
        help_text="Whether the run had read what outsiders may have written."
    )


class StartSerializer(StrictSerializer):
    project = TextField(max_length=63, help_text="Id or slug.")
    goal = TextField(max_length=MAX_GOAL, help_text="What is to be done.")
    context = TextField(max_length=MAX_CONTEXT, required=False, allow_blank=True, default="")
    session_key = TextField(
        max_length=200,
        required=False,
        allow_blank=True,
        default="",
        help_text="Runs of one user and project with the same key continue one conversation.",
    )
    driver = serializers.ChoiceField(Driver.choices, required=False, default=Driver.INTERNAL.value)
    group = TextField(
        max_length=64,
        required=False,
        allow_null=True,
        default=None,
        help_text="The id of the group that is wanted for it; the agent is told to escalate to it.",
    )


class ForkSerializer(StrictSerializer):
    seq = serializers.IntegerField(min_value=1, max_value=MAX_SEQ, help_text="The event to go on from.")
    content = TextField(
        max_length=MAX_CONTEXT,
        required=False,
        allow_blank=True,
        default="",
        help_text="A further word to the agent, after that event.",
    )


DIGEST = "Of the arguments you have seen, as the approval names it."


class ReasonSerializer(StrictSerializer):
    reason = TextField(max_length=MAX_REASON, required=False, allow_blank=True, default="")


class RejectSerializer(StrictSerializer):
    arguments_digest = TextField(max_length=64, required=False, help_text=DIGEST)
    reason = TextField(max_length=MAX_REASON, help_text="The agent is told it.")


class RememberSerializer(StrictSerializer):
    """Let calls like this one pass from now on: until a time, for a number of uses, or both."""

    fixed = serializers.ListField(
        child=TextField(max_length=200, trim_whitespace=False, allow_blank=True),
        required=False,
        default=list,
        max_length=50,
        help_text="Arguments that must keep the values they have here.",
    )
    any_arguments = StrictBoolean(required=False, default=False)
    until = serializers.DateTimeField(required=False, allow_null=True, default=None)
    uses = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=1_000_000
    )


class ApproveSerializer(ReasonSerializer):
    arguments_digest = TextField(max_length=64, required=False, help_text=DIGEST)
    arguments = serializers.DictField(
        required=False, help_text="To run in place of the ones asked for. They replace them wholly."
    )
    remember = RememberSerializer(required=False)


class AnswerSerializer(ReasonSerializer):
    """What a signal says of an approval."""

    approved = StrictBoolean()
    arguments_digest = TextField(max_length=64, required=False, help_text=DIGEST)
    arguments = serializers.DictField(required=False)


class MessageSerializer(StrictSerializer):
    content = TextField(max_length=MAX_CONTENT)
    correlation_key = TextField(
        max_length=200,
        required=False,
        allow_blank=True,
        default="",
        help_text="Which open question this answers; the oldest where left out.",
    )


class SignalSerializer(StrictSerializer):
    correlation_key = TextField(max_length=200)
    payload = serializers.JSONField(
        required=False,
        allow_null=True,
        default=None,
        help_text="For an approval: {approved: true|false, arguments_digest, reason?, arguments?}.",
    )


class MessageTakenSerializer(serializers.Serializer):
    run = serializers.CharField()
    state = serializers.ChoiceField(
        [("delivered", "It answered a question"), ("kept", "The agent reads it next")]
    )


class ResolvedSerializer(serializers.Serializer):
    run = serializers.CharField()
    correlation_key = serializers.CharField()
    outcome = serializers.CharField(
        help_text=(
            "completed, approved or rejected; pending while further deciders are needed; kept while the run "
            "does not wait for it."
        )
    )
    resolved_at = serializers.DateTimeField(allow_null=True)


class DecisionSerializer(serializers.Serializer):
    effect = serializers.ChoiceField(Effect.choices)
    reason_code = serializers.CharField()
    message = serializers.CharField()
    rule = serializers.CharField(allow_null=True)
    depends_on_arguments = serializers.BooleanField(
        help_text="A rule with a condition may decide otherwise once the arguments are known."
    )


class ToolSerializer(serializers.Serializer):
    name = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.DictField(help_text="JSON Schema of the arguments.")
    risk_level = serializers.ChoiceField(["low", "medium", "high"])
    mutating = serializers.BooleanField()
    idempotent = serializers.BooleanField()
    supports_parallel = serializers.BooleanField()
    capabilities = serializers.ListField(child=serializers.CharField())
    decision = DecisionSerializer(
        required=False, help_text="With ?run=: what its agent would be told if it called the tool now."
    )


class ToolListSerializer(serializers.Serializer):
    results = ToolSerializer(many=True)


class PageSerializer(serializers.Serializer):
    """A page, and those in it where it is open. A folded one keeps its words to itself."""

    index = serializers.CharField()
    kind = serializers.ChoiceField(PageKind.choices)
    name = serializers.CharField()
    description = serializers.CharField()
    detail = serializers.CharField()
    folded = serializers.BooleanField()
    page_count = serializers.IntegerField(help_text="How many pages it holds, seen or not.")
    pages = serializers.SerializerMethodField()

    @extend_schema_field(lazy_serializer("runs.api.serializers.PageSerializer")(many=True))
    def get_pages(self, page: dict[str, Any]) -> Any:
        return page["pages"]


class SegmentSerializer(serializers.Serializer):
    segment_id = serializers.CharField()
    name = serializers.CharField()
    type = serializers.ChoiceField(SegmentType.choices)
    permission = serializers.ChoiceField(SegmentPermission.choices)
    page = PageSerializer()


class ViewSerializer(serializers.Serializer):
    run = serializers.CharField(source="run_id")
    agent = serializers.CharField(help_text="Whose view it is.")
    role = serializers.CharField()
    at = serializers.IntegerField(source="seq", help_text="The last event it is the sum of.")
    version = serializers.IntegerField(
        allow_null=True, help_text="How many changes made it; null: nothing had changed it."
    )
    tokens = serializers.IntegerField(source="rendered.tokens", help_text="Estimated.")
    text = serializers.CharField(source="rendered.text", help_text="As it stands in the prompt.")
    segments = SegmentSerializer(source="structure", many=True)


class OperationSerializer(StrictSerializer):
    operation = TextField(max_length=64)
    arguments = serializers.DictField(required=False, default=dict)
    agent = TextField(max_length=64, required=False, allow_blank=True, default="")


class OperationDoneSerializer(serializers.Serializer):
    operation = serializers.CharField()
    result = serializers.DictField()
