"""Who decided what, for programs: a page at a time, or all of it as a file."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.errors import bad_query
from common.api.pagination import whole_number
from common.api.schema import documented
from common.api.views import ApiView, only
from common.times import instant
from runs.models import ApprovalDecision
from runs.observe import decided

FILTERS = ("decider", "tool", "project", "since", "until")
FORMS = tuple(decided.TYPES)
MOST = 100


class DecidedRowSerializer(serializers.Serializer):
    time = serializers.DateTimeField()
    decider = serializers.CharField()
    decision = serializers.ChoiceField(("approved", "rejected"))
    via = serializers.CharField(help_text="By which door it came; empty for decisions of old releases.")
    as_person = serializers.BooleanField(help_text="A person, signed in and lately confirmed.")
    reason = serializers.CharField()
    tool = serializers.CharField()
    project = serializers.CharField()
    user = serializers.CharField(help_text="Whom the run works for.")
    run = serializers.CharField()
    approval = serializers.CharField()
    status = serializers.CharField(help_text="The approval's, today.")
    ran_at = serializers.DateTimeField(allow_null=True)
    arguments = serializers.JSONField(help_text="As they ran, or as they were decided about; secrets masked.")
    arguments_digest = serializers.CharField()


class DecidedPageSerializer(serializers.Serializer):
    results = DecidedRowSerializer(many=True)
    next = serializers.URLField(allow_null=True)


def _text(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, description=description)


NARROWED = [
    _text("decider", "A decider's username."),
    _text("tool", "A tool's name."),
    _text("project", "Id or slug."),
    _text("since", "ISO 8601 with a zone."),
    _text("until", "ISO 8601 with a zone."),
]


class DecidedView(ApiView):
    area = "approvals"
    serializer_class = DecidedPageSerializer
    queryset = ApprovalDecision.objects.none()
    pagination_class = None
    filter_backends = ()

    @documented(
        "Who decided what, the newest first",
        forced_singular_serializer(DecidedPageSerializer),
        parameters=[
            *NARROWED,
            OpenApiParameter("after", OpenApiTypes.INT, description="As `next` has it."),
            OpenApiParameter("limit", OpenApiTypes.INT, description=f"At most {MOST}; 25 without."),
        ],
        description=(
            "All of your projects where you may look at what happened in all runs; otherwise the decisions "
            "about your own runs and those you took."
        ),
    )
    def list(self, request: Any) -> Response:
        only(request, *FILTERS, "after", "limit")
        found = self._found(request)
        limit = whole_number(request, "limit", 25, least=1, most=MOST)
        after = None
        if "after" in request.query_params:
            after = whole_number(request, "after", 0, least=0, most=10**11)
        page = decided.newest(found, limit + 1, request.user.pk, after)
        link = None
        if len(page) > limit:
            query = request.query_params.copy()
            query["after"] = str(page[limit - 1][0])
            link = f"{request.build_absolute_uri(request.path)}?{query.urlencode()}"
        return Response({"results": [asdict(one) for _, one in page[:limit]], "next": link})

    @documented(
        "Who decided what, as a file",
        {(200, kind.partition(";")[0]): OpenApiTypes.BINARY for kind in decided.TYPES.values()},
        parameters=[
            *NARROWED,
            OpenApiParameter("as", OpenApiTypes.STR, enum=FORMS, description="`csv` without."),
        ],
        description="The same, all of them: CSV, JSON Lines, or a spreadsheet of at most 100,000 rows.",
    )
    @action(detail=False, methods=["get"])
    def export(self, request: Any) -> StreamingHttpResponse:
        only(request, *FILTERS, "as")
        form = request.query_params.get("as", "csv")
        if form not in decided.TYPES:
            raise bad_query("as", f"is one of {', '.join(decided.TYPES)}.")
        return StreamingHttpResponse(
            decided.exported(form, self._found(request), request.user.pk),
            content_type=decided.TYPES[form],
            headers={"Content-Disposition": f'attachment; filename="decided.{form}"'},
        )

    def _found(self, request: Any) -> QuerySet[ApprovalDecision]:
        given = request.query_params
        who, tool, project = (given.get(name, "") for name in ("decider", "tool", "project"))
        asked = decided.Asked(who, tool, project, _time(given, "since"), _time(given, "until"))
        return decided.filtered(decided.seen(request.actor), asked)


def _time(given: Any, name: str) -> datetime | None:
    if name not in given:
        return None
    time = instant(given[name])
    if time is None:
        raise bad_query(name, "is no ISO 8601 time with a zone.")
    return time
