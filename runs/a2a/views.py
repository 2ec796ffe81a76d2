"""A2A 1.0 over HTTP: agent cards for anybody, JSON-RPC and HTTP+JSON for those with a token.

Whoever is let in is an Actor of their token, as at the REST API; what they may do is asked where it asks.
"""

import hashlib
import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import RawPostDataException
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException

from common.api import parsers, slots
from common.api.errors import CONTENT_TYPE as PROBLEM
from common.api.errors import Problem, handler
from common.api.views import ApiView
from groups.actors import Actor, Via
from groups.api.authentication import TokenAuthentication
from runs.a2a import agents, operations, pushes, tasks
from runs.a2a.agents import Client
from runs.a2a.errors import A2AError, invalid
from runs.a2a.live import Settling, Stream
from runs.a2a.messages import Sent, camel, history_length, read
from runs.api.readers import Reader
from runs.models import A2ATask, Run
from runs.models.choices import TERMINAL
from runs.webhooks import task_words as words

JSON = dict[str, Any]

CONTENT_TYPE = "application/a2a+json"
JSON_TYPES = ("application/json", CONTENT_TYPE)
VERSION = re.compile(r"1\.0(\.\d+)?")
CARD_SECONDS = 300  # that a client may keep a card without asking


@require_safe
def card(request: HttpRequest, kind: str, agent_id: str) -> HttpResponseBase:
    """The agent card of what is published here; the same 404 for what is not, and for what does not exist."""
    try:
        body = json.dumps(agents.card(agents.published(kind, agent_id)), ensure_ascii=False).encode()
    except Problem as problem:
        return _problem(problem)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    answer = HttpResponse(body, content_type="application/json")
    answer["ETag"], answer["Cache-Control"] = etag, f"public, max-age={CARD_SECONDS}"
    found: HttpResponseBase = get_conditional_response(request, etag=etag, response=answer) or answer
    return found


def _problem(problem: APIException) -> HttpResponse:
    answer = handler(problem, {})
    assert answer is not None  # noqa: S101 - it knows problems
    return JsonResponse(answer.data, status=answer.status_code, content_type=PROBLEM)


