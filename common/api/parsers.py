"""What a JSON body may be. Stricter than Python's json: what PostgreSQL cannot keep never gets in."""

import json
import math
from collections import Counter
from typing import Any

from django.conf import settings
from django.utils.http import parse_header_parameters
from rest_framework.parsers import BaseParser

from common.api.errors import CODES, Problem
from common.bodies import too_large
from common.canonical import NotJson, normalise

MAX_DIGITS = 400  # of a whole number; JSON sets no limit, memory does


class StrictJSONParser(BaseParser):
    """JSON in UTF-8: no repeated keys, no NaN, no NUL, no lone surrogate, no bottomless nesting."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: dict[str, Any] | None = None
    ) -> Any:
        """The body's value, as JSONB would give it back. Raises Problem."""
        charset = parse_header_parameters(media_type or "")[1].get("charset", "utf-8")
        if charset.lower() not in ("utf-8", "utf8"):
            raise Problem(415, CODES[415], f"JSON is sent in UTF-8, not in {charset[:40]!r}.")
        return read(_raw(stream, parser_context or {}))


def read(raw: bytes) -> Any:
    """The value of a JSON text. Raises Problem: 400 MALFORMED_JSON, saying where."""
    try:
        value = json.loads(
            raw.decode(),
            object_pairs_hook=_object,
            parse_int=_int,
            parse_float=_float,
            parse_constant=_constant,
        )
        return normalise(value)
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _malformed("nested too deep") from None
    except NotJson as error:
        raise _malformed(str(error)[:300]) from None


def _raw(stream: Any, context: dict[str, Any]) -> bytes:
    request = context.get("request")
    announced = str(request.META.get("CONTENT_LENGTH") or "") if request is not None else ""
    if announced.isdigit() and int(announced[:12]) > settings.BODY_BYTES:
        raise _too_large()
    try:
        raw: bytes = stream.read(settings.BODY_BYTES + 1)
    except OSError:
        raise Problem(400, "BODY_CUT_SHORT", "The connection ended before the body did.") from None
    if len(raw) > settings.BODY_BYTES:
        raise _too_large()
    return raw


def _too_large() -> Problem:
    return Problem(413, CODES[413], too_large(settings.BODY_BYTES))


def _malformed(why: str) -> Problem:
    return Problem(400, "MALFORMED_JSON", f"The body is not JSON that can be kept: {why}.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise NotJson(f"the key {twice[:80]!r} stands twice in one object")
    return found


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise NotJson(f"a number has {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotJson(f"the number {text[:40]} is too large")
    return value


def _constant(text: str) -> Any:
    raise NotJson(f"{text} is not JSON")
