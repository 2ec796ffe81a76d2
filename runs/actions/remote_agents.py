"""Read a remote agent's card again, accept it, and cancel the tasks that nobody waits for any more."""

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from runs.models import CardState, RemoteAgent, RemoteTask, ToolCall
from runs.queue import put
from runs.tools.a2a import client
from runs.tools.a2a.cards import BadCard, Card
from runs.tools.a2a.client import PeerError

logger = logging.getLogger(__name__)

CANCEL_AGAIN = timedelta(seconds=60)  # between two attempts to cancel a task
MOST_CANCELS = 5
# Nobody waits any more: the run is over, or the call is.
CALL_IS_OVER = Exists(
    ToolCall.objects.filter(run=OuterRef("run"), call_id=OuterRef("call_id"), ended_at__isnull=False)
)
FORSAKEN = Q(run__ended_at__isnull=False) | Q(CALL_IS_OVER)


def refresh(agent: RemoteAgent) -> str:
    """Read the agent's card and keep it; returns what is wrong with it, empty for nothing.

    An agent whose card is no longer the accepted one is suspended, until `accept`. One whose address does not
    answer keeps what it has.
    """
    try:
        card, problem = client.card_of(agent), ""
    except PeerError as error:
        card, problem = None, error.message
    except BadCard as bad:
        card, problem = Card({}, ""), f"The remote agent '{agent}' cannot be used: {bad}."
    with transaction.atomic():
        found = RemoteAgent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        if found.url != agent.url:
            return f"The address of the remote agent '{agent}' has just changed: read its card again."
        if card is not None:
            _keep(found, card)
        RemoteAgent.objects.filter(pk=agent.pk).update(checked_at=Now(), problem=problem)
    return problem


def _keep(agent: RemoteAgent, card: Card) -> None:
    """Write down what has changed, and nothing where nothing has."""
    state = _state(agent, card)
    if (agent.digest, agent.state) == (card.digest, state):
        return
    agent.card, agent.digest, agent.state = card.kept, card.digest, state
    agent.save()


def _state(agent: RemoteAgent, card: Card) -> CardState:
    if not card.digest:
        return CardState.UNUSABLE
    if not agent.accepted_digest:
        return CardState.NEW
    return CardState.ACCEPTED if card.digest == agent.accepted_digest else CardState.CHANGED


def accept(agents: Iterable[RemoteAgent], by: Any) -> list[RemoteAgent]:
    """Let these agents be asked, as their cards are now; returns those for which that could be said.

    Each card must still be what the person saw: its digest is compared under the lock.
    """
    accepted = []
    with transaction.atomic():
        for seen in agents:
            agent = RemoteAgent.objects.select_for_update(no_key=True).get(pk=seen.pk)
            if agent.digest != seen.digest or agent.state not in (CardState.NEW, CardState.CHANGED):
                continue
            if not agent.digest:
                continue
            agent.accepted, agent.accepted_digest = agent.card, agent.digest
            agent.state, agent.accepted_by, agent.accepted_at = CardState.ACCEPTED, by, Now()
            agent.save()
            accepted.append(agent)
    return accepted


def cancel_due() -> int:
    """Ask carriers to cancel the tasks nobody waits for any more; returns how many.

    An attempt that fails is made again by the message that begins it; one whose carrier died, from here.
    """
    with transaction.atomic():
        due = RemoteTask.objects.filter(FORSAKEN, ended_at=None, cancels=0)
        found = list(due.select_for_update(of=("self",), skip_locked=True, no_key=True)[:100])
        RemoteTask.objects.filter(pk__in=[task.pk for task in found]).update(cancels=1)
        for task in found:
            turn = put.in_background(task.organization_id)
            put.enqueue_task("cancel_remote_task", task.pk, turn=turn)
    return len(found)


def cancel(task_id: str) -> bool:
    """Cancel a task where it is, unless it is over; whether nothing is left to be done about it.

    Nothing goes to an address other than the one at which the task was given.
    """
    task = RemoteTask.objects.filter(pk=task_id, ended_at=None).select_related("agent").first()
    if task is None:
        return True
    state, over = task.state, True
    if task.agent.enabled and task.agent.endpoint == task.url:
        try:
            state = client.cancel(task.agent, task.task_id).state
        except PeerError as error:
            logger.warning("%s could not be cancelled: %s", task.pk, error.code)
            over = not error.passing or task.cancels >= MOST_CANCELS
    ended = Now() if over else None
    RemoteTask.objects.filter(pk=task.pk).update(state=state, cancels=F("cancels") + 1, ended_at=ended)
    return over
