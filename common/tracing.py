"""OpenTelemetry spans of what agents do, by the conventions for generative AI.

Nothing is imported and nothing done unless OTEL_EXPORTER_OTLP_ENDPOINT is set (requirements-otel.txt
has the packages). No prompt, argument or result leaves the process with a span.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from common import current
from common.trace_context import Ids

Attributes = Mapping[str, str | int | float | bool | tuple[str, ...] | None]  # None: not said

exporting = bool(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip())


class Span:
    """A span while it lasts. This one is nobody's and keeps nothing."""

    ids: Ids | None = None  # for others to name it as the parent of theirs

    def tell(self, attributes: Attributes) -> None:
        """Add attributes."""

    def fail(self, kind: str) -> None:
        """What the span is about did not succeed, for this reason (`error.type`). The first one stays."""

    def link(self, run_id: str, root_id: str) -> None:
        """It led to this run, which is of another trace."""


Kind = Literal["client", "server"]

NOBODY = Span()
_innermost: ContextVar[Span] = ContextVar("deputy_span", default=NOBODY)
_asked_by: ContextVar[Ids | None] = ContextVar("deputy_asked_by", default=None)


def innermost() -> Span:
    """The span that lasts just now; nobody's where there is none."""
    return _innermost.get()


@contextmanager
def span(operation: str, subject: str = "", attributes: Attributes | None = None) -> Iterator[Span]:
    """A span of the run at hand: `chat`, `execute_tool` or `search_memory`, and of what. It links to whoever
    asked for it from outside.
    """
    work = current.work()
    if not exporting or work is None:
        yield NOBODY
        return
    from common import telemetry

    with telemetry.span(work, operation, subject, attributes or {}, asked_by()) as made, _inside(made):
        yield made


@contextmanager
def request(
    kind: Kind, name: str, attributes: Attributes, parent: Ids | None = None, link: Ids | None = None
) -> Iterator[Span]:
    """A span of a request that is no run's: one that came in, or one that goes out. `parent` and `link` are
    what others have said.
    """
    if not exporting:
        yield NOBODY
        return
    from common import telemetry

    with telemetry.request(kind, name, attributes, parent, link) as made, _inside(made):
        yield made


@contextmanager
def _inside(made: Span) -> Iterator[None]:
    token = _innermost.set(made)
    try:
        yield
    finally:
        _innermost.reset(token)


def asked_by() -> Ids | None:
    """The request from outside that the work at hand goes back to."""
    return _asked_by.get()


@contextmanager
def working_for_request(ids: Ids | None) -> Iterator[None]:
    """Inside, this thread works for that request from outside."""
    token = _asked_by.set(ids)
    try:
        yield
    finally:
        _asked_by.reset(token)


def run_ended(
    work: current.Work,
    parent_run_id: str | None,
    name: str,
    attributes: Attributes,
    error: str,
    asked_by: Ids | None,
) -> None:
    """The span `invoke_agent` of a whole run, from its creation until now; `error` is empty or its code. It
    links to the request from outside that began it.
    """
    if not exporting:
        return
    from common import telemetry

    telemetry.run_ended(work, parent_run_id, name, attributes, error, asked_by)
