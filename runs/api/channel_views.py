"""The channels by which one is told: the actions of one's own page, for programs that speak as one."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common.api.idempotency import KEYED, REUSED, once
from common.api.pagination import OldestFirst
from common.api.schema import documented
from common.api.views import ApiView, StrictBoolean, StrictSerializer, TextField, accepted
from runs.actions import channels
from runs.api.refusals import as_problems
from runs.models import Channel, Topic

NOT_ALLOWED = {403: {"NOT_THE_PERSON": "Only a person, or a program that speaks as them, arranges these."}}
WORDS = "It takes the scope `speak_as_person` as well: an agent does not arrange how its person is told."
EXAMPLE = {"kind": "chat", "address": "ntfys://ntfy.example.org/deputy", "topics": ["approvals", "own"]}


class ChannelSerializer(serializers.ModelSerializer):
    address = serializers.CharField(
        source="shown", help_text="What may be seen of it; empty for the e-mail of one's account."
    )
    topics = serializers.ListField(child=serializers.ChoiceField(Topic.choices))
    problem = serializers.CharField(help_text="Why the last message did not leave; empty where it did.")

    class Meta:
        model = Channel
        fields = [
            *("id", "kind", "name", "address", "topics", "enabled", "failing_since", "problem"),
            *("told_at", "created_at"),
        ]
        read_only_fields = fields


class TopicsField(serializers.ListField):
    child = serializers.ChoiceField(Topic.choices)


class ChannelInput(StrictSerializer):
    kind = TextField(max_length=40, help_text="`chat`, `push`, or the name of a package's notifier.")
    address = TextField(
        max_length=2000,
        help_text="Of a chat as the Apprise library writes it; of a browser its subscription as JSON. Kept "
        "encrypted and never shown again.",
    )
    name = TextField(max_length=100, required=False, allow_blank=True)
    topics = TopicsField(required=False, max_length=len(Topic))


class ChannelChange(StrictSerializer):
    enabled = StrictBoolean(required=False)
    topics = TopicsField(required=False, max_length=len(Topic))


class TriedSerializer(serializers.Serializer):
    problem = serializers.CharField(help_text="Why it did not leave; empty where it did.")


class ChannelView(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    area = "channels"
    serializer_class = ChannelSerializer
    queryset = Channel.objects.none()
    filter_backends = ()
    pagination_class = OldestFirst
    lookup_value_regex = "chn_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Channel]:
        found: QuerySet[Channel] = channels.own(self.request.actor)
        return found

    @documented("The channels by which you are told")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        channels.with_email(request.actor)
        return super().list(request)

    @documented("A channel of yours")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Add a channel",
        ChannelSerializer,
        status=201,
        request=ChannelInput,
        parameters=[KEYED],
        refusals={**REUSED, **NOT_ALLOWED, 409: {"TOO_MANY_CHANNELS": "You have ten channels."}},
        description=f"The same address again is the same channel, anew. {WORDS}",
        examples=[OpenApiExample("A topic of ntfy", value=EXAMPLE, request_only=True)],
    )
    def create(self, request: Any) -> Response:
        asked = accepted(ChannelInput, request)

        def act() -> Response:
            with as_problems():
                channel = channels.add_own(request.actor, **asked)
            location = reverse("api-channel-detail", [channel.pk], request=request)
            return Response(self._shown(channel.pk), status=201, headers={"Location": location})

        return once(request, act)

    @documented(
        "Change what a channel tells of, or switch it on or off",
        ChannelSerializer,
        request=ChannelChange,
        refusals=NOT_ALLOWED,
        description=WORDS,
    )
    def partial_update(self, request: Any, pk: str) -> Response:
        asked, channel = accepted(ChannelChange, request, partial=True), self._found(pk)
        enabled, topics = asked.get("enabled", channel.enabled), asked.get("topics", channel.topics)
        with as_problems():
            channels.change_own(request.actor, pk, enabled, topics)
        return Response(self._shown(pk))

    @documented(
        "Remove a channel",
        {204: None},
        refusals=NOT_ALLOWED,
        description=f"That of one's e-mail is switched off, and not removed. {WORDS}",
    )
    def destroy(self, request: Any, pk: str) -> Response:
        self._found(pk)
        with as_problems():
            channels.remove_own(request.actor, pk)
        return Response(status=204)

    @documented(
        "Send a test",
        TriedSerializer,
        request=None,
        refusals={**NOT_ALLOWED, 429: {"TOO_MANY_TRIES": "Wait as long as the message says."}},
        description=f"The answer comes when it has left or has failed. {WORDS}",
    )
    @action(detail=True, methods=["post"])
    def test(self, request: Any, pk: str) -> Response:
        channel = self._found(pk)
        with as_problems():
            problem = channels.try_channel(request.actor, channel)
        return Response(TriedSerializer({"problem": problem}).data)

    def _found(self, pk: str) -> Channel:
        channel: Channel = self.get_object_or_404(self.get_queryset(), pk=pk)
        return channel

    def _shown(self, pk: str) -> Any:
        return ChannelSerializer(self._found(pk)).data
