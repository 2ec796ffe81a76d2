"""What happens: runs, their events, calls, waits and approvals."""

from .approvals import Approval, ApprovalDecision
from .calls import ToolCall
from .conversations import Conversation, Rating
from .events import RunEvent
from .idempotency import IdempotencyRecord
from .mcp import McpServer, McpTool, ToolState
from .model_keys import ModelKey, ModelProvider, TriedModel
from .notices import ApprovalNotice
from .operations import EventCount, EventCountCursor, WorkerGroup
from .outbound import CallKind, Carrier, Follower, OutboundCall, OutboundTarget
from .queue import QueueMessage
from .runs import Run
from .schedules import OnMissed, Outcome, Schedule, ScheduledRun, ScheduleState
from .waits import Wait
from .webhooks import DeliveryStatus, WebhookDelivery, WebhookEndpoint, WebhookEvent

__all__ = [
    "Approval",
    "ApprovalDecision",
    "ApprovalNotice",
    "CallKind",
    "Carrier",
    "Conversation",
    "DeliveryStatus",
    "EventCount",
    "EventCountCursor",
    "Follower",
    "IdempotencyRecord",
    "McpServer",
    "McpTool",
    "ModelKey",
    "ModelProvider",
    "OnMissed",
    "OutboundCall",
    "OutboundTarget",
    "Outcome",
    "QueueMessage",
    "Rating",
    "Run",
    "RunEvent",
    "Schedule",
    "ScheduleState",
    "ScheduledRun",
    "ToolCall",
    "ToolState",
    "TriedModel",
    "Wait",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEvent",
    "WorkerGroup",
]
