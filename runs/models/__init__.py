"""What happens: runs, their events, calls, waits and approvals."""

from .approvals import Approval
from .calls import ToolCall
from .events import RunEvent
from .idempotency import IdempotencyRecord
from .runs import Run
from .waits import Wait

__all__ = ["Approval", "IdempotencyRecord", "Run", "RunEvent", "ToolCall", "Wait"]
