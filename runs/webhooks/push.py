"""Push notifications of A2A, which webhooks' outbox and carriers deliver: what is special about them.

They are told of one run, in A2A's words and with the headers that the client asked for, for as long as the
token that arranged them sees the run: that is asked again before each is sent.
"""

import json
from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from common.links import link
from common.sealed import unseal
from groups.models import Membership, Token
from runs.models import A2ATask, Approval, Run, RunEvent, Wait, WebhookDelivery, WebhookEndpoint
from runs.models.choices import ApprovalStatus, EventType, RunStatus, WaitKind
from runs.webhooks import task_words as words

CONTENT_TYPE = "application/a2a+json"
SCOPE = "runs:read"
NO_LONGER = "The token that arranged it no longer sees the task."
ENDED = "The task has ended."


def body(delivery: WebhookDelivery) -> dict[str, Any]:
    """A StreamResponse: the update as it was noted, with what is asked of a person while it still is."""
    endpoint, update = delivery.endpoint, dict(delivery.payload)
    run = endpoint.run
    assert run is not None  # noqa: S101 - callers have looked
    said = update.get("statusUpdate")
    if said and said["status"]["state"] in words.INTERRUPTED and run.status == RunStatus.WAITING:
        waits = list(Wait.objects.filter(run=run, resolved_at=None).order_by("id"))
        if asks := asked(run, waits):
            told = words.message(run.pk, delivery.pk, asks)
            update["statusUpdate"] = {**said, "status": {**said["status"], "message": told}}
    context = A2ATask.objects.filter(run=run).values_list("context_id", flat=True).first()
    return words.placed(update, context or run.pk)


def headers(endpoint: WebhookEndpoint) -> dict[str, str]:
    """Raises Unreadable."""
    found: dict[str, str] = json.loads(unseal(endpoint.sealed_headers)) if endpoint.sealed_headers else {}
    return found


def still_reaches(endpoint: WebhookEndpoint) -> bool:
    """Whether the token that arranged it could read the run itself."""
    live = Q(expires_at=None) | Q(expires_at__gt=Now())
    tokens = Token.objects.filter(live, pk=endpoint.token_id, revoked_at=None, user__is_active=True)
    token = tokens.select_related("user").first()
    if token is None or SCOPE not in token.scopes or endpoint.run is None:
        return False
    return Membership.objects.seeing(token.user, endpoint.run.project) is not None


def is_last(update: dict[str, Any]) -> bool:
    """Whether nothing comes after it: the task has ended."""
    return update.get("statusUpdate", {}).get("status", {}).get("state") in words.TERMINAL


def switch_off(endpoint: WebhookEndpoint, why: str) -> None:
    endpoint.enabled, endpoint.disabled_because = False, why
    endpoint.save(update_fields=["enabled", "disabled_because"])


def asked(run: Run, waits: Sequence[Wait]) -> str:
    """What the run waits for a person to say: its questions, or else which approvals, and where."""
    questions = [wait.correlation_key for wait in waits if wait.kind == WaitKind.INPUT]
    if questions:
        events = RunEvent.objects.filter(run=run, type=EventType.TOOL_WAITS)
        found = events.filter(payload__correlation_key__in=questions).order_by("seq")
        return "\n".join(str(said) for said in found.values_list("payload__question", flat=True) if said)
    pending = Approval.objects.filter(run=run, status=ApprovalStatus.PENDING).select_related("tool_call")
    return "\n".join(
        f"{each.tool_call.tool} waits for a decision, which is taken at {link('web:approval', each.pk)}"
        for each in pending.order_by("id")
    )