def nothing(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    return _problem(agents.nothing())


class Challenge(TokenAuthentication):
    """Says where a client reads how to get a token (RFC 9728)."""

    def authenticate_header(self, request: Any) -> str:
        described = f"{settings.PUBLIC_URL.rstrip('/')}/.well-known/oauth-protected-resource{request.path}"
        return f'Bearer realm="deputy", resource_metadata="{described}", scope="runs:read runs:write"'


@extend_schema(exclude=True)  # the standard publishes its own description; docs/a2a.md names what is special
class A2AView(ApiView):
    """Both bindings. Reading takes the token's scope runs:read; the actions ask for the rest."""

    area, scope = "runs", "runs:read"
    authentication_classes = (Challenge,)
    queryset = Run.objects.none()
    pagination_class = None
    filter_backends = ()
    methods: ClassVar[dict[str, str]] = {}  # of HTTP+JSON: A2A's method for each of HTTP's

    def rpc(self, request: Any, kind: str, agent_id: str) -> Any:
        client = self._client(kind, agent_id)
        asked: JSON = {}
        try:
            asked = _call(_body(request))
            check_version(request)
            return self._act(client, asked["method"], asked.get("params") or {}, asked)
        except A2AError as error:
            status = error.kind.http if error.kind.http in (403, 429) else 200
            told = {"jsonrpc": "2.0", "id": asked.get("id"), "error": error.rpc()}
            return JsonResponse(told, status=status)

    def rest(self, request: Any, kind: str, agent_id: str, task_id: str = "", config_id: str = "") -> Any:
        client = self._client(kind, agent_id)
        method = self.methods[request.method.lower()]
        named = {"taskId": task_id, "id": config_id or task_id}
        if method == "CreateTaskPushNotificationConfig":
            del named["id"]  # which the body says
        try:
            check_version(request)
            params = _query(request) if request.method in ("GET", "DELETE") else _body(request, empty={})
            if not isinstance(params, dict):
                raise invalid("The body is an object.")
            return self._act(client, method, {**params, **named}, None)
        except A2AError as error:
            return JsonResponse(error.http(), status=error.kind.http, content_type=_kind(request))

    def _client(self, kind: str, agent_id: str) -> Client:
        """Raises Problem 404 for what is not published, and for what the token's user does not see."""
        request = self.request
        agent = agents.published(kind, agent_id)
        if not agent.seen_by(request.membership):
            raise agents.nothing()
        return Client(
            request, agent, Actor.of_token(request.auth, request.membership, Via.A2A), request.membership
        )

    def _act(self, client: Client, method: str, asked: JSON, call: JSON | None) -> Any:
        params: JSON = camel(asked)
        if method == "SendMessage":
            return self._send(client, read(params), call)
        if method in STREAMING:
            return self._stream(client, method, params, call)
        if method not in METHODS:
            raise A2AError("METHOD_NOT_FOUND", "A2A 1.0 has no such method.")
        return _answer(client, METHODS[method](client, params), call)

    def _send(self, client: Client, sent: Sent, call: JSON | None) -> Any:
        task = operations.send(client, sent)

        def answer() -> HttpResponse:
            now = tasks.find(client, task.pk)
            return _answer(client, {"task": tasks.shown(client, now, sent.history)}, call)

        found = answer()
        slot = None if sent.at_once or not settings.A2A_HOLD_SECONDS else _slot(client)
        if slot is not None:
            reader, hold = Reader.of_api(self.request, task.run), settings.A2A_HOLD_SECONDS
            found.settling = Settling(task, hold, slot, reader, answer, _ended)  # type: ignore[attr-defined]
        return found

    def _stream(self, client: Client, method: str, params: JSON, call: JSON | None) -> Any:
        """Nothing is sent where there is no room for one more stream. Raises A2AError, Problem."""
        slot = slots.take(client.actor.user, self.request.auth, client.membership.organization_id)
        try:
            task, history, until = STREAMING[method](client, params)
            first = tasks.shown(client, task, history)
        except BaseException:
            slot.give_back()
            raise
        reader = Reader.of_api(self.request, task.run)
        return Stream(client, task, reader, slot, first, lambda told: _result(told, call), until).response()


def _ended() -> HttpResponse:
    """To who asked, and whose token or membership has ended since."""
    return _problem(Problem(403, "FORBIDDEN", "You may not read this any more."))


def _slot(client: Client) -> slots.Slot | None:
    """None where the caller waits for too many things already: they are answered at once."""
    try:
        return slots.take(client.actor.user, client.request.auth, client.membership.organization_id)
    except Problem:
        return None


def check_version(request: Any) -> None:
    """Whoever names no version speaks 0.3, by A2A's own rule. Raises A2AError."""
    said = request.headers.get("A2A-Version") or request.query_params.get("A2A-Version") or "0.3"
    if not VERSION.fullmatch(said.strip()):
        raise A2AError("VERSION_NOT_SUPPORTED", f"Deputy speaks A2A 1.0, not {said.strip()[:20]}.")


def _body(request: Any, empty: Any = None) -> Any:
    """The body's value. Raises A2AError."""
    kind = (request.content_type or "").partition(";")[0].strip().lower()
    try:
        raw = request.body
    except RawPostDataException:  # a form with files has been read piece by piece
        raw = b"-"
    if not raw and empty is not None:
        return empty
    if kind not in JSON_TYPES:
        raise A2AError("CONTENT_TYPE_NOT_SUPPORTED", f"A body is {' or '.join(JSON_TYPES)}.")
    try:
        return parsers.read(raw)
    except Problem as problem:
        raise A2AError("PARSE_ERROR", str(problem.problem["detail"])) from None


def _call(body: Any) -> JSON:
    """A JSON-RPC 2.0 call. Raises A2AError."""
    fits = (
        isinstance(body, dict)
        and body.get("jsonrpc") == "2.0"
        and isinstance(body.get("method"), str)
        and isinstance(body.get("params", {}), dict | None)
        and isinstance(body.get("id", ""), str | int | None)
        and not isinstance(body.get("id"), bool)
    )
    if not fits:
        raise A2AError("INVALID_REQUEST", "This is no JSON-RPC 2.0 call; batches are not taken.")
    return dict(body)


NUMBERS = ("historyLength", "pageSize")


def _query(request: Any) -> JSON:
    """The parameters of the query with the types of A2A. Raises A2AError."""
    found: JSON = dict(request.query_params.items())
    for name in NUMBERS:
        if name in found:
            value = found[name]
            if not (value.isascii() and value.isdigit() and len(value) < 11):
                raise invalid(f"{name} is a whole number from 0.")
            found[name] = int(value)
    if "includeArtifacts" in found:
        if found["includeArtifacts"] not in ("true", "false"):
            raise invalid("includeArtifacts is true or false.")
        found["includeArtifacts"] = found["includeArtifacts"] == "true"
    return found


def _result(told: JSON, call: JSON | None) -> JSON:
    return told if call is None else {"jsonrpc": "2.0", "id": call.get("id"), "result": told}


def _kind(request: Any) -> str:
    """A2A's text wants application/json, its examples show a type of their own: for who asks for that."""
    return CONTENT_TYPE if CONTENT_TYPE in request.headers.get("Accept", "") else "application/json"


def _answer(client: Client, told: JSON, call: JSON | None) -> HttpResponse:
    kind = _kind(client.request) if call is None else "application/json"
    return JsonResponse(_result(told, call), content_type=kind, json_dumps_params={"ensure_ascii": False})


def _get(client: Client, params: JSON) -> JSON:
    return tasks.shown(
        client, tasks.find(client, params.get("id")), history_length(params.get("historyLength"))
    )


def _list(client: Client, params: JSON) -> JSON:
    return tasks.listed(client, {**params, "historyLength": history_length(params.get("historyLength"))})


def _cancel(client: Client, params: JSON) -> JSON:
    return tasks.shown(client, operations.cancelled(client, tasks.find(client, params.get("id"))))


def _config(client: Client, params: JSON) -> JSON:
    return pushes.shown(pushes.find(client, tasks.find(client, params.get("taskId")), params.get("id")))


def _configs(client: Client, params: JSON) -> JSON:
    found = pushes.configs(client, tasks.find(client, params.get("taskId")))
    return {"configs": [pushes.shown(one) for one in found], "nextPageToken": ""}


def _forget(client: Client, params: JSON) -> JSON:
    with operations.translated():
        pushes.delete(client, tasks.find(client, params.get("taskId")), params.get("id"))
    return {}


def _extended(client: Client, params: JSON) -> JSON:
    raise A2AError("EXTENDED_AGENT_CARD_NOT_CONFIGURED", "There is one card for everybody.")


def _sent(client: Client, params: JSON) -> tuple[A2ATask, int | None, frozenset[str]]:
    sent = read(params)
    return operations.send(client, sent), sent.history, words.TERMINAL | words.INTERRUPTED


def _subscribed(client: Client, params: JSON) -> tuple[A2ATask, int | None, frozenset[str]]:
    task = tasks.find(client, params.get("id"))
    if task.run.status in TERMINAL:
        raise A2AError("UNSUPPORTED_OPERATION", f"The task has already {task.run.status}.")
    return task, None, words.TERMINAL


# each with the states after which its stream ends
STREAMING = {"SendStreamingMessage": _sent, "SubscribeToTask": _subscribed}
METHODS: dict[str, Callable[[Client, JSON], JSON]] = {
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
    "CreateTaskPushNotificationConfig": operations.pushed,
    "GetTaskPushNotificationConfig": _config,
    "ListTaskPushNotificationConfigs": _configs,
    "DeleteTaskPushNotificationConfig": _forget,
    "GetExtendedAgentCard": _extended,
}


def patient(view: Callable[..., Any]) -> Callable[..., Any]:
    """The view, made to wait where its answer has to."""

    @wraps(view)
    async def answer(request: Any, *args: Any, **kwargs: Any) -> Any:
        found = await sync_to_async(view)(request, *args, **kwargs)
        settling: Settling | None = getattr(found, "settling", None)
        return found if settling is None else await settling.come()

    return answer
