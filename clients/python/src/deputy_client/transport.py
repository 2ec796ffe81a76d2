"""Asks again where that is safe: what was refused for being too much, and what may be repeated."""

import time
from collections.abc import Callable

import httpx

TRIES = 4
LONGEST = 60.0  # seconds between two tries


class Patient(httpx.BaseTransport):
    """Waits as long as Retry-After says, or twice as long each time.

    429 changed nothing, so it is asked again always. 503 and a broken connection leave open what happened:
    asked again are requests that only read, and those with an Idempotency-Key.
    """

    def __init__(self, inner: httpx.BaseTransport, sleep: Callable[[float], None] = time.sleep) -> None:
        self.inner, self.sleep = inner, sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        repeatable = request.method == "GET" or "Idempotency-Key" in request.headers
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                response = self.inner.handle_request(request)
            except httpx.TransportError:
                if last or not repeatable:
                    raise
                self.sleep(2.0**attempt)
                continue
            again = response.status_code == 429 or (response.status_code == 503 and repeatable)
            if last or not again:
                return response
            response.close()
            self.sleep(wait_of(response, attempt))
        raise AssertionError("unreachable")

    def close(self) -> None:
        self.inner.close()


def wait_of(response: httpx.Response, attempt: int) -> float:
    """Seconds until the next try."""
    said = response.headers.get("Retry-After", "")
    return min(float(said) if said.isdigit() else 2.0**attempt, LONGEST)
