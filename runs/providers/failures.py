"""What a server's refusal means to Deputy, in stable codes and without secrets."""

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from runs.providers.base import ProviderError
from runs.providers.wire import storable

LONGEST_WORDS = 300
TRY_LATER = {408, 409, 425}
# What looks like a key even when it is not the one that was sent.
SECRETS = re.compile(
    r"(?i)\b(?:bearer\s+\S+|sk-[\w*.-]{6,}|AIza[\w-]{10,}|(?:api[_-]?key|authorization|x-api-key)[\"']?\s*[=:]\s*[\"']?(?:bearer\s+)?[^\s\"',;&]+)"
)
NO_MORE_MONEY = {"insufficient_quota", "billing_hard_limit_reached"}


def late(seconds: float) -> ProviderError:
    """The model's time was over before its answer was whole."""
    said = f"The model gave no complete answer within {seconds:g} seconds."
    return ProviderError("MODEL_TIMEOUT", said, retryable=True)


def from_status(status: int, headers: Mapping[str, str], body: str, secret: str = "") -> ProviderError:
    """The error that an HTTP answer of `status` stands for. `secret` never shows up in its message."""
    said = f"The model's server answered {status}: {words(body, secret)}"
    wait = retry_after(headers)
    if status == 429:
        spent = error_code(body) in NO_MORE_MONEY
        return ProviderError("MODEL_RATE_LIMITED", said, retryable=not spent, retry_after=wait)
    if status in TRY_LATER or status >= 500:
        return ProviderError("MODEL_UNAVAILABLE", said, retryable=True, retry_after=wait)
    return ProviderError("MODEL_REFUSED", said)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds from `retry-after-ms` or `Retry-After` (seconds or a date); None where neither is there."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(moment - (time.time() if now is None else now), 0.0)


def words(body: str, secret: str = "") -> str:
    """The server's own words in one short line: its error message, or the start of the body without tags."""
    line = " ".join(redacted(storable(_message(body)), secret).split())
    if not line:
        return "no reason given"
    return line if len(line) <= LONGEST_WORDS else line[:LONGEST_WORDS] + "…"


def redacted(text: str, secret: str = "") -> str:
    """`text` without `secret` and without anything that looks like a key."""
    if len(secret) >= 4:
        text = text.replace(secret, "[key]")
    return SECRETS.sub("[key]", text)


def error_code(body: str) -> str:
    """The machine-readable code or type of an error body; empty where there is none."""
    error = _error(body)
    if not isinstance(error, dict):
        return ""
    codes = [error.get("code"), error.get("type")]
    return next((code for code in codes if isinstance(code, str) and code in NO_MORE_MONEY), "")


def _error(body: str) -> Any:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:  # Google wraps its errors in an array
        value = value[0]
    if not isinstance(value, dict):
        return None
    return value.get("error") or value.get("detail") or value


def _message(body: str) -> str:
    error = _error(body)
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return str(error["message"])
    if isinstance(error, str):
        return error
    return re.sub(r"<[^>]{0,200}>", " ", body[:4000])


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None
