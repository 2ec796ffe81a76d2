"""W3C Trace Context (version 00): the header `traceparent`, read strictly and written.

Only the two ids are taken over from others. What they say of sampling is not: whoever asks must not be able
to hide a request from the operator's traces. `tracestate` and `baggage` are neither read nor passed on.
"""

import re
from typing import Any, NamedTuple

TRACEPARENT = "traceparent"  # the header, and SEP-414's key in MCP's `_meta`
FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", re.ASCII)
LENGTH = 55  # characters


class Ids(NamedTuple):
    """A span, by its trace's 128 bits and its own 64; neither is 0."""

    trace: int
    span: int

    def __str__(self) -> str:
        """As `traceparent` writes it, sampled."""
        return f"00-{self.trace:032x}-{self.span:016x}-01"


def read(value: Any) -> Ids | None:
    """The ids of a `traceparent`; None for whatever is not one, which is to be ignored."""
    found = FORM.fullmatch(value) if isinstance(value, str) else None
    ids = Ids(int(found[1], 16), int(found[2], 16)) if found else None
    return ids if ids and all(ids) else None
