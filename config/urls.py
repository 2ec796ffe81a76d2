"""Deputy's addresses."""

from allauth.account import views as account
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.utils.module_loading import module_has_submodule

from common.api import errors
from config import health, metrics, problems
from groups.api.where import where
from groups.sign_in import openid_views
from runs.api import slack_hook
from runs.web import settings_views
from runs.web.worker_script import service_worker

# django-q2 registers pages on which staff could have any function called, allauth pages on which they could
# read and plant what people sign in with; Deputy has pages of its own.
for label in ("django_q", "account", "mfa", "socialaccount", "usersessions", "oauth2_provider"):
    for model in apps.get_app_config(label).get_models():
        if admin.site.is_registered(model):
            admin.site.unregister(model)


def other_packages() -> list[URLPattern | URLResolver]:
    """The addresses of the applications of other packages, each below /apps/ and its label."""
    others = [one for one in apps.get_app_configs() if one.name in settings.OTHER_APPS]
    return [
        path(f"apps/{one.label}/", include(f"{one.name}.urls"))
        for one in others
        if module_has_submodule(one.module, "urls")
    ]


urlpatterns = [
    path("", include("runs.web.urls")),
    path("account/", include("groups.sign_in.urls")),
    path("sign-in/", account.login, name="account_login"),
    path("sign-in/<slug:organization>/", openid_views.door, name="organization_door"),
    path("sign-out/", account.logout, name="account_logout"),
    path("", include("runs.web.oauth_urls")),
    path("sw.js", service_worker, name="service_worker"),
    path("hooks/slack/<str:channel_id>/", slack_hook.slack_hook, name="slack_hook"),
    path("cells/where/", where, name="cells_where"),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("problems/", include(problems.urlpatterns)),
    path("i18n/setlang/", settings_views.language, name="set_language"),
    path("admin/", admin.site.urls),
    path("api/", include("config.api_urls")),
    path("", include("runs.api.authzen_urls")),
    path("", include("runs.a2a.urls")),
    *other_packages(),
]

handler400 = errors.handler400
handler403 = errors.handler403
handler404 = errors.handler404
handler500 = errors.handler500
