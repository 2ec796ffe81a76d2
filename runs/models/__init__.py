"""What happens: runs, their events, calls, waits and approvals."""

from .approvals import Approval, ApprovalDecision
from .calls import ToolCall
from .events import RunEvent
from .runs import Run
from .waits import Wait

__all__ = ["Approval", "ApprovalDecision", "Run", "RunEvent", "ToolCall", "Wait"]
