"""What the API answers in."""

from typing import Any

from rest_framework import negotiation
from rest_framework.exceptions import NotAcceptable


class JSONAnyway(negotiation.DefaultContentNegotiation):
    """The API speaks JSON, also to those who would rather have something else."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> Any:
        try:
            return super().select_renderer(request, renderers, format_suffix)
        except NotAcceptable:
            return renderers[0], renderers[0].media_type
