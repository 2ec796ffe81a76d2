"""AuthZEN Authorization API 1.0 over HTTP: /access/v1/… and /.well-known/authzen-configuration.

Lenient where the standard wants it (unknown fields are ignored, a batch's item may be incomplete); what it
requires and does not find is 400. A token belongs to one organization, so the token names the tenant.
"""

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.response import Response

from common.api.errors import Problem
from common.api.views import ApiView
from groups.api.authentication import TokenAuthentication
from policy import apart
from policy.models import CapabilityRule
from runs.api.authzen import Action, Answer, DecisionPoint, Entity, NotEntitled, Question

MOST_EVALUATIONS = 200  # in one batch
MOST_LOOKED_AT = 200  # candidates of a search in one answer; what is left comes with the next page
SEMANTICS: dict[str, bool | None] = {  # the decision after which a batch ends
    "execute_all": None,
    "deny_on_first_deny": False,
    "permit_on_first_permit": True,
}
ENDPOINTS = {
    "access_evaluation_endpoint": "/access/v1/evaluation",
    "access_evaluations_endpoint": "/access/v1/evaluations",
    "search_subject_endpoint": "/access/v1/search/subject",
    "search_resource_endpoint": "/access/v1/search/resource",
    "search_action_endpoint": "/access/v1/search/action",
}
NOT_ENTITLED = "You may ask about yourself; about others only with the right to see rules."

Body = dict[str, Any]


@require_GET
def configuration(request: HttpRequest, tenant: str = "") -> JsonResponse:
    """The metadata of the decision point, and of the one whose identifier ends in `tenant`.

    Says the same of every tenant, there or not: who asks without a token learns of no organization.
    """
    here = settings.PUBLIC_URL.rstrip("/")
    said = {name: f"{here}{path}" for name, path in ENDPOINTS.items()}
    return JsonResponse({"policy_decision_point": f"{here}/{tenant}" if tenant else here, **said})


@extend_schema(exclude=True)  # the standard publishes its own description; docs/api.md names what is special
class AuthzenView(ApiView):
    area = "policy"
    authentication_classes = (TokenAuthentication,)
    queryset = CapabilityRule.objects.none()
    pagination_class = None
    filter_backends = ()

    def evaluation(self, request: Any) -> Response:
        return Response(_one(_point(request), _body(request)).to_json())

    def evaluations(self, request: Any) -> Response:
        body = _body(request)
        items = body.get("evaluations", [])
        if not isinstance(items, list):
            raise bad("/evaluations", "is an array.")
        ends = _semantic(body)
        if not items:
            return Response(_one(_point(request), body).to_json())
        if len(items) > MOST_EVALUATIONS:
            raise bad("/evaluations", f"has at most {MOST_EVALUATIONS} items.")
        return Response({"evaluations": _batch(_point(request), body, items, ends)})

    def subjects(self, request: Any) -> Response:
        body = _body(request)
        type_ = entity(body, "subject", searched=True)
        action_, where, context = action(body), entity(body, "resource"), _object(body, "context")
        point = _point(request)
        candidates = (
            (id_, {"type": type_.type, "id": id_}, Question(_named(type_, id_), action_, where, context))
            for id_ in point.subjects(type_.type)
        )
        return Response(_searched(point, body, candidates))

    def resources(self, request: Any) -> Response:
        body = _body(request)
        who, action_ = entity(body, "subject"), action(body)
        type_, context = entity(body, "resource", searched=True), _object(body, "context")
        point = _point(request)
        candidates = (
            (id_, {"type": type_.type, "id": id_}, Question(who, action_, _named(type_, id_), context))
            for id_ in point.resources(type_.type)
        )
        return Response(_searched(point, body, candidates))

    def actions(self, request: Any) -> Response:
        body = _body(request)
        who, where, context = entity(body, "subject"), entity(body, "resource"), _object(body, "context")
        point = _point(request)
        candidates = (
            (name, {"name": name}, Question(who, Action(name), where, context))
            for name in point.actions(where.type)
        )
        return Response(_searched(point, body, candidates))

    def handle_exception(self, exc: Exception) -> Response:
        """Another type of content is 400 here (certification scenario, common requirements)."""
        wrong = isinstance(exc, Problem) and exc.status_code == 415
        if wrong or isinstance(exc, UnsupportedMediaType):
            exc = Problem(400, "UNSUPPORTED_MEDIA_TYPE", "The body is JSON in UTF-8: application/json.")
        return super().handle_exception(exc)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        if wanted := request.headers.get("X-Request-ID"):
            answer["X-Request-ID"] = wanted
        return answer


def bad(pointer: str, detail: str) -> Problem:
    """400: what is wrong, and where."""
    error = {"pointer": pointer, "code": "invalid", "detail": detail}
    return Problem(400, "BAD_REQUEST", f"{pointer or 'The body'} {detail}", [error])


def _point(request: Any) -> DecisionPoint:
    return DecisionPoint(request.user, request.membership)


def _body(request: Any) -> Body:
    if not isinstance(request.data, dict):
        raise bad("", "is a JSON object.")
    return request.data


