"""The worker's side of outbound calls: written beside a step's events, taken out with the answers.

A run with an open call is `running` and held by no worker: its lease is empty, and the carrier's lease on the
call stands for it. Whoever holds the run's row may take the next step once no call of it is open.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from django.conf import settings

from common import notifications
from common.db import execute, row, rows
from common.normal_forms import split_url
from runs.context.prompts import Prompt
from runs.log.claimed import ClaimedRun
from runs.log.clocks import stood_still
from runs.log.log import RunLog
from runs.models.choices import RunKind
from runs.models.outbound import CallKind
from runs.outbound import packing
from runs.providers import keys, registry
from runs.providers.base import ProviderError, Reply
from runs.queue import put
from runs.tools.base import Answer, ToolContext

CHANNEL = "deputy_outbound"  # there are calls to take
DROPPED = "deputy_dropped"  # says a run whose open calls nobody waits for any more
TOOL_SECONDS = 3600.0  # a tool keeps its own time; this is for one that does not

COLUMNS = (
    *("organization_id", "run_id", "root_id", "attempt", "kind", "call_id", "target", "host", "most"),
    *("host_most", "rank", "threaded", "request", "receipt", "wake", "seconds", "expires_at"),
)
INSERT = f"""
INSERT INTO runs_outboundcall ({", ".join(COLUMNS)}, due_at)
VALUES ({", ".join(["%s"] * len(COLUMNS))}, clock_timestamp() + %s * interval '1 second')
"""  # noqa: S608 - our own names
# Everything at once or nothing: with one call open, or the run held by a worker, no row goes.
TAKE_ANSWERS = """
WITH ready AS (
    SELECT lease_expires_at IS NULL AND NOT EXISTS (
        SELECT FROM runs_outboundcall c WHERE c.run_id = r.id AND c.answered_at IS NULL) AS yes
    FROM runs_run r WHERE id = %s
), taken AS (
    DELETE FROM runs_outboundcall WHERE run_id = %s AND (SELECT yes FROM ready)
    RETURNING id, attempt, kind, call_id, answer, receipt
)
SELECT yes, id, attempt, kind, call_id, answer, receipt FROM ready LEFT JOIN taken ON true ORDER BY id
"""
LOOK = "SELECT kind, answer, answered_at IS NOT NULL FROM runs_outboundcall WHERE run_id = %s"
DROP = "DELETE FROM runs_outboundcall WHERE run_id = %s"
DROP_QUESTION = f"{DROP} AND kind = 'model' AND answered_at IS NULL"
CRASHES = "SELECT crashes FROM runs_run WHERE id = %s"


@dataclass(frozen=True)
class Answers:
    """The outcomes of all of a run's calls. `lost`: the outcome of some is unknown. `held_back`: the ids of
    those that did not leave, because policy did not let them pass any more.
    """

    reply: Reply | ProviderError | None
    receipt: dict[str, Any]
    results: tuple[tuple[str, Answer], ...]
    lost: bool
    held_back: frozenset[str] = frozenset()


def ask_model(claimed: ClaimedRun, log: RunLog, prompt: Prompt, delay: float = 0) -> None:
    """Write the question to a model beside the step's events; after `delay` seconds it may go out."""
    model = prompt.model
    facts = None if registry.built_in(model) else prompt.facts
    own = keys.of(log.organization_id, model)
    seconds = registry.seconds(model)
    call = {
        "kind": CallKind.MODEL.value,
        "call_id": "",
        "target": model[:200] if own is None else f"{log.organization_id}/{model[:200]}",
        "host": registry.host_of(model, own)[:260],
        "most": most(settings.MODEL_CALLS, model),
        "threaded": not registry.awaitable(model, own),
        "request": packing.model_request(prompt.messages, prompt.tools, facts),
        "receipt": packing.text(prompt.receipt | {"role": prompt.member.role}),
        "seconds": seconds,
    }
    _write(claimed, log, [call], delay)


