from typing import Any

from deputy_weather.models import Station
from django.urls import path
from rest_framework.response import Response

from common.api.views import ApiView


class StationView(ApiView):
    area = "groups"  # a token needs the scope groups:read

    def list(self, request: Any) -> Response:
        stations = Station.objects.filter(organization=request.organization)
        return Response({"results": [station.city for station in stations]})


urlpatterns = [path("stations/", StationView.as_view({"get": "list"}))]
