"""Short words for what tests look at."""

from typing import Any

from runs.log.log import chain, read
from runs.log.state import State, fold
from runs.models import Run, RunEvent


def events(run: Run | str) -> list[tuple[str, dict[str, Any]]]:
    """(type, payload) of each event, in order."""
    rows = RunEvent.objects.filter(run=run).order_by("seq")
    return list(rows.values_list("type", "payload"))


def types(run: Run | str) -> list[str]:
    return [type for type, _ in events(run)]


def payload(run: Run | str, type: str) -> dict[str, Any]:
    """The payload of the only event of this type."""
    (found,) = [payload for kind, payload in events(run) if kind == type]
    return found


def state_of(run: Run) -> State:
    return fold(read(run.pk))


def chain_holds(run: Run) -> bool:
    """Every digest follows from the one before and what the event says; seq has no gap."""
    previous = ""
    stored = dict(RunEvent.objects.filter(run=run).values_list("seq", "digest"))
    for expected, event in enumerate(read(run.pk), 1):
        previous = chain(previous, event)
        if event.seq != expected or stored[event.seq] != previous:
            return False
    return previous == Run.objects.get(pk=run.pk).last_digest
