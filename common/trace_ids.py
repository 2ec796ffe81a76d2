"""Ids of traces and spans, computed from runs: every process knows them without being told.

A tree of runs is one trace. So a trace is whole however many processes, machines and queue hops
its runs went through, and what a log line says leads to it.
"""

import hashlib


def trace_id(root_id: str) -> int:
    """128 bits, of the run at the tree's root."""
    return int.from_bytes(hashlib.sha256(f"trace {root_id}".encode()).digest()[:16]) or 1


def span_id(run_id: str) -> int:
    """64 bits, of the span of a whole run."""
    return int.from_bytes(hashlib.sha256(f"span {run_id}".encode()).digest()[:8]) or 1
