"""Every decision of policy in every run, as the admin's page of decisions has them."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.response import Response

from common.api.errors import Problem, bad_query
from common.api.pagination import whole_number
from common.api.schema import documented
from common.api.views import ApiView, only
from common.times import instant
from policy.authority import holds
from runs.models import RunEvent
from runs.observe import audit

PERMISSION = "runs.view_runevent"
PARAMETERS = ("run", "user", "tool", "effect", "rule", "since", "until", "after", "limit")
MOST = audit.MOST - 1
SEPARATOR = "~"  # of the parts of a position


class AuditRowSerializer(serializers.Serializer):
    time = serializers.DateTimeField()
    run = serializers.CharField()
    seq = serializers.IntegerField()
    project = serializers.CharField()
    user = serializers.CharField(help_text="Whom the run works for.")
    agent = serializers.CharField()
    call = serializers.CharField()
    tool = serializers.CharField()
    effect = serializers.CharField(help_text="allow, require_approval, require_human or deny.")
    reason_code = serializers.CharField()
    rule = serializers.CharField()
    grant = serializers.CharField()
    message = serializers.CharField()
    shadowed = serializers.CharField(allow_null=True, help_text="What rules in shadow would have said.")
    policy = serializers.CharField(help_text="The digest of the policy the decision rested on.")
    approval = serializers.CharField(allow_null=True)
    approval_status = serializers.CharField(allow_null=True)
    decider = serializers.CharField(allow_null=True)


class AuditPageSerializer(serializers.Serializer):
    results = AuditRowSerializer(many=True)
    next = serializers.URLField(allow_null=True)


def _text(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, description=description)


class AuditView(ApiView):
    area = "policy"
    serializer_class = AuditPageSerializer
    queryset = RunEvent.objects.none()
    pagination_class = None
    filter_backends = ()

    @documented(
        "Every decision of policy, the newest first",
        forced_singular_serializer(AuditPageSerializer),
        parameters=[
            _text("run", "A run's id."),
            _text("user", "The name of the user the runs work for."),
            _text("tool", "A tool's name."),
            _text("effect", "allow, require_approval, require_human or deny."),
            _text("rule", "A rule's id."),
            _text("since", "ISO 8601 with a zone."),
            _text("until", "ISO 8601 with a zone."),
            _text("after", "As `next` has it."),
            OpenApiParameter("limit", OpenApiTypes.INT, description=f"At most {MOST}; 100 without."),
        ],
        refusals={403: {"NOT_ENTITLED": "This takes the right to look at what happened in all runs."}},
        description="Also those that let a call pass, with the rule, the approval and who decided it.",
    )
    def list(self, request: Any) -> Response:
        only(request, *PARAMETERS)
        if not holds(request.actor, PERMISSION):
            raise Problem(403, "NOT_ENTITLED", f"This takes the permission {PERMISSION}.")
        limit = whole_number(request, "limit", 100, least=1, most=MOST)
        found = audit.decisions(_asked(request), limit + 1, _position(request))
        page, more = found[:limit], len(found) > limit
        link = None
        if more:
            query = request.query_params.copy()
            time, run, seq = page[-1].position
            query["after"] = SEPARATOR.join((time.isoformat(), run, str(seq)))
            link = f"{request.build_absolute_uri(request.path)}?{query.urlencode()}"
        return Response({"results": [asdict(row) for row in page], "next": link})


def _asked(request: Any) -> audit.Asked:
    given, mine = request.query_params, request.membership
    effect = given.get("effect", "")
    if effect and effect not in audit.EFFECTS:
        raise bad_query("effect", f"is one of {', '.join(audit.EFFECTS)}.")
    user = None
    if "user" in given:
        known = get_user_model().objects.filter(memberships__organization=mine.organization_id)
        user = known.filter(username=given["user"]).values_list("pk", flat=True).first() or 0
    return audit.Asked(
        mine.organization_id,
        mine.projects,
        user,
        run=given.get("run", ""),
        tool=given.get("tool", ""),
        effect=effect,
        rule=given.get("rule", ""),
        since=_time(given, "since"),
        until=_time(given, "until"),
    )


def _time(given: Any, name: str) -> datetime | None:
    if name not in given:
        return None
    time = instant(given[name])
    if time is None:
        raise bad_query(name, "is no ISO 8601 time with a zone.")
    return time


def _position(request: Any) -> tuple[datetime, str, int] | None:
    after = request.query_params.get("after")
    if after is None:
        return None
    time, *rest = after.split(SEPARATOR)
    at = _time({"after": time}, "after")
    if at is None or len(rest) != 2 or not rest[1].isascii() or not rest[1].isdigit() or len(rest[1]) > 9:
        raise bad_query("after", "is not as `next` has it.")
    return at, rest[0], int(rest[1])
