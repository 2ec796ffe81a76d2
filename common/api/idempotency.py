"""Idempotency-Key: the same request twice is one act and one answer."""

import json
from collections.abc import Callable, Collection
from typing import Any

from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from common.api.errors import Problem
from common.canonical import digest
from common.db import execute, from_json, jsonb, row

HEADER = "Idempotency-Key"
MAX_KEY = 255
KEPT_HOURS = 48  # at least; the sweeper removes what is older
BATCH = 1_000

CLAIM = """
INSERT INTO runs_idempotencyrecord
    (organization_id, user_id, key, request_digest, location, created_at)
VALUES (%s, %s, %s, %s, '', clock_timestamp())
ON CONFLICT (organization_id, user_id, key) DO NOTHING RETURNING id
"""
ANSWERED = "UPDATE runs_idempotencyrecord SET status = %s, body = %s, location = %s WHERE id = %s"
FIND = """
SELECT request_digest, status, body, location FROM runs_idempotencyrecord
WHERE organization_id = %s AND user_id = %s AND key = %s
"""
FORGET = """
DELETE FROM runs_idempotencyrecord WHERE id = ANY(ARRAY(
    SELECT id FROM runs_idempotencyrecord WHERE created_at < now() - %s * interval '1 hour'
    ORDER BY created_at LIMIT %s FOR UPDATE SKIP LOCKED))
"""

KEYED = OpenApiParameter(
    HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description=f"The same key with the same body is done once and answered alike for {KEPT_HOURS} hours.",
)
REUSED = {
    400: {"BAD_IDEMPOTENCY_KEY": "The key is empty, too long, or not visible ASCII."},
    422: {"IDEMPOTENCY_KEY_REUSED": "The key came before with another request."},
}


def once(request: Any, act: Callable[[], Response], secret: Collection[str] = ()) -> Response:
    """Act, or answer as the first request with this key was answered.

    The record commits with the act: a second request with the key waits for the first one's end, and
    a refusal leaves no record. Fields that are `secret` are not kept, and so not told again. Raises
    Problem 422 when the key came with another request.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return act()
    if not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise Problem(400, "BAD_IDEMPOTENCY_KEY", f"{HEADER} takes 1 to {MAX_KEY} visible ASCII characters.")
    return once_named(request, key, digest(request.method, request.path, request.data), act, secret)


def once_named(
    request: Any, key: str, asked: str, act: Callable[[], Response], secret: Collection[str] = ()
) -> Response:
    """`once` for a protocol that has its own name for a request: its key, and the digest of what it asks."""
    with transaction.atomic():
        claimed = row(CLAIM, [request.organization.pk, request.user.pk, key, asked])
        if claimed is None:
            return _again(request, key, asked)
        response = act()
        body = {name: value for name, value in _plain(response).items() if name not in secret}
        execute(ANSWERED, [response.status_code, jsonb(body), response.get("Location", ""), claimed[0]])
        return response


def _again(request: Any, key: str, asked: str) -> Response:
    digest_then, status, body, location = row(FIND, [request.organization.pk, request.user.pk, key])
    if digest_then != asked:
        raise Problem(422, "IDEMPOTENCY_KEY_REUSED", f"This {HEADER} came before with another request.")
    headers = {"Idempotency-Replayed": "true"}
    if location:
        headers["Location"] = location
    return Response(from_json(body), status=status, headers=headers)


def _plain(response: Response) -> dict[str, Any]:
    """The body as the client reads it: ids, dates and all as JSON has them."""
    return dict(json.loads(JSONRenderer().render(response.data)))


def forget() -> int:
    """Drop up to a thousand records past their time; how many. For the sweeper."""
    return execute(FORGET, [KEPT_HOURS, BATCH])
