"""The part of tracing that knows OpenTelemetry; imported only where spans are exported.

A run's own span is written when it has ended, by whichever process ended it. Its id is computed from
the run's (common/trace_ids.py), so that what happens inside names it as the parent long before.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import util

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from common import conventions as names
from common import ids
from common.current import Work
from common.trace_context import Ids as Named
from common.trace_ids import span_id, trace_id
from common.tracing import Attributes, Kind, Span

NANOSECONDS = 1_000_000_000
SERVICE = os.environ.get("OTEL_SERVICE_NAME", "deputy")

_wanted: ContextVar[tuple[int, int] | None] = ContextVar("deputy_span_ids", default=None)


class Ids(RandomIdGenerator):
    """Random ids, but for the span of a run, which has its own."""

    def generate_trace_id(self) -> int:
        wanted = _wanted.get()
        return wanted[0] if wanted else super().generate_trace_id()

    def generate_span_id(self) -> int:
        wanted = _wanted.get()
        return wanted[1] if wanted else super().generate_span_id()


class Recorded(Span):
    """A span that is exported when it ends."""

    def __init__(self, recorded: trace.Span) -> None:
        self.recorded, self.failed = recorded, False
        self.linked: set[str] = set()
        context = recorded.get_span_context()
        self.ids = Named(context.trace_id, context.span_id)

    def tell(self, attributes: Attributes) -> None:
        self.recorded.set_attributes(said(attributes))

    def fail(self, kind: str) -> None:
        if not self.failed:
            self.failed = True
            self.recorded.set_attribute(names.ERROR, kind)
            self.recorded.set_status(Status(StatusCode.ERROR))

    def link(self, run_id: str, root_id: str) -> None:
        if run_id in self.linked:
            return
        self.linked.add(run_id)
        self.recorded.add_link(_context(Named(trace_id(root_id), span_id(run_id))))


_provider: tuple[int, TracerProvider] | None = None  # and the process it was made in: a fork has none


def tracer() -> trace.Tracer:
    """The tracer of this process."""
    global _provider
    if _provider is None or _provider[0] != os.getpid():
        _provider = (os.getpid(), export_to(OTLPSpanExporter()))
    return tracer_of(_provider[1])


def tracer_of(provider: TracerProvider) -> trace.Tracer:
    """A tracer that says whose names its spans have."""
    return provider.get_tracer("deputy", schema_url=names.SCHEMA_URL)


def export_to(exporter: SpanExporter) -> TracerProvider:
    """A provider whose spans go there, the last ones when the process ends."""
    provider = TracerProvider(
        resource=Resource.create({"service.name": SERVICE}), shutdown_on_exit=False, id_generator=Ids()
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    util.Finalize(None, provider.shutdown, exitpriority=5)  # of a forked worker, too
    return provider


@contextmanager
def span(
    work: Work, operation: str, subject: str, attributes: Attributes, asked_by: Named | None
) -> Iterator[Recorded]:
    """A span inside the run's."""
    told = {names.OPERATION: operation, **_whose(work), **attributes}
    kind = SpanKind.CLIENT if operation == names.CHAT else SpanKind.INTERNAL
    parent = Named(trace_id(work.root_id), span_id(work.run_id))
    with _started(f"{operation} {subject}".strip(), kind, told, parent, asked_by) as made:
        yield made


@contextmanager
def request(
    kind: Kind, name: str, attributes: Attributes, parent: Named | None, link: Named | None
) -> Iterator[Recorded]:
    """A span inside what others have named as its parent, or the first of a trace of its own."""
    with _started(name, KINDS[kind], attributes, parent, link) as made:
        yield made


KINDS: dict[Kind, SpanKind] = {"client": SpanKind.CLIENT, "server": SpanKind.SERVER}


@contextmanager
def _started(
    name: str, kind: SpanKind, attributes: Attributes, parent: Named | None, link: Named | None
) -> Iterator[Recorded]:
    """The span while it lasts; an exception is named and passes."""
    with tracer().start_as_current_span(
        name,
        trace.set_span_in_context(
            NonRecordingSpan(_context(parent)) if parent else trace.INVALID_SPAN, Context()
        ),
        kind,
        said(attributes),
        [Link(_context(link))] if link else [],
        record_exception=False,
        set_status_on_exception=False,
    ) as recorded:
        made = Recorded(recorded)
        try:
            yield made
        except BaseException as error:
            made.fail(type(error).__name__)
            raise


def run_ended(
    work: Work,
    parent_run_id: str | None,
    name: str,
    attributes: Attributes,
    error: str,
    asked_by: Named | None = None,
) -> None:
    context = trace.set_span_in_context(
        _span_of(parent_run_id, work.root_id) if parent_run_id else trace.INVALID_SPAN
    )
    token = _wanted.set((trace_id(work.root_id), span_id(work.run_id)))
    try:
        recorded = tracer().start_span(
            f"{names.INVOKE_AGENT} {name}".strip(),
            context,
            SpanKind.INTERNAL,
            said({names.OPERATION: names.INVOKE_AGENT, **_whose(work), **attributes}),
            [Link(_context(asked_by))] if asked_by else [],
            start_time=int(ids.made_at(work.run_id) * NANOSECONDS),
        )
    finally:
        _wanted.reset(token)
    if error:
        Recorded(recorded).fail(error)
    recorded.end(time.time_ns())


def _context(ids: Named) -> SpanContext:
    """Of a span elsewhere. Always sampled: nobody outside decides what is exported."""
    return SpanContext(ids.trace, ids.span, True, TraceFlags(TraceFlags.SAMPLED))


def _span_of(run_id: str, root_id: str) -> trace.Span:
    return NonRecordingSpan(_context(Named(trace_id(root_id), span_id(run_id))))


def _whose(work: Work) -> Attributes:
    return {"deputy.run.id": work.run_id, "deputy.organization.id": work.organization_id}


def said(attributes: Attributes) -> dict[str, str | int | float | bool | tuple[str, ...]]:
    return {name: value for name, value in attributes.items() if value is not None}
