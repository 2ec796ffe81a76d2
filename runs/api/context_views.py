"""A run's working memory: as it was at any event, and rearranged."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.errors import Problem
from common.api.pagination import whole_number
from common.api.schema import documented
from common.api.views import accepted, only
from memory.context import ContextError
from runs.api.refusals import as_problems
from runs.api.serializers import OperationDoneSerializer, OperationSerializer, ViewSerializer
from runs.context import agent_view
from runs.models import Run

MAX_SEQ = 2**31 - 1
STATUSES = {"PERMISSION_DENIED": 403, "not_found": 404, "invalid_operation": 422}
ONE_AGENT = "Whose: an agent of the run; left out, the one who has the word then."


@contextmanager
def _refusals() -> Iterator[None]:
    """Around what is done with a view. Raises Problem for whatever is refused (ruling 35)."""
    try:
        with as_problems():
            yield
    except ContextError as error:
        raise Problem(STATUSES[error.code], error.code, str(error)) from None
    except agent_view.NoSuchAgent:
        raise Problem(404, "NO_SUCH_AGENT", "Nobody of that id speaks in this run.") from None
    except agent_view.BadArguments as bad:
        found = [
            {
                "pointer": "/arguments" + one["path"].rstrip("/"),
                "code": "INVALID_ARGUMENTS",
                "detail": one["problem"],
            }
            for one in bad.errors
        ]
        raise Problem(422, "INVALID_ARGUMENTS", str(bad), found) from None


class ContextActions:  # the addresses below a run's that are about its view; a docstring would be shown
    request: Any

    def _found(self, pk: str) -> Run:
        raise NotImplementedError

    @documented(
        "What an agent sees",
        ViewSerializer,
        parameters=[
            OpenApiParameter("at", OpenApiTypes.INT, description="Right after the event of this seq."),
            OpenApiParameter("agent", OpenApiTypes.STR, description=ONE_AGENT),
        ],
        refusals={404: {"NO_SUCH_AGENT": "Nobody of that id speaks in this run."}},
        description="The tree of pages that is the agent's prompt: as text, and nested.",
    )
    @action(detail=True, pagination_class=None, filter_backends=[])
    def context(self, request: Any, pk: str) -> Response:
        only(request, "at", "agent")
        at = whole_number(request, "at", 0, least=1, most=MAX_SEQ) or None
        run = self._found(pk)
        with _refusals():
            moment = agent_view.view_at(run.pk, at, request.query_params.get("agent"))
        return Response(ViewSerializer(moment.shown(run.user_id == request.user.pk)).data)

    @documented(
        "Look into what an agent sees, or rearrange it",
        OperationDoneSerializer,
        request=OperationSerializer,
        refusals={
            403: {
                "NOT_ENTITLED": "This is somebody else's run.",
                "PERMISSION_DENIED": "The page's segment, or policy, does not allow it.",
            },
            404: {"not_found": "No such page.", "NO_SUCH_AGENT": "Nobody of that id speaks in this run."},
            409: {"RUN_ENDED": "The run has ended."},
            422: {
                "INVALID_ARGUMENTS": "They do not fit the operation.",
                "invalid_operation": "The tree would not be a tree any more.",
            },
        },
        description=(
            f"`operation` is one of {', '.join(f'`{name}`' for name in agent_view.OPERATIONS)}; its "
            "arguments are those of the agent's own tool. Nobody changes the system segment. What a service "
            "account asks for passes policy as the agent's call would. To look takes the scope `runs:read` "
            "as well."
        ),
        examples=[
            OpenApiExample(
                "Open a folded page",
                value={"operation": "expandDetails", "arguments": {"index": "tool-2"}},
                request_only=True,
            )
        ],
    )
    @context.mapping.post
    def rearrange(self, request: Any, pk: str) -> Response:
        asked = accepted(OperationSerializer, request)
        run = self._found(pk)
        with _refusals():
            result = agent_view.operate(
                run.pk, asked["operation"], asked["arguments"], request.actor, asked["agent"] or None
            )
        return Response({"operation": asked["operation"], "result": result})
