"""The addresses of AuthZEN: the standard's, so without a slash at the end and outside /api/."""

from typing import Any

from django.urls import path

from runs.api.authzen_views import AuthzenView, configuration


def _asking(address: str, method: str) -> Any:
    view = AuthzenView.as_view({"post": method}, scope="policy:read")
    return path(f"access/v1/{address}", view, name=f"authzen-{method}")


urlpatterns = [
    _asking("evaluation", "evaluation"),
    _asking("evaluations", "evaluations"),
    _asking("search/subject", "subjects"),
    _asking("search/resource", "resources"),
    _asking("search/action", "actions"),
    path(".well-known/authzen-configuration", configuration, name="authzen-configuration"),
    path(".well-known/authzen-configuration/<slug:tenant>", configuration, name="authzen-tenant"),
]
