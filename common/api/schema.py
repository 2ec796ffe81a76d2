"""The OpenAPI document: how one authenticates, and the problems every operation may answer with."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers

from common.api import rate_limits
from common.api.errors import CONTENT_TYPE, body
from common.api.permissions import needed_scope
from common.api.views import StrictSerializer


class FieldErrorSerializer(serializers.Serializer):
    pointer = serializers.CharField(required=False, help_text="JSON Pointer into the body (RFC 6901).")
    parameter = serializers.CharField(required=False, help_text="Name of the query's parameter.")
    code = serializers.CharField()
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer):
    """RFC 9457. Programs go by `code`, which is stable; `detail` is for people."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    errors = FieldErrorSerializer(many=True, required=False)


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "groups.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token dpt_…`: a token belongs to one user in one organization.",
        }


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "groups.api.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The admin's session; unsafe methods need X-CSRFToken, "
            "and who is in several organizations names one in X-Organization.",
        }


EVERYWHERE = {
    400: ("BAD_QUERY", "ORGANIZATION_MISSING"),
    401: ("UNAUTHENTICATED", "BAD_TOKEN"),
    403: ("NOT_A_MEMBER", "SCOPE_MISSING", "CSRF_FAILED"),
    429: ("TOO_MANY_REQUESTS",),
    503: ("UNAVAILABLE",),
}
WITH_BODY = {
    400: ("BAD_QUERY", "ORGANIZATION_MISSING", "MALFORMED_JSON"),
    413: ("BODY_TOO_LARGE",),
    415: ("UNSUPPORTED_MEDIA_TYPE",),
    422: ("INVALID",),
}
SAYS = {
    400: "The request cannot be read.",
    401: "Nobody is known by this.",
    403: "Not allowed.",
    404: "No such thing, or it belongs to somebody else.",
    409: "It conflicts with what has already happened.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The body was read and does not fit.",
    428: "What the request is about has to be named.",
    429: "Too much at once; try again after as many seconds as Retry-After says.",
    503: "The database cannot be reached; try again after as many seconds as Retry-After says.",
}
RETRY_AFTER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
HEADERS = {429: RETRY_AFTER | rate_limits.DESCRIBED, 503: RETRY_AFTER}


class Schema(AutoSchema):
    """Adds what every operation has in common, so that views name only what is theirs."""

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        operation = super().get_operation(*args, **kwargs)
        if operation and self.get_auth():
            self._add_scope(operation)
            self._add_problems(operation)
        return operation

    def _map_basic_serializer(self, serializer: Any, direction: str) -> Any:
        """A body whose unknown fields are refused says so."""
        schema = super()._map_basic_serializer(serializer, direction)
        if isinstance(serializer, StrictSerializer) and direction == "request":
            schema["additionalProperties"] = False
        return schema

    def _add_scope(self, operation: dict[str, Any]) -> None:
        scope = needed_scope(self.view, self.method)
        operation["x-scope"] = scope
        operation["description"] = f"{operation.get('description', '')}\n\nScope: `{scope}`.".strip()

    def _add_problems(self, operation: dict[str, Any]) -> None:
        common: dict[int, tuple[str, ...]] = dict(EVERYWHERE)
        if "requestBody" in operation:
            common |= WITH_BODY
        if any(p["in"] == "path" for p in operation.get("parameters", ())):
            common[404] = ("NOT_FOUND",)
        responses = operation["responses"]
        for status, codes in common.items():
            mine = responses.get(str(status), {})
            examples = mine.get("content", {}).get(CONTENT_TYPE, {}).get("examples", {})
            own = {value["value"]["code"]: value["value"]["detail"] for value in examples.values()}
            responses[str(status)] = self._get_response_for_code(
                problem(status, **dict.fromkeys(codes, SAYS[status]) | own), str(status), [CONTENT_TYPE]
            )
            if status in HEADERS:
                responses[str(status)]["headers"] = HEADERS[status]
        operation["responses"] = dict(sorted(responses.items()))


def problem(status: int, /, **codes: str) -> OpenApiResponse:
    """A problem's entry: each code with what it means."""
    examples = [
        OpenApiExample(code, value=body(status, code, says), response_only=True, status_codes=[str(status)])
        for code, says in codes.items()
    ]
    named = ", ".join(f"`{code}`" for code in codes)
    return OpenApiResponse(ProblemSerializer, f"{SAYS[status]} Codes: {named}.", examples)


def problems(statuses: dict[int, dict[str, str]]) -> dict[tuple[int, str], OpenApiResponse]:
    """For `responses=`: {409: {"RUN_ENDED": "The run has ended."}}."""
    return {(status, CONTENT_TYPE): problem(status, **codes) for status, codes in statuses.items()}


def documented(
    summary: str,
    answer: Any = None,
    *,
    status: int = 200,
    refusals: dict[int, dict[str, str]] | None = None,
    **more: Any,
) -> Callable[[Any], Any]:
    """extend_schema with a summary, the answer, and the refusals that are this operation's own."""
    if answer is not None:
        answers = answer if isinstance(answer, dict) else {status: answer}
        more["responses"] = {**answers, **problems(refusals or {})}
    return extend_schema(summary=summary, **more)
