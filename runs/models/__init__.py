"""What happens: runs, their events, calls, waits and approvals."""

from .a2a import A2ATask
from .accounts import ConnectedAccount
from .approvals import Approval, ApprovalDecision
from .calls import ToolCall
from .conversations import Conversation, Rating
from .events import RunEvent
from .idempotency import IdempotencyRecord
from .mcp import McpServer, McpTool, ToolState
from .mcp_tasks import McpTask, TaskState
from .model_keys import ModelKey, ModelProvider, TriedModel
from .notices import (
    Alarm,
    ApprovalNotice,
    ApprovalWatch,
    Channel,
    ChannelKind,
    ChatAccount,
    InstallationKey,
    NoticeKind,
    Topic,
)
from .operations import DatabaseLine, EventCount, EventCountCursor, GoneMonth, WorkerGroup
from .outbound import CallKind, Carrier, Follower, OutboundCall, OutboundTarget, ShownWords
from .prices import ModelPrice
from .queue import QueueMessage
from .remote_agents import CardState, RemoteAgent, RemoteTask
from .runs import Run, in_conversation
from .schedules import OnMissed, Outcome, Schedule, ScheduledRun, ScheduleState
from .waits import Wait
from .webhooks import DeliveryStatus, WebhookDelivery, WebhookEndpoint, WebhookEvent

__all__ = [
    "A2ATask",
    "Alarm",
    "Approval",
    "ApprovalDecision",
    "ApprovalNotice",
    "ApprovalWatch",
    "CallKind",
    "CardState",
    "Carrier",
    "Channel",
    "ChannelKind",
    "ChatAccount",
    "ConnectedAccount",
    "Conversation",
    "DatabaseLine",
    "DeliveryStatus",
    "EventCount",
    "EventCountCursor",
    "Follower",
    "GoneMonth",
    "IdempotencyRecord",
    "InstallationKey",
    "McpServer",
    "McpTask",
    "McpTool",
    "ModelKey",
    "ModelPrice",
    "ModelProvider",
    "NoticeKind",
    "OnMissed",
    "OutboundCall",
    "OutboundTarget",
    "Outcome",
    "QueueMessage",
    "Rating",
    "RemoteAgent",
    "RemoteTask",
    "Run",
    "RunEvent",
    "Schedule",
    "ScheduleState",
    "ScheduledRun",
    "ShownWords",
    "TaskState",
    "ToolCall",
    "ToolState",
    "Topic",
    "TriedModel",
    "Wait",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEvent",
    "WorkerGroup",
    "in_conversation",
]
