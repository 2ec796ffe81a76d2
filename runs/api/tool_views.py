"""The tools there are."""

from typing import Any

from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from common.api.schema import documented
from common.api.views import ApiView, only
from runs.api import access, tools
from runs.api.serializers import ToolListSerializer
from runs.models import Run


class ToolView(ApiView):
    area = "runs"
    serializer_class = ToolListSerializer
    queryset = Run.objects.none()
    pagination_class = None
    filter_backends = ()

    @documented(
        "Tools",
        forced_singular_serializer(ToolListSerializer),
        parameters=[
            OpenApiParameter("run", OpenApiTypes.STR, description="Adds what policy would say in this run.")
        ],
        refusals={404: {"NOT_FOUND": "No such run."}},
    )
    def list(self, request: Any) -> Response:
        only(request, "run")
        run_id = request.query_params.get("run")
        if run_id is None:
            return Response({"results": tools.described(request.organization.pk)})
        run = self.get_object_or_404(access.runs(request.membership), pk=run_id)
        return Response({"results": tools.decided(run)})
