"""What Prometheus reads: how things stand, and the counts of the log. All of it is the database's, so
every web process gives the same answer, whichever machine did the work.
"""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from common import replica
from common.db import row, rows
from runs.observe import counts, outbound
from runs.observe.alarms import alarms
from runs.observe.health import health

# a waiting run has at least one open wait, and those have an index
ACTIVE = """
SELECT status, '', count(*) FROM runs_run WHERE status IN ('pending', 'running') GROUP BY status
UNION ALL
SELECT 'waiting', r.waiting_reason, count(DISTINCT r.id) FROM runs_wait w JOIN runs_run r ON r.id = w.run_id
WHERE w.resolved_at IS NULL AND r.status = 'waiting' GROUP BY r.waiting_reason
"""
APPROVALS = """
SELECT count(*), COALESCE(EXTRACT(epoch FROM clock_timestamp() - min(requested_at))::float8, 0)
FROM runs_approval WHERE status = 'pending'
"""
# Streams of a tree send nothing younger than the oldest transaction that is writing (runs/api/stream.py).
FEED_LAG = """
SELECT COALESCE(EXTRACT(epoch FROM clock_timestamp() - min(xact_start))::float8, 0) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL
"""

Families = Iterator[Any]


class Installation(Collector):
    """The figures of the whole installation, as families of prometheus_client."""

    def collect(self) -> Families:
        counts.count()
        yield from now()
        yield from so_far(counts.read())


def registry() -> CollectorRegistry:
    made = CollectorRegistry(auto_describe=False)
    made.register(Installation())
    return made


def now() -> Families:
    """How things stand."""
    found = health()
    (approvals, oldest), (lag,) = row(APPROVALS), row(FEED_LAG)
    yield _labelled("deputy_runs", "Runs that have not ended.", ("status", "reason"), rows(ACTIVE))
    yield _gauge("deputy_queue_messages", "Messages that workers may take now.", found.queue_depth)
    yield _gauge(
        "deputy_queue_oldest_seconds", "How long the oldest of them has been waiting.", found.queue_age
    )
    yield _gauge(
        "deputy_pending_run_oldest_seconds",
        "How long the longest pending run has waited for a worker.",
        found.pending_age,
    )
    yield _gauge("deputy_worker_groups", "Groups of workers that live.", found.groups)
    doing = [("busy", found.busy), ("idle", found.workers - found.busy)]
    yield _labelled("deputy_workers", "Workers that live.", ("state",), doing)
    yield from outbound_now()
    yield _gauge("deputy_approvals_pending", "Approvals that wait for a decision.", approvals)
    yield _gauge("deputy_approval_oldest_seconds", "How long the oldest of them has been waiting.", oldest)
    words = "Approvals that nobody may come to decide, by why."
    yield _labelled("deputy_approvals_alarmed", words, ("alarm",), list(alarms().items()))
    yield _gauge(
        "deputy_event_feed_lag_seconds", "How far streams of events may lag behind what has happened.", lag
    )
    if replica.is_set():
        words = "Whether the replica has all that is committed, so that lists read it."
        yield _gauge("deputy_replica_ready", words, float(replica.look() is None))


def outbound_now() -> Families:
    """What carriers are at."""
    calls = outbound.calls()
    labels = ("target", "organization")
    under_way = [(call.target, call.organization, call.under_way) for call in calls]
    waiting = [(call.target, call.organization, call.waiting) for call in calls]
    yield _gauge("deputy_carriers", "Carriers that live.", outbound.carriers())
    yield _labelled("deputy_outbound_calls", "Calls of models and tools under way.", labels, under_way)
    yield _labelled("deputy_outbound_waiting", "Calls of models and tools that wait.", labels, waiting)
    yield _gauge(
        "deputy_outbound_oldest_seconds",
        "How long the oldest call has been under way.",
        max((call.oldest for call in calls), default=0.0),
    )
    yield _gauge(
        "deputy_outbound_waiting_oldest_seconds",
        "How long the oldest call that may go out has been waiting.",
        max((call.oldest_waiting for call in calls), default=0.0),
    )
    errands = outbound.errands()
    many, ages = [(kind, count) for kind, count, _ in errands], [(kind, age) for kind, _, age in errands]
    yield _labelled("deputy_errands_waiting", "Errands that wait for a carrier.", ("kind",), many)
    yield _labelled("deputy_errands_oldest_seconds", "How long the oldest has waited.", ("kind",), ages)
    open_ones = [(model.target, 1) for model in outbound.troubled() if model.open]
    yield _labelled("deputy_circuit_open", "Models that failed again and again.", ("model",), open_ones)


def so_far(totals: counts.Counts) -> Families:
    """What has happened since metrics were first read."""
    yield _counter("deputy_events", "Events of runs.", ("type",), totals.get("events", {}))
    yield _counter(
        "deputy_tool_calls",
        "Tool calls by what came of them.",
        ("tool", "outcome"),
        totals.get("tool_calls", {}),
    )
    yield _counter(
        "deputy_model_tokens",
        "Tokens of models, as their providers counted them.",
        ("model", "direction"),
        totals.get("tokens", {}),
    )
    yield steps(totals)


def steps(totals: counts.Counts) -> Any:
    """How long models and tools took, as a histogram."""
    words = "How long the steps of runs took: a model's reply, a tool's call."
    family = HistogramMetricFamily("deputy_step_seconds", words, labels=["step"])
    for (step,), total in totals.get("step_seconds", {}).items():
        found = totals["step_bucket"]
        sizes = [found.get((step, str(number)), 0.0) for number in range(len(counts.BOUNDS) + 1)]
        names = [*map(str, counts.BOUNDS), "+Inf"]
        family.add_metric(
            [step], [(name, sum(sizes[: i + 1])) for i, name in enumerate(names)], sum_value=total
        )
    return family


def _gauge(name: str, words: str, value: float) -> Any:
    return GaugeMetricFamily(name, words, value=value)


def _labelled(name: str, words: str, labels: tuple[str, ...], found: list[Any]) -> Any:
    family = GaugeMetricFamily(name, words, labels=labels)
    for *values, count in found:
        family.add_metric(values, count)
    return family


def _counter(name: str, words: str, labels: tuple[str, ...], found: dict[tuple[str, ...], float]) -> Any:
    family = CounterMetricFamily(name, words, labels=labels)
    for values, count in sorted(found.items()):
        family.add_metric(values, count)
    return family
