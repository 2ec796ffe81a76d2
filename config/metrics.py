"""/metrics, for Prometheus."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder

from common.api import errors
from config.watchers import may_watch
from runs.observe.metrics import registry


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures, in the form the reader asks for. 404 for those who may not watch."""
    if not may_watch(request):
        return errors.not_found(request)
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry()), content_type=content_type)
