"""Policy's last look at a call: right before its words leave, where the server took its time to greet.

Whoever performs a call says how to look; the tools that talk to a server before they tell it anything look.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from runs.tools.base import Tool, ToolError

SOON = 0.05  # seconds after a look in which nothing is asked again
HELD_BACK = "HELD_BACK"  # code of what is raised; whoever performs the call brings it before the gate again


class Look:
    """`held`: whether the call may not leave any more. It has not, then."""

    def __init__(self, tool: Tool, admitted: Callable[[], Tool | None]) -> None:
        self.tool, self.admitted, self.at, self.held = tool, admitted, time.monotonic(), False

    def may_leave(self) -> bool:
        """Whether policy lets it pass, to the same address and as the same."""
        now = self.admitted()
        return now is not None and now.reaches == self.tool.reaches


_look: ContextVar[Look | None] = ContextVar("deputy_look", default=None)


@contextmanager
def looking(tool: Tool, admitted: Callable[[], Tool | None]) -> Iterator[Look]:
    """Inside, a call of the tool that was just admitted is performed; `admitted` asks again: the tool as it
    is then, or None.
    """
    look = Look(tool, admitted)
    token = _look.set(look)
    try:
        yield look
    finally:
        _look.reset(token)


def once_more() -> None:
    """Look again, before anything of the call is said. Blocks. Raises ToolError (HELD_BACK)."""
    look = _look.get()
    if look is None or time.monotonic() - look.at < SOON:
        return
    if not look.may_leave():
        look.held = True
        raise ToolError("Policy does not let the call pass any more.", HELD_BACK)
