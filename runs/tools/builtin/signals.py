"""Wait for word from outside (seed 004's generic signal)."""

from datetime import timedelta
from typing import Annotated

from policy.provenance.infer import Declaration
from policy.terms import APPROVAL_PREFIX
from runs.models.choices import FORMS, REPEATS, TASKS, WaitKind
from runs.tools.base import ToolContext, ToolError, WaitFor
from runs.tools.registry import tool

OTHERS = (
    APPROVAL_PREFIX,
    "child-",
    "retry-",
    "review-",
    "input-",
    REPEATS,
    FORMS,
    TASKS,
)  # begin keys with ways of their own
AN_HOUR, A_WEEK = 3_600, 7 * 24 * 3_600


@tool(
    description=(
        "Wait until another program signals that something has come, by a key that both know, such as "
        "invoice-417. The result is what the signal carries. A signal that came before is not missed."
    ),
    risk_level="low",
    mutating=False,
    supports_parallel=True,
    transactional=True,
    declared=Declaration(content=frozenset({"key", "timeout"}), effect=False, origin="declared"),
)
def wait_for_signal(
    run: ToolContext,
    *,
    key: Annotated[str, "The key of the signal", {"minLength": 1, "maxLength": 200}],
    timeout: Annotated[int, "Seconds to wait at most", {"minimum": 1, "maximum": A_WEEK}] = AN_HOUR,
) -> WaitFor:
    """Wait for POST /api/runs/{id}/signal/ with this key."""
    if key.startswith(OTHERS):
        raise ToolError(f"'{key}' is not resolved by a plain signal: choose another key.", "RESERVED_KEY")
    return WaitFor(WaitKind.SIGNAL.value, expires_in=timedelta(seconds=timeout), key=key)
