"""Runs: ask, look, steer."""

from collections import defaultdict
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common import replica
from common.api import slots
from common.api.errors import bad_query
from common.api.idempotency import KEYED, REUSED, once
from common.api.pagination import OldestFirst, whole_number
from common.api.schema import documented
from common.api.views import ApiView, accepted, only
from groups.api.views import NO_PROJECT, project_named
from runs.actions.cancel import cancel
from runs.actions.fork import fork
from runs.actions.message import message
from runs.actions.start import start
from runs.api import access, signals, stream
from runs.api.context_views import ContextActions
from runs.api.filters import RunFilter
from runs.api.readers import Reader
from runs.api.refusals import as_problems
from runs.api.serializers import (
    MAX_SEQ,
    EventPageSerializer,
    EventSerializer,
    ForkSerializer,
    MessageSerializer,
    MessageTakenSerializer,
    ReasonSerializer,
    ResolvedSerializer,
    RunNodeSerializer,
    RunSerializer,
    RunSummarySerializer,
    SignalSerializer,
    StartSerializer,
    StreamedEventSerializer,
)
from runs.models import Run, RunEvent
from runs.observe import doing

EVENT_STREAM = {(200, "text/event-stream"): StreamedEventSerializer, 204: None}
LAST = OpenApiParameter(
    "last_event_id", OpenApiTypes.STR, description="For who cannot send the header Last-Event-ID."
)
DELTAS = OpenApiParameter(
    "deltas", OpenApiTypes.STR, enum=["yes", "no"], description="Without models' words as they come: `no`."
)
FOLLOW = (
    "Server-sent events: `id: {run}:{seq}`, `data:` as in `events/`, what has happened first and then "
    "what happens. `event: end` once nothing more will come; `event: resync` before it starts over because "
    "it does not know the Last-Event-ID; `event: delta`, without an id, with words that a model is "
    "just saying; comments in between. Every ten minutes the client connects again."
)
BARE: dict[str, Any] = {"pagination_class": None, "filter_backends": []}
NOT_ENTITLED = {403: {"NOT_ENTITLED": "This is somebody else's run."}}
ENDED = {"RUN_ENDED": "The run has ended."}


