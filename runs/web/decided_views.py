"""Who decided what: one's own decisions and those about one's own runs, and for auditors all there were."""

from django.http import HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from runs.deciding import decided as page
from runs.observe import decided
from runs.web import pages
from runs.web.access import MemberRequest, member


@require_safe
@member
def listed(request: MemberRequest) -> HttpResponse:
    found = page.listed(request, page.DecidedForm(request.GET), decided.seen(request.actor))
    return pages.page(request, "web/decided.html", {**found, "here": "waiting"})


@require_safe
@member
def export(request: MemberRequest) -> StreamingHttpResponse:
    """The same, all of them, as a file."""
    return page.export(request, page.DecidedForm(request.GET), decided.seen(request.actor))
