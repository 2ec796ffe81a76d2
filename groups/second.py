"""What waits for a second person: kept once the request's transaction is undone, and said to who asked. And
what whoever asked has to confirm first.
"""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from rest_framework.response import Response

from common.api import errors
from groups.changes import TakesConfirmation, TakesSecond
from groups.models import ProposalState, ProposedChange

STATUS = 202


def propose(held: TakesSecond) -> ProposedChange:
    """Keep the change for somebody else to confirm. Their earlier one about the row is replaced."""
    proposed = held.proposed
    with transaction.atomic():
        earlier = ProposedChange.objects.filter(
            organization_id=proposed.organization_id, user=proposed.user, model=proposed.model,
            object_id=proposed.object_id, state=ProposalState.OPEN,
        )  # fmt: skip
        earlier.update(state=ProposalState.REPLACED)
        proposed.save(force_insert=True)
    return proposed


class Proposing(MiddlewareMixin):
    """On Deputy's pages. Whatever page it was, its transaction is undone by the time this is asked."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, TakesConfirmation):
            return render(request, "web/confirm_first.html", {"why": _(str(exception))}, status=403)
        if not isinstance(exception, TakesSecond):
            return None
        proposed = propose(exception)
        said = _(
            "Proposed, and not done yet: another administrator has to confirm it under Proposed changes."
        )
        messages.warning(request, f"{proposed.label}: {said}")
        in_admin = request.path.startswith("/admin/") or "/admin/" in request.path
        return redirect("admin:index" if in_admin else "web:home")


def handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: 202 for what waits for a second person, and else the usual one; also for what
    a person's session has to confirm first.
    """
    if isinstance(exc, TakesConfirmation):
        exc = errors.Problem(
            403, "CONFIRM_FIRST", f"Confirm first that it is you ({exc}); nothing has changed."
        )
    if isinstance(exc, TakesSecond):
        proposed = propose(exc)
        told = {
            "proposed": proposed.pk,
            "state": proposed.state,
            "why": proposed.why,
            "detail": "Nothing has changed: another administrator has to confirm it.",
        }
        return Response(told, STATUS)
    return errors.handler(exc, context)
