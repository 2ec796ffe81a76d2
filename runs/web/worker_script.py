"""The service worker, at the root of the site: it can show notices only for what lies below its address."""

from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

FILE = Path(__file__).resolve().parent.parent / "static" / "deputy" / "worker.js"


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """It holds nothing of anybody, so nobody has to sign in for it."""
    answer = HttpResponse(_text(), content_type="text/javascript; charset=utf-8")
    answer["Cache-Control"] = "no-cache"
    return answer


@cache
def _text() -> str:
    return FILE.read_text("utf-8")
