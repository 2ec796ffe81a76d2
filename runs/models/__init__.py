"""What happens: runs, their events, calls, waits and approvals."""

from .approvals import Approval, ApprovalDecision
from .calls import ToolCall
from .events import RunEvent
from .queue import QueueMessage
from .runs import Run
from .waits import Wait

__all__ = ["Approval", "ApprovalDecision", "QueueMessage", "Run", "RunEvent", "ToolCall", "Wait"]
