"""OpenTelemetry spans of what agents do, by the conventions for generative AI.

Nothing is imported and nothing done unless OTEL_EXPORTER_OTLP_ENDPOINT is set (requirements-otel.txt
has the packages). No prompt, argument or result leaves the process with a span.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from common import current

Attributes = Mapping[str, str | int | float | bool | tuple[str, ...] | None]  # None: not said

exporting = bool(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip())


class Span:
    """A span while it lasts. This one is nobody's and keeps nothing."""

    def tell(self, attributes: Attributes) -> None:
        """Add attributes."""

    def fail(self, kind: str) -> None:
        """What the span is about did not succeed, for this reason (`error.type`)."""


@contextmanager
def span(operation: str, subject: str = "", attributes: Attributes | None = None) -> Iterator[Span]:
    """A span of the run at hand: `chat`, `execute_tool` or `search_memory`, and of what."""
    work = current.work()
    if not exporting or work is None:
        yield Span()
        return
    from common import telemetry

    with telemetry.span(work, operation, subject, attributes or {}) as made:
        yield made


def run_ended(
    work: current.Work, parent_run_id: str | None, name: str, attributes: Attributes, error: str
) -> None:
    """The span `invoke_agent` of a whole run, from its creation until now; `error` is empty or its code."""
    if not exporting:
        return
    from common import telemetry

    telemetry.run_ended(work, parent_run_id, name, attributes, error)
