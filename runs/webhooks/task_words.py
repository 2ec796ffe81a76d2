"""A run's events in the words of A2A 1.0: the states of a task, and what clients are told when it moves.

Pure. The door (runs/a2a) streams these, and the outbox pushes them.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import starmap
from typing import Any

from common import redact
from runs.models.choices import FORMS, REPEATS, EventType, RunStatus, WaitKind

JSON = dict[str, Any]

SUBMITTED = "TASK_STATE_SUBMITTED"
WORKING = "TASK_STATE_WORKING"
INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"
ENDED = {
    RunStatus.COMPLETED.value: "TASK_STATE_COMPLETED",
    RunStatus.FAILED.value: "TASK_STATE_FAILED",
    RunStatus.CANCELLED.value: "TASK_STATE_CANCELED",
}
INTERRUPTED = frozenset({INPUT_REQUIRED, AUTH_REQUIRED})
TERMINAL = frozenset(ENDED.values())
END_EVENTS = {
    EventType.RUN_COMPLETED.value: RunStatus.COMPLETED.value,
    EventType.RUN_FAILED.value: RunStatus.FAILED.value,
    EventType.RUN_CANCELLED.value: RunStatus.CANCELLED.value,
}
MOVES = frozenset(
    {EventType.RUN_STARTED.value, EventType.RUN_RESUMED.value, EventType.RUN_WAITING.value, *END_EVENTS}
)
TEXT = "text/plain"


def state(status: str, started: bool, waits: Iterable[str]) -> str:
    """The state of a run's task. `waits`: the kinds of what the run waits for."""
    if status in ENDED:
        return ENDED[status]
    if status == RunStatus.WAITING:
        return waiting(waits)
    return WORKING if started or status == RunStatus.RUNNING else SUBMITTED


def kind_of(kind: str, correlation_key: str) -> str:
    """What the wait is to A2A: what a person gives at Deputy's pages alone is no question."""
    if kind == WaitKind.TIMER:
        return kind
    return WaitKind.APPROVAL.value if correlation_key.startswith((REPEATS, FORMS)) else kind


def waiting(kinds: Iterable[str]) -> str:
    """A question comes before an approval: it can be answered over A2A."""
    there = set(kinds)
    if WaitKind.INPUT.value in there:
        return INPUT_REQUIRED
    return AUTH_REQUIRED if WaitKind.APPROVAL.value in there else WORKING


def updates(run_id: str, seq: int, type: str, payload: Mapping[str, Any], at: datetime) -> list[JSON]:
    """What an event tells a task's clients: A2A's StreamResponse objects, without the `contextId` that
    `placed` adds. `payload` as its reader may see it (runs/observe/showing.py).
    """
    if type in (EventType.RUN_STARTED, EventType.RUN_RESUMED):
        return [moved(run_id, WORKING, at)]
    if type == EventType.RUN_WAITING:
        waits = ((wait["kind"], wait["correlation_key"]) for wait in payload.get("waits", ()))
        return [moved(run_id, waiting(starmap(kind_of, waits)), at)]
    if type not in END_EVENTS:
        return []
    output, error = payload.get("output"), payload.get("error") or {}
    status = END_EVENTS[type]
    told = [{"artifactUpdate": artifact_update(run_id, output)}] if output else []
    words = "" if status == RunStatus.COMPLETED else str(error.get("message", ""))
    return [*told, moved(run_id, ENDED[status], at, f"{run_id}:{seq}", words)]


def moved(run_id: str, state: str, at: datetime, message_id: str = "", words: str = "") -> JSON:
    """A statusUpdate."""
    return {"statusUpdate": {"taskId": run_id, "status": status(run_id, state, at, message_id, words)}}


def status(run_id: str, state: str, at: datetime, message_id: str = "", words: str = "") -> JSON:
    """A TaskStatus; with words of the agent's where there are any."""
    told: JSON = {"state": state, "timestamp": time(at)}
    return {**told, "message": message(run_id, message_id, words)} if words else told


def message(run_id: str, message_id: str, words: str, role: str = "ROLE_AGENT") -> JSON:
    return {"messageId": message_id, "taskId": run_id, "role": role, "parts": [text(words)]}


def artifact_update(run_id: str, output: str) -> JSON:
    return {"taskId": run_id, "artifact": artifact(run_id, output), "append": False, "lastChunk": True}


def artifact(run_id: str, output: str) -> JSON:
    """A run's output, the only artifact there is."""
    return {"artifactId": f"{run_id}-output", "name": "output", "parts": [text(output)]}


def text(words: str) -> JSON:
    return {"text": redact.shown(words), "mediaType": TEXT}


def placed(told: JSON, context_id: str) -> JSON:
    """A StreamResponse with the context that its task stands in."""
    ((kind, said),) = told.items()
    said = {**said, "contextId": context_id}
    words = said.get("status", {}).get("message")
    if words is not None:
        said["status"] = {**said["status"], "message": {**words, "contextId": context_id}}
    return {kind: said}


def time(moment: datetime) -> str:
    """As A2A writes times: UTC, with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