def _object(body: Body, name: str, at: str = "") -> Body:
    found = body.get(name, {})
    if not isinstance(found, dict):
        raise bad(f"{at}/{name}", "is an object.")
    return found


def _required(body: Body, name: str) -> Body:
    if name not in body:
        raise bad(f"/{name}", "is missing.")
    return _object(body, name)


def _text(body: Body, name: str, at: str) -> str:
    found = body.get(name)
    if not isinstance(found, str):
        raise bad(f"{at}/{name}", "is a string, and required.")
    return found


def entity(body: Body, name: str, searched: bool = False) -> Entity:
    """A subject or resource; of one that is searched for, `id` is ignored. Raises Problem."""
    found, at = _required(body, name), f"/{name}"
    id_ = "" if searched else _text(found, "id", at)
    return Entity(_text(found, "type", at), id_, _object(found, "properties", at))


def action(body: Body) -> Action:
    """Raises Problem."""
    found = _required(body, "action")
    return Action(_text(found, "name", "/action"), _object(found, "properties", "/action"))


def question(body: Body) -> Question:
    """Raises Problem."""
    return Question(entity(body, "subject"), action(body), entity(body, "resource"), _object(body, "context"))


def _named(type_: Entity, id_: str) -> Entity:
    return Entity(type_.type, id_, type_.properties)


def _one(point: DecisionPoint, body: Body) -> Answer:
    try:
        return point.evaluate(question(body))
    except NotEntitled:
        raise Problem(403, "NOT_ENTITLED", NOT_ENTITLED) from None


# a batch


def _semantic(body: Body) -> bool | None:
    """The decision that ends the batch; None: it is answered whole. Raises Problem."""
    named = _object(body, "options").get("evaluations_semantic", "execute_all")
    if not isinstance(named, str) or named not in SEMANTICS:
        raise bad("/options/evaluations_semantic", f"is one of: {', '.join(SEMANTICS)}.")
    return SEMANTICS[named]


def _batch(point: DecisionPoint, body: Body, items: list[Any], ends: bool | None) -> list[Body]:
    answers: list[Body] = []
    with apart.allowance(apart.REQUEST_SECONDS):
        for item in items:
            answers.append(_item(point, body, item).to_json())
            if answers[-1]["decision"] is ends:
                break
    return answers


def _item(point: DecisionPoint, body: Body, item: Any) -> Answer:
    """One item's decision; what keeps it from being asked denies it, and says why."""
    try:
        return _one(point, with_defaults(body, item))
    except Problem as problem:
        said = problem.problem
        return Answer(False, {"effect": "deny", "reason_code": said["code"], "reason": said["detail"]})


def with_defaults(body: Body, item: Any) -> Body:
    """The item with the members it leaves out, each taken whole from the top of the request.

    Of an entity or action that is there, only a missing `type`, `id` or `name` is filled in, never a
    property: the conformance suite has such an item. Raises Problem.
    """
    if not isinstance(item, dict):
        raise bad("", "is an object.")
    whole = {name: body[name] for name in ("subject", "action", "resource", "context") if name in body}
    for name in ("subject", "action", "resource"):
        if isinstance(item.get(name), dict) and isinstance(whole.get(name), dict):
            kept = {part: whole[name][part] for part in ("type", "id", "name") if part in whole[name]}
            item = {**item, name: {**kept, **item[name]}}
    return {**whole, **item}


# a search


@dataclass(frozen=True)
class Page:
    """What the asker wants: at most `limit` results, of those after `after`."""

    limit: int | None
    after: str


def _page(body: Body) -> Page:
    """Raises Problem."""
    found = _object(body, "page")
    limit, token = found.get("limit"), found.get("token", "")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise bad("/page/limit", "is a whole number from 0.")
    return Page(limit, _opened(token))


def _opened(token: Any) -> str:
    try:
        after = json.loads(base64.urlsafe_b64decode(token)) if token else ""
    except (TypeError, ValueError, RecursionError):
        after = None
    if not isinstance(after, str):
        raise bad("/page/token", "is no token of ours.")
    return after


def _token(after: str) -> str:
    """Where to go on. No secret: what somebody may not see is not found from any place."""
    return base64.urlsafe_b64encode(json.dumps(after).encode()).decode()


def _searched(point: DecisionPoint, body: Body, candidates: Iterable[tuple[str, Body, Question]]) -> Body:
    """Those of the candidates, in the order of their names, that policy allows."""
    page = _page(body)
    with apart.allowance(apart.REQUEST_SECONDS):
        results, next_token = _through(candidates, page, point.allows)
    if "page" not in body and not next_token:
        return {"results": results}
    return {"results": results, "page": {"next_token": next_token, "count": len(results)}}


def _through(
    candidates: Iterable[tuple[str, Body, Question]], page: Page, allows: Callable[[Question], bool]
) -> tuple[list[Body], str]:
    results: list[Body] = []
    looked_at, last = 0, page.after
    for name, result, asked in candidates:
        if name <= page.after:
            continue
        if looked_at == MOST_LOOKED_AT or len(results) == page.limit:
            return results, _token(last)
        looked_at, last = looked_at + 1, name
        if allows(asked):
            results.append(result)
    return results, ""
