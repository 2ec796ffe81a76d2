"""What all views share."""

import re
from copy import deepcopy
from typing import Any, ClassVar, NoReturn

from django.db import DEFAULT_DB_ALIAS
from rest_framework import generics, mixins, serializers, viewsets
from rest_framework.exceptions import APIException, Throttled
from rest_framework.response import Response

from common import conventions, replica, trace_context, tracing
from common.api.errors import bad_query
from common.trace_context import TRACEPARENT

MOST_NAMES = 500
GROUP = re.compile(r"\(\?P<(\w+)>[^()]*\)")


class ApiView(viewsets.GenericViewSet):
    """A view of things of one organization. `visible` is the root of every query.

    A token needs the scope `{area}:read` or `{area}:write`, or `scope` where an address names its own.
    """

    area: ClassVar[str]
    scope: str = ""

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """As usual; a request that names its caller's span (W3C Trace Context) is a span of their trace.
        Nothing is decided by what it says.
        """
        asked_by = trace_context.read(request.headers.get(TRACEPARENT)) if tracing.exporting else None
        if asked_by is None:
            return super().dispatch(request, *args, **kwargs)
        method = request.method if request.method.lower() in self.http_method_names else "HTTP"
        route = _route(request)
        told: dict[str, Any] = {conventions.HTTP_METHOD: method, conventions.HTTP_ROUTE: route}
        with (
            tracing.request("server", f"{method} {route}", told, asked_by) as span,
            tracing.working_for_request(span.ids),
        ):
            answer = super().dispatch(request, *args, **kwargs)
            span.tell({conventions.HTTP_STATUS: answer.status_code})
            if answer.status_code >= 500:
                span.fail(str(answer.status_code))
        return answer

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        refuse_nul(request)
        try:
            super().initial(request, *args, **kwargs)
        except Throttled:
            raise
        except APIException:  # whoever is turned away at the door has used their allowance all the same
            self.check_throttles(request)
            raise

    def throttled(self, request: Any, wait: float | None) -> NoReturn:
        """Raises Throttled, with what it tells of the allowance."""
        refusal = Throttled(wait)
        for allowance in self.get_throttles():
            refusal.rate_limit = allowance.headers(request, wait or 0.0)
        raise refusal

    def get_object_or_404(self, queryset: Any, **by: Any) -> Any:
        """One row of what the asker sees; whatever else there is does not exist for them."""
        return generics.get_object_or_404(queryset, **by)


# A list by which nobody decides anything: it may be read from a replica. (A docstring here would be the
# description of such lists in the document.)
class ListedFromReplica(mixins.ListModelMixin):
    reads_from = DEFAULT_DB_ALIAS

    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return replica.reading(lambda alias: self._listed(request, alias))

    def _listed(self, request: Any, alias: str) -> Response:
        self.reads_from = alias
        try:
            return super().list(request)
        finally:
            self.reads_from = DEFAULT_DB_ALIAS

    def filter_queryset(self, queryset: Any) -> Any:
        return super().filter_queryset(queryset).using(self.reads_from)


def _route(request: Any) -> str:
    """The pattern of the address: `/api/runs/{pk}/`."""
    return "/" + GROUP.sub(r"{\1}", request.resolver_match.route).strip("^$")


def accepted(serializer: type[serializers.Serializer], request: Any, partial: bool = False) -> dict[str, Any]:
    """The body's fields once they fit; `partial`: those that are there. Raises ValidationError."""
    asked = serializer(data=request.data, partial=partial)
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)


def only(request: Any, *names: str) -> None:
    """Refuse every parameter but these."""
    for name in request.query_params:
        if name not in {*names, "format"}:
            raise bad_query(name[:80], f"is no parameter; there are: {', '.join(names) or 'none'}.")


def refuse_nul(request: Any) -> None:
    """PostgreSQL keeps no NUL in text, so nothing can match it."""
    for name, values in request.query_params.lists():
        if "\x00" in name or any("\x00" in value for value in values):
            raise bad_query(name.replace("\x00", ""), "holds a NUL character.")


class StrictSerializer(serializers.Serializer):
    """Refuses fields it does not know: a misspelt one must not be ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = {
                name: [serializers.ErrorDetail("This field is not known here.", code="unknown_field")]
                for name in data
                if name not in self.fields
            }
            if unknown:
                raise serializers.ValidationError(unknown)
        return super().to_internal_value(data)


# Shows rows of a model. Its fields are worked out once a process and copied for each answer: working them out
# took a sixth of a small request's time. (A docstring here would be that of every subclass in the document.)
class ShownSerializer(serializers.ModelSerializer):
    _built: ClassVar[dict[type, dict[str, serializers.Field]]] = {}

    def get_fields(self) -> dict[str, serializers.Field]:
        built = self._built.get(type(self))
        if built is None:
            built = self._built[type(self)] = super().get_fields()
        return deepcopy(built)


class TextField(serializers.CharField):
    """A text. Numbers are not taken for one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictBoolean(serializers.BooleanField):
    """true or false, not what might be meant by either."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return bool(data)


def names(length: int, **more: Any) -> serializers.ListField:
    """A list of names, each once, none longer than `length`."""
    return serializers.ListField(
        child=TextField(max_length=length), required=False, max_length=MOST_NAMES, **more
    )
