"""Everything below /api/. What is not listed is a problem+json 404."""

from django.urls import include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.views import SpectacularSwaggerSplitView

from common.api.errors import not_found
from config.openapi.view import Described

urlpatterns = [
    path("", include("groups.api.urls")),
    path("", include("policy.api.urls")),
    path("", include("memory.api.urls")),
    path("", include("runs.api.urls")),
    path("", include("runs.agui.urls")),
    path("schema/", Described.as_view(), name="api-schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api-schema"), name="api-docs"),
    re_path("", csrf_exempt(not_found)),
]
