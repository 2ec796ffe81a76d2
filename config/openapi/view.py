"""The description of the API, made once a process for each language and format.

It takes over a second, of which anybody could have many; and what makes it is meant for one thread at a time.
"""

from threading import Lock
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils import translation
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView

_lock = Lock()
_made: dict[tuple[str, str, str], HttpResponse] = {}


class Described(SpectacularAPIView):
    """The same for everybody: neither the asker nor the parameter `version` changes a word of it."""

    @extend_schema(exclude=True)
    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        renderer, _ = self.perform_content_negotiation(request)  # whose own type holds no words of the asker
        wanted = request.GET.get("lang", "")
        language = wanted if wanted in dict(settings.LANGUAGES) else str(translation.get_language())
        key = (language, renderer.format, renderer.media_type)
        with _lock:
            if key not in _made:
                with translation.override(language):
                    _made[key] = self._rendered(request, renderer)
            made = _made[key]
        headers = {"Content-Disposition": made["Content-Disposition"]}
        return HttpResponse(made.content, content_type=made["Content-Type"], headers=headers)

    def _rendered(self, request: Any, renderer: Any) -> HttpResponse:
        answer: Any = self._get_schema_response(request)  # type: ignore[no-untyped-call]
        answer.accepted_renderer, answer.accepted_media_type = renderer, renderer.media_type
        answer.renderer_context = self.get_renderer_context()
        rendered: HttpResponse = answer.render()
        return rendered

    def _get_version_parameter(self, request: Any) -> None:
        return None
