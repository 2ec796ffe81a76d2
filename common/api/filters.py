"""Filters that take only what they know."""

from typing import Any

from django_filters.rest_framework import DjangoFilterBackend

from common.api.errors import bad_query

ALWAYS_KNOWN = ("cursor", "limit", "ordering", "format")


class KnownParameters(DjangoFilterBackend):
    """django-filter, strict: `?statsu=failed` must not answer with everything."""

    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        filterset = getattr(view, "filterset_class", None)
        known = {*ALWAYS_KNOWN, *(filterset.base_filters if filterset else ())}
        for name in request.query_params:
            if name not in known:
                raise bad_query(name[:80], f"is no parameter; there are {', '.join(sorted(known))}.")
        if filterset is None:
            return queryset
        filtered = filterset(request.query_params, queryset=queryset, request=request)
        if not filtered.is_valid():
            name, problems = next(iter(filtered.errors.items()))
            raise bad_query(name, str(problems[0]))
        return filtered.qs
