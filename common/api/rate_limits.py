"""How a refusal tells how much one may ask: the headers of draft-ietf-httpapi-ratelimit-headers-10.

A draft: its names stand here alone, and Deputy promises nothing about them. `Retry-After` is what counts.
"""

from math import ceil

POLICY = "RateLimit-Policy"
LIMIT = "RateLimit"
NAME = '"default"'  # of the only policy: a quoted string of RFC 9651
DESCRIBED = {
    POLICY: {
        "schema": {"type": "string", "example": f"{NAME};q=600;w=60"},
        "description": "Draft: the allowance, `q` requests in `w` seconds.",
    },
    LIMIT: {
        "schema": {"type": "string", "example": f"{NAME};r=0;t=1"},
        "description": "Draft: `r` requests are left now, and one more in `t` seconds.",
    },
}


def refused(most: int, seconds: float, wait: float) -> dict[str, str]:
    """The headers of a 429: of an allowance of `most` requests in `seconds`, the next comes in `wait` s."""
    return {POLICY: f"{NAME};q={most};w={ceil(seconds)}", LIMIT: f"{NAME};r=0;t={max(1, ceil(wait))}"}
