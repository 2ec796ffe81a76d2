"""A person says something to a run: an answer it waits for, or a word in between."""

from django.db import transaction

from common.db import rows
from runs.actions import waits
from runs.actions.signal import Delivered, SignalRefused
from runs.choices import EventType, MessageType, WaitKind, WaitOutcome
from runs.log import RunLog

MAX_CONTENT = 100_000  # characters

OPEN_INPUTS = """
SELECT correlation_key FROM runs_wait
WHERE run_id = %s AND kind = %s AND resolved_at IS NULL ORDER BY id
"""


def message(run_id: str, content: str, author: str, correlation_key: str = "") -> Delivered:
    """Add the message to the log and answer the oldest open question, or the one named.

    Never decides an approval. Raises RunGone, SignalRefused (RUN_ENDED, EMPTY, TOO_LONG, NO_SUCH_WAIT).
    """
    content = content.strip()
    if not content:
        raise SignalRefused("EMPTY", "The message is empty.")
    if len(content) > MAX_CONTENT:
        raise SignalRefused("TOO_LONG", f"The message is longer than {MAX_CONTENT} characters.")
    with transaction.atomic():
        log = RunLog.lock(run_id)
        if log.ended:
            raise SignalRefused("RUN_ENDED", f"The run has already {log.status}.")
        answers = question(run_id, correlation_key)
        log.append(
            EventType.MESSAGE_CREATED,
            {
                "role": "user",
                "author": author,
                "message_type": MessageType.STATUS.value,
                "content": content,
            },
        )
        if answers:
            waits.resolve(log, answers, WaitOutcome.COMPLETED.value, {"answer": content, "author": author})
        waits.flush_and_enqueue(log)
    return Delivered("delivered" if answers else "kept")


def question(run_id: str, correlation_key: str) -> str | None:
    """The open question this answers; None when the run asks nothing. Raises SignalRefused."""
    open_keys: list[str] = [key for (key,) in rows(OPEN_INPUTS, [run_id, WaitKind.INPUT.value])]
    if correlation_key and correlation_key not in open_keys:
        listed = ", ".join(open_keys) or "none"
        raise SignalRefused(
            "NO_SUCH_WAIT", f"No open question has the key '{correlation_key}'; open: {listed}."
        )
    return correlation_key or (open_keys[0] if open_keys else None)
