"""What happens: runs, their events, calls, waits and approvals."""

from .approvals import Approval
from .calls import ToolCall
from .events import RunEvent
from .queue import QueueMessage
from .runs import Run
from .waits import Wait

__all__ = ["Approval", "QueueMessage", "Run", "RunEvent", "ToolCall", "Wait"]
