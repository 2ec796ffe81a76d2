"""Deputy's REST API for Python. `Deputy` is what most programs need; `rest` has every operation."""

from deputy_client.client import Call, Deputy
from deputy_client.errors import (
    Conflict,
    DeputyError,
    Invalid,
    NotAllowed,
    NotFound,
    TimedOut,
    TooMany,
    Unavailable,
)

__all__ = [
    "Call",
    "Conflict",
    "Deputy",
    "DeputyError",
    "Invalid",
    "NotAllowed",
    "NotFound",
    "TimedOut",
    "TooMany",
    "Unavailable",
]