def call_tools(
    claimed: ClaimedRun, log: RunLog, calls: Sequence[tuple[str, str, dict[str, Any], ToolContext]]
) -> None:
    """Write admitted calls of tools: call id, tool, arguments, and who calls."""
    written = [
        {
            "kind": CallKind.TOOL.value,
            "call_id": call_id,
            "target": tool[:200],
            "host": tool_host(tool, arguments)[:260],
            "most": most(settings.TOOL_CALLS, tool),
            "threaded": True,
            "request": packing.tool_request(arguments, context),
            "receipt": "{}",
            "seconds": TOOL_SECONDS,
        }
        for call_id, tool, arguments, context in calls
    ]
    _write(claimed, log, written)


def most(figures: dict[str, int], name: str) -> int:
    """The figure of the longest pattern that fits the name."""
    return figures[max((pattern for pattern in figures if fnmatchcase(name, pattern)), key=len)]


def tool_host(tool: str, arguments: dict[str, Any]) -> str:
    """Whom a tool asks: the host of its url, the MCP server its name begins with, or else itself."""
    url = arguments.get("url")
    if isinstance(url, str):
        try:
            return split_url(url).netloc.rpartition("@")[2].lower() or tool
        except ValueError:
            return tool
    return tool.partition(".")[0]


def _write(claimed: ClaimedRun, log: RunLog, calls: list[dict[str, Any]], delay: float = 0) -> None:
    common = {
        "organization_id": log.organization_id,
        "run_id": log.id,
        "root_id": log.root_id,
        "attempt": log.attempt,
        "rank": 0 if log.kind == RunKind.PERSONAL and log.depth == 0 else 1,
        "wake": put.sealed(put.RESUME, log.id),
        "expires_at": ends_at(log, max(call["seconds"] for call in calls)),
    }
    for call in calls:
        values = common | call | {"host_most": most(settings.HOST_CALLS, call["host"])}
        log.also.append((INSERT, [*(values[name] for name in COLUMNS), delay]))
    log.set(lease_expires_at=None)
    notifications.after_commit(CHANNEL)


def ends_at(log: RunLog, seconds: float) -> datetime | None:
    """When the run's time is over, where that is before the call's own; people's time does not count."""
    if log.deadline is None or log.now + timedelta(seconds=seconds) < log.deadline:
        return None
    waited, _ = stood_still(log.id)
    return log.deadline + timedelta(seconds=waited)


def answered(run_id: str) -> list[dict[str, Any]] | None:
    """A look, without any lock, at the answers to the run's calls; None while one is open."""
    found = rows(LOOK, [run_id])
    if not all(done for _, _, done in found):
        return None
    said = [json.loads(answer) for kind, answer, _ in found if kind == CallKind.MODEL]
    return [each for each in said if each not in packing.NO_ANSWERS]


def take_answers(log: RunLog) -> Answers | None:
    """Take what has come for a locked run. None where a call is open still, or a worker has the run."""
    found = rows(TAKE_ANSWERS, [log.id, log.id])
    if not found or not found[0][0]:
        return None
    reply, receipt, results, lost, held_back = None, {}, [], False, set()
    for _, number, attempt, kind, call_id, answer, told in found:
        if number is None or attempt != log.attempt:
            continue
        said = json.loads(answer)
        lost = lost or said == packing.LOST
        if said == packing.HELD_BACK:
            held_back.add(call_id)
        if said in packing.NO_ANSWERS:
            continue
        if kind == CallKind.MODEL:
            reply, receipt = packing.read_model(said), json.loads(told)
        else:
            results.append((call_id, packing.read_tool(said)))
    return Answers(reply, receipt, tuple(results), lost, frozenset(held_back))


def crashes(run_id: str) -> int:
    """How often the run has taken down who was at it, without getting on in between."""
    return int(row(CRASHES, [run_id])[0])


def drop(run_id: str) -> None:
    """Drop the run's calls, which nobody waits for any more: carriers let go. Joins the transaction."""
    if execute(DROP, [run_id]):
        notifications.after_commit(DROPPED, run_id)


def drop_question(run_id: str) -> bool:
    """Take back what the run's model is being asked, since there is more to say; whether it was."""
    if not execute(DROP_QUESTION, [run_id]):
        return False
    notifications.after_commit(DROPPED, run_id)
    return True
