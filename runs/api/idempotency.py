"""Idempotency-Key: the same request twice is one act and one answer."""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from rest_framework.response import Response

from common.canonical import digest
from common.db import execute, row
from config.api.errors import Problem
from runs.models import IdempotencyRecord

HEADER = "Idempotency-Key"
MAX_KEY = 255
KEPT_HOURS = 48  # at least; older ones go with the organization's next key

CLAIM = """
INSERT INTO runs_idempotencyrecord
    (organization_id, user_id, key, request_digest, location, created_at)
VALUES (%s, %s, %s, %s, '', clock_timestamp())
ON CONFLICT (organization_id, user_id, key) DO NOTHING RETURNING id
"""
FORGET = """
DELETE FROM runs_idempotencyrecord WHERE id = ANY(ARRAY(
    SELECT id FROM runs_idempotencyrecord
    WHERE organization_id = %s AND created_at < clock_timestamp() - %s * interval '1 hour'
    ORDER BY created_at LIMIT 100 FOR UPDATE SKIP LOCKED))
"""


def once(request: Any, act: Callable[[], Response]) -> Response:
    """Act, or answer as the first request with this key was answered.

    The record commits with the act: a second request with the key waits for the first one's end, and
    a refusal leaves no record. Raises Problem 422 when the key came with another request.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return act()
    if not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise Problem(400, "BAD_IDEMPOTENCY_KEY", f"{HEADER} takes 1 to {MAX_KEY} visible ASCII characters.")
    asked = digest(request.method, request.path, request.data)
    with transaction.atomic():
        execute(FORGET, [request.organization.pk, KEPT_HOURS])
        claimed = row(CLAIM, [request.organization.pk, request.user.pk, key, asked])
        if claimed is None:
            return _again(request, key, asked)
        response = act()
        IdempotencyRecord.objects.filter(pk=claimed[0]).update(
            status=response.status_code, body=_plain(response), location=response.get("Location", "")
        )
        return response


def _again(request: Any, key: str, asked: str) -> Response:
    record = IdempotencyRecord.objects.get(organization=request.organization, user=request.user, key=key)
    if record.request_digest != asked:
        raise Problem(422, "IDEMPOTENCY_KEY_REUSED", f"This {HEADER} came before with another request.")
    headers = {"Idempotency-Replayed": "true"}
    if record.location:
        headers["Location"] = record.location
    return Response(record.body, status=record.status, headers=headers)


def _plain(response: Response) -> Any:
    """The body as the client reads it: ids, dates and all as JSON has them."""
    import json

    from rest_framework.renderers import JSONRenderer

    return json.loads(JSONRenderer().render(response.data))
