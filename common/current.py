"""What this thread works for: the run whose logs and spans it makes, or the request of a web process."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """A run, the root of its tree, and whose it is."""

    run_id: str
    root_id: str
    organization_id: str


_work: ContextVar[Work | None] = ContextVar("deputy_work", default=None)


def work() -> Work | None:
    """What is being worked for, if anything."""
    return _work.get()


@contextmanager
def working_for(run_id: str, root_id: str, organization_id: str) -> Iterator[None]:
    """Inside, this thread works for the run."""
    token = _work.set(Work(run_id, root_id, organization_id))
    try:
        yield
    finally:
        _work.reset(token)


_request: ContextVar[Any] = ContextVar("deputy_request", default=None)


def request() -> Any:
    """The request that a web process is answering here; None anywhere else."""
    return _request.get()


def answering(request: Any) -> None:
    """From here on this task, and the threads it borrows, answer the request."""
    _request.set(request)
