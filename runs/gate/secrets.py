"""What is confidential in results of other runs' calls, worked out once a process.

A conversation's runs ask for the same results again and again, and for those of the conversations that left
what it remembers: a megabyte takes a quarter of a second, and a result that is there stays as it is.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from threading import Lock
from typing import Any

from policy.provenance import confidential
from policy.provenance.infer import Declaration
from runs.models import ToolCall

KEPT = 20_000  # calls; most hold nothing confidential
Found = tuple[tuple[str, str], ...]  # (what it is called, value)

_lock = Lock()
_kept: OrderedDict[tuple[str, frozenset[str]], Found] = OrderedDict()


def of_calls(
    run_ids: Collection[str],
    known: Collection[str],
    declare: Callable[[str], Declaration],
    reads: Callable[[Any], None],
) -> Iterator[tuple[str, Found]]:
    """For each call of these runs that has a result and is not `known`: (id, what is confidential in it).

    `reads`: told of each result before it is looked through; it may raise.
    """
    calls = ToolCall.objects.filter(run_id__in=run_ids, result__isnull=False).exclude(pk__in=known)
    wanted = {pk: declare(tool).confidential for pk, tool in calls.values_list("pk", "tool")}
    found = {key: kept for key in wanted.items() if (kept := _get(key)) is not None}
    yield from ((pk, kept) for (pk, _), kept in found.items())
    missing = [pk for pk, fields in wanted.items() if (pk, fields) not in found]
    for pk, result in ToolCall.objects.filter(pk__in=missing).values_list("pk", "result").iterator():
        reads(result)
        yield pk, _keep((pk, wanted[pk]), tuple(confidential.in_result(result, wanted[pk])))


def _get(key: tuple[str, frozenset[str]]) -> Found | None:
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
        return _kept.get(key)


def _keep(key: tuple[str, frozenset[str]], found: Found) -> Found:
    with _lock:
        _kept[key] = found
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found
