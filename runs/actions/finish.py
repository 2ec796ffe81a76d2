"""End a run, and tell its parent in the same transaction."""

from dataclasses import dataclass
from typing import Any

from common.current import Work
from runs.log import waits
from runs.log.log import RunLog
from runs.models.choices import EventType, RunStatus, WaitOutcome
from runs.observe import tracing

CANCELLED = "Group run cancelled"
NO_OUTPUT = "Group completed but produced no output"


@dataclass(frozen=True)
class Ending:
    """How a run ended. `tokens` are what it and its children used."""

    status: RunStatus
    output: str | None = None
    error: dict[str, str] | None = None
    tokens: int = 0


EVENTS = {
    RunStatus.COMPLETED: EventType.RUN_COMPLETED,
    RunStatus.FAILED: EventType.RUN_FAILED,
    RunStatus.CANCELLED: EventType.RUN_CANCELLED,
}


def end(log: RunLog, parent: RunLog | None, ending: Ending) -> None:
    """End the locked run and resolve its (locked) parent's wait for it."""
    log.append(EVENTS[ending.status], {"output": ending.output, "error": ending.error})
    log.set(status=ending.status.value, output=ending.output, error=ending.error)
    tracing.run_ended(
        Work(log.id, log.root_id, log.organization_id),
        log.parent_run_id,
        log.kind,
        ending.status.value,
        ending.error,
        ending.tokens,
    )
    if parent is not None and not parent.ended:
        parent.follow(log)
        waits.resolve(parent, child_key(log.id), outcome_of(ending), result_of(log.id, ending))


def child_key(run_id: str) -> str:
    """The correlation key under which a parent waits for a child."""
    return f"child-{run_id}"


def outcome_of(ending: Ending) -> str:
    return WaitOutcome(ending.status.value).value


def result_of(run_id: str, ending: Ending) -> dict[str, Any]:
    """What the parent learns: which child, how it ended, its words or its error (ruling 16)."""
    return {"child_run": run_id, "tokens": ending.tokens, **_words(ending)}


def _words(ending: Ending) -> dict[str, Any]:
    if ending.status == RunStatus.COMPLETED:
        return {"success": True, "result": ending.output or NO_OUTPUT}
    if ending.status == RunStatus.CANCELLED:
        return {"success": False, "error": _cancelled((ending.error or {}).get("message", ""))}
    message = (ending.error or {}).get("message") or "Unknown error"
    return {"success": False, "error": f"Group run failed: {message}"}


def _cancelled(message: str) -> str:
    """`Group run cancelled`, and then by whom and why (ruling 45)."""
    if message.startswith(CANCELLED):
        return message
    if message.startswith("Cancelled by "):
        return f"{CANCELLED} {message.removeprefix('Cancelled ')}"
    return f"{CANCELLED}: {message}" if message else CANCELLED
