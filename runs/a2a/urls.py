"""The addresses of A2A: the standard's below each agent's own, so without a slash at the end."""

from django.urls import URLPattern, re_path
from django.views.decorators.csrf import csrf_exempt

from runs.a2a.views import A2AView, card, nothing, patient

AGENT = r"^a2a/(?P<kind>projects|groups)/(?P<agent_id>(?:prj|grp)_[0-9a-z]{26})"
TASK = r"/tasks/(?P<task_id>[^/:\x00]{1,64})"
CONFIGS = TASK + "/pushNotificationConfigs"

# the path below the agent's, and what each HTTP method does there
RESOURCES = {
    "/message:send": {"post": "SendMessage"},
    "/message:stream": {"post": "SendStreamingMessage"},
    "/tasks": {"get": "ListTasks"},
    TASK: {"get": "GetTask"},
    TASK + ":cancel": {"post": "CancelTask"},
    TASK + ":subscribe": {"post": "SubscribeToTask", "get": "SubscribeToTask"},
    CONFIGS: {"post": "CreateTaskPushNotificationConfig", "get": "ListTaskPushNotificationConfigs"},
    CONFIGS + r"/(?P<config_id>[^/\x00]{1,64})": {
        "get": "GetTaskPushNotificationConfig",
        "delete": "DeleteTaskPushNotificationConfig",
    },
    "/extendedAgentCard": {"get": "GetExtendedAgentCard"},
}


def _resource(path: str, methods: dict[str, str]) -> URLPattern:
    view = A2AView.as_view(dict.fromkeys(methods, "rest"), methods=methods)
    return re_path(f"{AGENT}{path}$", patient(view), name="a2a-" + methods[next(iter(methods))])


urlpatterns = [
    re_path(rf"{AGENT}/\.well-known/agent-card\.json$", card, name="a2a-card"),
    re_path(rf"{AGENT}/?$", patient(A2AView.as_view({"post": "rpc"})), name="a2a-rpc"),
    *(_resource(path, methods) for path, methods in RESOURCES.items()),
    re_path(r"^a2a/", csrf_exempt(nothing)),
]
