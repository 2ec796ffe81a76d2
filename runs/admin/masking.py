"""Rows of runs as the admin shows them: without secrets, and without what is another person's own."""

from typing import Any

from django.db.models import CharField, JSONField, TextField
from django.http import HttpRequest

from common import redact
from runs.models import IdempotencyRecord, Run, RunEvent, ToolCall, Wait
from runs.models.choices import EventType
from runs.observe import showing

SAID = ("arguments", "effective_arguments", "result", "error", "evidence")  # of a call


class WithoutSecrets:
    """Masks what the rows of a page say; nobody saves such a row."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)  # type: ignore[misc]
        if found is not None:
            _mask_private(found, request.user)
            _mask_secrets(found)
        return found


def _mask_private(found: Any, reader: Any) -> None:
    if isinstance(found, IdempotencyRecord) and found.user_id != reader.pk:
        found.body = showing.hidden(found.body)
    if not isinstance(found, RunEvent | ToolCall | Wait):
        return
    own = Run.objects.filter(pk=found.run_id, user_id=reader.pk).exists()
    if isinstance(found, RunEvent):
        found.payload = showing.payload(found.type, found.payload, own)
        return
    if isinstance(found, Wait):
        told = showing.payload(EventType.WAIT_COMPLETED, {"payload": found.payload}, own)
        found.payload = told["payload"]
        return
    for name in SAID:
        setattr(found, name, showing.call(found.tool, getattr(found, name), own))


def _mask_secrets(found: Any) -> None:
    for field in found._meta.fields:
        if isinstance(field, JSONField | TextField | CharField) and not field.primary_key:
            setattr(found, field.name, redact.masked(getattr(found, field.name)))