class RunView(ContextActions, mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    area = "runs"
    serializer_class = RunSerializer
    queryset = Run.objects.none()
    filterset_class = RunFilter
    lookup_value_regex = "run_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Run]:
        return access.runs(self.request.membership)

    @documented("Runs, the newest first", RunSummarySerializer(many=True))
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return self._page(self.get_queryset())

    @documented(
        "Start a run",
        RunSerializer,
        status=202,
        request=StartSerializer,
        parameters=[KEYED],
        refusals={
            **REUSED,
            **NO_PROJECT,
            409: {"STORAGE_FULL": "The organization takes more of the database than its limit."},
            429: {"QUEUE_FULL": "Too many runs of the organization wait for a worker."},
        },
        description="Your personal agent works on the goal. Answers at once; follow `Location`.",
        examples=[
            OpenApiExample(
                "Ask",
                value={"project": "atlas", "goal": "What do our competitors charge?"},
                request_only=True,
            )
        ],
    )
    def create(self, request: Any) -> Response:
        asked = accepted(StartSerializer, request)
        project = project_named(request, asked.pop("project"))
        group = asked.pop("group")

        def act() -> Response:
            with as_problems():
                run_id = start(actor=request.actor, project=project, group_id=group, **asked)
            location = reverse("api-run-detail", [run_id], request=request)
            return Response(self._shown(run_id), status=202, headers={"Location": location})

        return once(request, act)

    @documented("A run")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return Response(self._shown(kwargs["pk"]))

    @documented("The runs a run started", RunSummarySerializer(many=True))
    @action(detail=True, pagination_class=OldestFirst, filterset_class=None)
    def children(self, request: Any, pk: str) -> Response:
        return self._page(self.get_queryset().filter(parent_run=self._found(pk)))

    @documented("A run and everything below it", RunNodeSerializer)
    @action(detail=True)
    def tree(self, request: Any, pk: str) -> Response:
        only(request)
        top = self._found(pk)
        whole = list(self.get_queryset().filter(root=top.root_id).defer("context").order_by("depth", "id"))
        access.read_waits(*whole)
        below: dict[str | None, list[Run]] = defaultdict(list)
        found: Run = top
        for run in whole:
            below[run.parent_run_id].append(run)
            found = run if run.pk == pk else found
        return Response(RunNodeSerializer(found, context={"below": below}).data)

    @documented(
        "What happened in a run",
        EventPageSerializer,
        parameters=[
            OpenApiParameter("after", OpenApiTypes.INT, description="Only events with a larger seq."),
            OpenApiParameter("limit", OpenApiTypes.INT, description="At most 500; 100 where left out."),
        ],
    )
    @action(detail=True, **BARE)
    def events(self, request: Any, pk: str) -> Response:
        only(request, "after", "limit")
        after = whole_number(request, "after", 0, least=0, most=MAX_SEQ)
        limit = whole_number(request, "limit", 100, least=1, most=500)
        run = self._found(pk)
        asked = RunEvent.objects.filter(run=run, seq__gt=after).order_by("seq")[: limit + 1]
        found = replica.reading(lambda alias: list(asked.using(alias)))
        page, more = found[:limit], len(found) > limit
        link = None
        if more:
            link = f"{request.build_absolute_uri(request.path)}?after={page[-1].seq}&limit={limit}"
        return Response(
            {"results": EventSerializer(page, many=True, context={"own": self._own(run)}).data, "next": link}
        )

    @documented("Follow a run", EVENT_STREAM, parameters=[LAST, DELTAS], description=FOLLOW)
    @action(detail=True, url_path="events/stream", url_name="events-stream", **BARE)
    def events_stream(self, request: Any, pk: str) -> HttpResponseBase:
        return self._streamed(stream.RunCursor, pk)

    @documented(
        "Follow a run and everything below it", EVENT_STREAM, parameters=[LAST, DELTAS], description=FOLLOW
    )
    @action(detail=True, url_path="tree/stream", url_name="tree-stream", **BARE)
    def tree_stream(self, request: Any, pk: str) -> HttpResponseBase:
        return self._streamed(stream.TreeCursor, pk)

    @documented(
        "Cancel a run and everything below it",
        RunSerializer,
        request=ReasonSerializer,
        refusals={**NOT_ENTITLED, 409: ENDED},
    )
    @action(detail=True, methods=["post"])
    def cancel(self, request: Any, pk: str) -> Response:
        asked = accepted(ReasonSerializer, request)
        run = self._found(pk)
        with as_problems():
            cancel(run.pk, request.actor, reason=asked["reason"])
        return Response(self._shown(run.pk))

    @documented(
        "Run again from an event",
        RunSerializer,
        status=202,
        request=ForkSerializer,
        parameters=[KEYED],
        refusals={
            **REUSED,
            403: {"NOT_ENTITLED": "Only the person a run works for can run it again."},
            409: {
                "NOT_A_POINT": "A call was open at this event, or nothing was left to be done.",
                "NO_SUCH_EVENT": "The run has no such event.",
                "EXTERNAL_RUN": "An outside agent drives the run.",
                "AGENT_CHANGED": "The person has another agent now, or the group other members.",
                "GROUP_NOT_ALLOWED": "By today's rules the group is not asked without a decision.",
            },
        },
        description=(
            "A new run that knows what this one knew after the event `seq`, a message or a call's result, "
            "and goes on from there with today's rights and budgets. This run is not touched, and what was "
            "done up to there is not done again. Its `run.created` says `forked_from`."
        ),
    )
    @action(detail=True, methods=["post"])
    def fork(self, request: Any, pk: str) -> Response:
        asked = accepted(ForkSerializer, request)
        run = self._found(pk)

        def act() -> Response:
            with as_problems():
                run_id = fork(run.pk, asked["seq"], request.actor, asked["content"])
            location = reverse("api-run-detail", [run_id], request=request)
            return Response(self._shown(run_id), status=202, headers={"Location": location})

        return once(request, act)

    @documented(
        "Say something to a run",
        MessageTakenSerializer,
        request=MessageSerializer,
        parameters=[KEYED],
        refusals={
            **REUSED,
            **NOT_ENTITLED,
            404: {"NO_SUCH_WAIT": "No open question has this key."},
            409: ENDED,
        },
        description=(
            "Answers an open question where there is one. Never decides an approval. Only the run's own "
            "person, in a browser session or by a token with the scope `speak_as_person`, answers and is "
            "heard as the person; what others say the agent reads as text from outside. What another server "
            "asks (a `tool.waits` with `form`) is answered only with its `correlation_key`, and only that "
            "server gets the answer; one that does not fit is refused with `INVALID_ANSWER`."
        ),
    )
    @action(detail=True, methods=["post"])
    def message(self, request: Any, pk: str) -> Response:
        asked = accepted(MessageSerializer, request)
        run = self._found(pk)

        def act() -> Response:
            with as_problems():
                taken = message(run.pk, actor=request.actor, **asked)
            return Response({"run": run.pk, "state": taken.state})

        return once(request, act)

    @documented(
        "Signal that something has come, or decide an approval",
        ResolvedSerializer,
        request=SignalSerializer,
        refusals={
            403: {**NOT_ENTITLED[403], "HUMAN_ONLY": "A service account cannot.", "OWN_RUN": "Not your own."},
            404: {"NO_SUCH_WAIT": "No approval has this key; the open ones are named."},
            409: {
                **ENDED,
                "SIGNAL_DIFFERS": "The key was resolved with another payload.",
                "ALREADY_DECIDED": "It was decided otherwise.",
                "EXPIRED": "The time to decide is over.",
                "CHANGED": "What would run is not what you have seen.",
                "BEGUN": "Its server is at work on it with the arguments it has.",
            },
            428: {"DIGEST_MISSING": "Say which arguments you decide about."},
        },
        description=(
            "A `cap-approval-…` key takes `payload.approved` and decides as the approval's own address does. "
            "Any other key resolves a wait, or is kept until the run comes to it. "
            "The same signal again is answered as the first was."
        ),
        examples=[
            OpenApiExample(
                "Approve",
                value={
                    "correlation_key": "cap-approval-3f…",
                    "payload": {"approved": True, "arguments_digest": "9f2c…"},
                },
                request_only=True,
            ),
            OpenApiExample(
                "Something has come",
                value={"correlation_key": "invoice-417", "payload": {"paid": True}},
                request_only=True,
            ),
        ],
    )
    @action(detail=True, methods=["post"])
    def signal(self, request: Any, pk: str) -> Response:
        asked = accepted(SignalSerializer, request)
        resolved = signals.deliver(request, self._found(pk), asked["correlation_key"], asked["payload"])
        return Response(ResolvedSerializer(resolved).data)

    def _found(self, pk: str) -> Run:
        run: Run = self.get_object_or_404(self.get_queryset(), pk=pk)
        return run

    def _own(self, run: Run) -> bool:
        """Whether the asker is the person the run works for."""
        return bool(run.user_id == self.request.user.pk)

    def _shown(self, pk: str) -> Any:
        run = self._found(pk)
        access.read_waits(run)
        return RunSerializer(run, context={"doing": doing.of(run)}).data

    def _streamed(self, cursor: type[stream.RunCursor | stream.TreeCursor], pk: str) -> HttpResponseBase:
        only(self.request, "last_event_id", "deltas")
        run = self._found(pk)
        last = self.request.headers.get("Last-Event-ID") or self.request.query_params.get("last_event_id", "")
        if stream.told_all(run, cursor is stream.TreeCursor, last):
            return HttpResponse(status=204)  # tells a browser not to come again
        slot = slots.take(self.request.user, self.request.auth, run.organization_id)
        reader = Reader.of_api(self.request, run)
        return StreamingHttpResponse(
            stream.events(
                cursor(run.pk, run.root_id, run.user_id), last, reader, slot, deltas=self._yes("deltas")
            ),
            content_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    def _yes(self, name: str) -> bool:
        """Whether a parameter that says yes or no says yes, as it does where it is left out."""
        said = self.request.query_params.get(name, "yes")
        if said not in ("yes", "no"):
            raise bad_query(name, "is yes or no.")
        return bool(said == "yes")

    def _page(self, runs: QuerySet[Run]) -> Response:
        return replica.reading(lambda alias: self._page_of(runs.using(alias)))

    def _page_of(self, runs: QuerySet[Run]) -> Response:
        page = self.paginate_queryset(self.filter_queryset(runs.defer("context")))
        return self.get_paginated_response(RunSummarySerializer(page, many=True).data)
