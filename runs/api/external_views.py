"""Runs that an outside agent drives: it asks for its calls here, and says how the run ended."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common.api.errors import Problem
from common.api.pagination import OldestFirst, whole_number
from common.api.schema import documented, problems
from common.api.views import ApiView, accepted, only
from runs.actions import resolve
from runs.api import access
from runs.api.external_serializers import (
    CallRequestSerializer,
    CallSerializer,
    CallSummarySerializer,
    CompleteSerializer,
    FailSerializer,
    WordOnCallSerializer,
)
from runs.api.patience import Awaited
from runs.api.refusals import as_problems, wrong_arguments
from runs.api.serializers import RunSerializer
from runs.execution import calls, outside_agents
from runs.models import Run, ToolCall

LONGEST_WAIT = 30  # seconds
PATIENCE = 20  # for a call that a worker is at, where the request does not say

WAIT = OpenApiParameter(
    "wait", OpenApiTypes.INT, description=f"Seconds to wait for the call's end, at most {LONGEST_WAIT}."
)
NOT_YOURS = {"NOT_ENTITLED": "Another user's agent drives this run."}
ENDED = {"RUN_ENDED": "The run has ended.", "NOT_EXTERNAL": "Deputy drives this run itself."}


class OutsideView(ApiView):
    area = "runs"
    serializer_class = CallSerializer
    queryset = ToolCall.objects.none()
    pagination_class = OldestFirst
    filter_backends = ()

    def get_queryset(self) -> QuerySet[ToolCall]:
        return ToolCall.objects.filter(run__in=access.runs(self.request.membership))

    @documented("The calls of a run, the oldest first", CallSummarySerializer(many=True))
    def list(self, request: Any, pk: str) -> Response:
        only(request, "limit", "cursor", "ordering")
        run = self._found(pk)
        page = self.paginate_queryset(self.get_queryset().filter(run=run))
        told = CallSummarySerializer(page, many=True, context={"own": run.user_id == request.user.pk})
        return self.get_paginated_response(told.data)

    @documented(
        "Call a tool",
        request=CallRequestSerializer,
        parameters=[WAIT],
        responses={
            (200, "application/json"): CallSerializer,
            (202, "application/json"): CallSerializer,
            **problems(
                {
                    403: {**NOT_YOURS, "PERMISSION_DENIED": "Policy denies the call; `detail` says why."},
                    409: {
                        **ENDED,
                        "CALL_DIFFERS": "The call id came before with another tool or arguments.",
                        "BUDGET_STEPS": "The run's steps are used up; this has ended it.",
                        "BUDGET_TOKENS": "The run's tokens are used up; this has ended it.",
                        "BUDGET_SECONDS": "The run's time is used up; this has ended it.",
                    },
                    429: {
                        "TOO_MANY_APPROVALS": "Too many calls of the run, or the organization, wait already."
                    },
                    422: {
                        "INVALID_ARGUMENTS": "The arguments do not fit the tool's schema; see `errors`.",
                        "UNKNOWN_TOOL": "There is no such tool.",
                    },
                }
            ),
        },
        description=(
            "The call passes the same gate as any agent's. `200`: it has ended, with `result` or `error`. "
            "`202`: it waits, and `waits_for` says for what; Deputy executes it once that is decided, and "
            "its result will be at `Location`. The same `call_id` with the same words is the same call. "
            f"Without `wait`, up to {PATIENCE} seconds are spent on a call that is being executed, and none "
            "on one that waits for somebody."
        ),
        examples=[
            OpenApiExample(
                "Read a page",
                value={"call_id": "1", "name": "http_get", "arguments": {"url": "https://example.org/"}},
                request_only=True,
            )
        ],
    )
    def create(self, request: Any, pk: str) -> Response:
        only(request, "wait")
        wait = whole_number(request, "wait", -1, least=0, most=LONGEST_WAIT)
        asked = accepted(CallRequestSerializer, request)
        run = self._found(pk)
        with as_problems():
            call_id = outside_agents.request_call(run.pk, request.actor, **asked)
        answer = self.answered(request, pk, call_id)
        return awaiting(answer, run, call_id, PATIENCE if wait < 0 else wait, or_parked=wait < 0)

    def answered(self, request: Any, pk: str, call_id: str) -> Response:
        """To a call that has been asked for: also once it has been waited for."""
        found = calls.look(self._found(pk), call_id)
        refuse(found)
        return shown(request, found)

    @documented(
        "A call",
        parameters=[WAIT],
        responses={(200, "application/json"): CallSerializer, (202, "application/json"): CallSerializer},
        description="`200` when it has ended, however it ended; `202` while its answer is to come.",
    )
    def retrieve(self, request: Any, pk: str, call_id: str) -> Response:
        only(request, "wait")
        wait = whole_number(request, "wait", 0, least=0, most=LONGEST_WAIT)
        return awaiting(self.seen(request, pk, call_id), self._found(pk), call_id, wait)

    def seen(self, request: Any, pk: str, call_id: str) -> Response:
        """A call as it stands: also once it has been waited for."""
        run, _ = self._call(pk, call_id)
        return shown(request, calls.look(run, call_id))

    @documented(
        "Say what became of an interrupted call",
        CallSerializer,
        request=WordOnCallSerializer,
        refusals={
            403: {"NOT_ENTITLED": "You may not say what became of this call."},
            404: {"NO_SUCH_WAIT": "The call does not wait for a word on what happened."},
            409: {
                "ALREADY_RESOLVED": "Somebody has already said otherwise.",
                "INTERRUPTED_AGAIN": "It was tried and interrupted again; `correlation_key` is missing.",
            },
        },
        description="A worker was lost between the call and its result. A retry passes policy again.",
    )
    def resolve(self, request: Any, pk: str, call_id: str) -> Response:
        asked = accepted(WordOnCallSerializer, request)
        run, _ = self._call(pk, call_id)
        with as_problems():
            resolve.resolve(run.pk, call_id, actor=request.actor, **asked)
        own = run.user_id == request.user.pk
        return Response(CallSerializer(calls.look(run, call_id), context={"own": own}).data)

    @documented(
        "Complete a run",
        RunSerializer,
        request=CompleteSerializer,
        refusals={403: NOT_YOURS, 409: {**ENDED, "CALLS_OPEN": "Calls have not ended; `open` names them."}},
    )
    def complete(self, request: Any, pk: str) -> Response:
        asked = accepted(CompleteSerializer, request)
        run = self._found(pk)
        with as_problems():
            outside_agents.complete(run.pk, request.actor, **asked)
        return self._ended(pk)

    @documented(
        "End a run as failed",
        RunSerializer,
        request=FailSerializer,
        refusals={403: NOT_YOURS, 409: ENDED},
        description="Calls that are open end with it.",
    )
    def fail(self, request: Any, pk: str) -> Response:
        asked = accepted(FailSerializer, request)
        run = self._found(pk)
        with as_problems():
            outside_agents.fail(run.pk, request.actor, **asked)
        return self._ended(pk)

    def _found(self, pk: str) -> Run:
        run: Run = self.get_object_or_404(access.runs(self.request.membership), pk=pk)
        return run

    def _call(self, pk: str, call_id: str) -> tuple[Run, ToolCall]:
        run = self._found(pk)
        call: ToolCall = self.get_object_or_404(self.get_queryset(), run=run, call_id=call_id)
        return run, call

    def _ended(self, pk: str) -> Response:
        run = access.runs(self.request.membership).get(pk=pk)
        access.read_waits(run)
        return Response(RunSerializer(run).data)


def refuse(found: calls.Look) -> None:
    """Raises Problem for a call that never came to run because of what was asked for."""
    error = found.error or {}
    code, message = error.get("code", ""), error.get("message", "")
    if found.status == "denied":
        raise Problem(403, code, message, call_id=found.call_id, unlockable=error.get("unlockable", False))
    if code == "TOO_MANY_APPROVALS":
        raise Problem(429, code, message, headers={"Retry-After": "60"}, call_id=found.call_id)
    if code in ("INVALID_ARGUMENTS", "UNKNOWN_TOOL"):
        raise Problem(422, code, message, wrong_arguments(error), call_id=found.call_id)


def awaiting(answer: Response, run: Run, call_id: str, seconds: float, or_parked: bool = False) -> Response:
    """The answer; where the call's own is to come, `patient` waits for it."""
    if answer.status_code == 202:
        answer.awaited = Awaited(run.pk, run.root_id, call_id, seconds, or_parked)
    return answer


def shown(request: Any, found: calls.Look) -> Response:
    body = CallSerializer(found, context={"own": found.user_id == request.user.pk}).data
    if not found.open:
        return Response(body)
    location = reverse("api-call-detail", [found.run, found.call_id], request=request)
    return Response(body, status=202, headers={"Location": location})
