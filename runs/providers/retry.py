"""When a failed model call is tried again. Pure: the caller waits, counts and records."""

import hashlib

from runs.providers.base import ProviderError

MAX_ATTEMPTS = 4  # where it is not known that time will help
PASSES = frozenset(  # what a server gets over: asked again as long as the run has time
    {"MODEL_RATE_LIMITED", "MODEL_UNAVAILABLE", "MODEL_TIMEOUT", "MODEL_CONNECTION"}
)
FIRST_DELAY = 1.0
RATE_LIMITED_FIRST_DELAY = 5.0
MAX_DELAY = 60.0
LONGEST_RETRY_AFTER = 900.0


def delay(attempt: int, error: ProviderError, seed: str = "") -> float | None:
    """Seconds to wait after the `attempt`-th attempt (from 1) failed with `error`; None = give up.

    How long it goes on after failures that pass is the caller's to say (the run's deadline). The delay is
    never shorter than the server's `retry_after`; one that asks for more than 15 minutes is not waited for.
    The jitter follows from `seed` (the run's id, say): a replay waits as long as the first time.
    """
    if not error.retryable or (attempt >= MAX_ATTEMPTS and error.code not in PASSES):
        return None
    if error.retry_after is not None:
        if error.retry_after > LONGEST_RETRY_AFTER:
            return None
        return max(error.retry_after, 0.0) + FIRST_DELAY * _fraction(seed, attempt)
    first = RATE_LIMITED_FIRST_DELAY if error.code == "MODEL_RATE_LIMITED" else FIRST_DELAY
    doubled = min(first * 2.0 ** min(max(attempt, 1) - 1, 10), MAX_DELAY)
    return doubled * (0.5 + 0.5 * _fraction(seed, attempt))


def _fraction(seed: str, attempt: int) -> float:
    """Between 0 and 1, the same for the same seed and attempt in every process."""
    digest = hashlib.sha256(f"{seed}:{attempt}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2.0**48
