"""An outside agent, and the worker that executes its calls."""

from typing import Any

from runs.execution import calls, external
from runs.models import Run, ToolCall
from tests.acting import request_call, start

MAIL = {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}


class Outside:
    """A run in the hands of an outside agent, and short words for what it does."""

    def __init__(self, world: Any, goal: str = "Answer the customer", **fields: Any) -> None:
        started = start(user=world.user, project=world.project, goal=goal, driver="external", **fields)
        self.run = Run.objects.get(pk=started)

    def call(self, call_id: str, name: str, work: bool = True, **arguments: Any) -> calls.Look:
        """Ask for the call, let the queue work it off, and look at it."""
        request_call(self.run.pk, call_id, name, arguments)
        if work:
            work_off()
        return self.look(call_id)

    def look(self, call_id: str) -> calls.Look:
        self.run.refresh_from_db()
        return calls.look(self.run, call_id)


def queued() -> list[str]:
    """The rows of the calls that wait for a worker."""
    return list(
        ToolCall.objects.filter(queued_at__isnull=False).order_by("queued_at").values_list("pk", flat=True)
    )


def work_off() -> None:
    """What a worker would do with what is on the queue now."""
    for row_id in queued():
        external.execute(row_id)
