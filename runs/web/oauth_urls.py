"""The addresses of the authorization server; django-oauth-toolkit finds them by these names."""

from django.urls import path
from oauth2_provider import views

from runs.web import oauth_views

app_name = "oauth2_provider"
WELL_KNOWN = ".well-known/"

urlpatterns = [
    path("oauth/authorize/", oauth_views.Authorize.as_view(), name="authorize"),
    path("oauth/token/", views.TokenView.as_view(), name="token"),
    path("oauth/revoke/", views.RevokeTokenView.as_view(), name="revoke-token"),
    path(WELL_KNOWN + "oauth-authorization-server", views.OAuthServerMetadataView.as_view(), name="server"),
    path(WELL_KNOWN + "oauth-protected-resource", oauth_views.Resource.as_view(), name="resource"),
    path(
        WELL_KNOWN + "oauth-protected-resource/<path:resource_path>",
        oauth_views.Resource.as_view(),
        name="resource-path",
    ),
]
