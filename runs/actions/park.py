"""Park a run: it waits and lets go of its worker."""

from runs.log.log import RunLog
from runs.log.state import State
from runs.models.choices import EventType, RunStatus


def park(log: RunLog, state: State, reason: str) -> None:
    """Let the run wait for what is open. Its waits stand already, in this same transaction."""
    waits = [
        {"kind": call.wait_kind, "correlation_key": call.correlation_key, "call_id": call.call_id}
        for call in state.unfinished("waiting")
    ]
    log.append(EventType.RUN_WAITING, {"reason": reason, "waits": waits})
    log.set(status=RunStatus.WAITING.value, waiting_reason=reason)
