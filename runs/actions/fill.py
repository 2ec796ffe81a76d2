"""A person answers what somebody else's server asks in the middle of a call. Nobody but that server hears it:
the answer is no message to the agent, and no word of the person's that anything is judged by.
"""

from typing import Any

from common.db import from_json, row
from groups.actors import Actor
from runs.actions.signal import SignalRefused
from runs.log import waits
from runs.log.log import RunLog
from runs.models.choices import EventType, WaitOutcome
from runs.tools import forms

ASKED = """
SELECT payload -> 'form' FROM runs_runevent
WHERE run_id = %s AND type = %s AND payload ->> 'correlation_key' = %s ORDER BY seq DESC LIMIT 1
"""


def fill(log: RunLog, key: str, tool_call_id: str | None, content: str, actor: Actor) -> None:
    """Resolve the form's open wait in a locked run. Raises SignalRefused (INVALID_ANSWER)."""
    try:
        responses = forms.answered(_form(log.id, key), content)
    except forms.WrongAnswer as wrong:
        raise SignalRefused("INVALID_ANSWER", str(wrong)) from None
    answer = {"responses": responses, "author": str(actor)}
    waits.resolve_open(log, key, WaitOutcome.COMPLETED.value, answer, tool_call_id)


def _form(run_id: str, key: str) -> dict[str, Any]:
    found = row(ASKED, [run_id, EventType.TOOL_WAITS.value, key])
    assert found is not None  # noqa: S101 - the event stands in the log before its wait is opened
    asked: dict[str, Any] = from_json(found[0])
    return asked
