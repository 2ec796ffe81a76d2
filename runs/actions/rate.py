"""Say whether an answer was of use: what routing and memory learn from it."""

from typing import Any

from django.db import transaction

from groups import routing
from groups.actors import Actor
from groups.models import AgentInstance, RoutingExample
from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from policy.authority import Verb, may
from runs.models import Rating, Run
from runs.models.choices import RunStatus

MAX_NOTE = 2_000  # characters
IMPORTANCE = {True: 0.8, False: 0.2}  # of what the person's agent remembers of the run


class CannotRate(Exception):
    """The run cannot be rated. `code`: NOT_ASKED_FOR, NOT_COMPLETED, NOTE_TOO_LONG."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@transaction.atomic
def rate(run_id: str, actor: Actor, good: bool, note: str = "", wrong_group: bool = False) -> Rating:
    """Keep the rating of a completed run by the person it worked for; a later one replaces it.

    The groups that worked on it learn that such a goal is for them, or, with `wrong_group`, that it is not.
    The agent's memory of the run counts for more or for less, and a note becomes a preference of the person.
    Raises NotAllowed, CannotRate, Run.DoesNotExist.
    """
    by = actor.user
    run = Run.objects.select_for_update(no_key=True, of=("self",)).get(pk=run_id)
    may(actor, Verb.RATE, run)
    note = note.strip()
    if run.depth:
        raise CannotRate("NOT_ASKED_FOR", "Only what a person asked for can be rated.")
    if run.status != RunStatus.COMPLETED:
        raise CannotRate("NOT_COMPLETED", "Only a completed run can be rated.")
    if len(note) > MAX_NOTE:
        raise CannotRate("NOTE_TOO_LONG", f"The note is longer than {MAX_NOTE} characters.")
    before = Rating.objects.filter(run=run).first()
    rating, _ = Rating.objects.update_or_create(
        run=run,
        defaults={"organization_id": run.organization_id, "user": by, "good": good, "note": note},
    )
    _teach_routing(run, by, good, wrong_group)
    Memory.objects.filter(
        organization_id=run.organization_id,
        user_id=run.user_id,
        source_run_id=run.pk,
        metadata__source="run_outcome",
    ).update(importance=IMPORTANCE[good])
    if note and (before is None or before.note != note):
        _remember(run, note)
    return rating


def _teach_routing(run: Run, by: Any, good: bool, wrong_group: bool) -> None:
    """What is not good may still have gone to the right group: only the person's word says it did not.

    What somebody else has said of the same goal stays.
    """
    if not good and not wrong_group:
        return
    for child in Run.objects.filter(parent_run=run, group__isnull=False):
        said = RoutingExample.objects.filter(group_id=child.group_id, goal=child.goal.strip())
        if not said.exclude(corrected_by=None).exclude(corrected_by=by).exists():
            routing.learn(run.organization_id, str(child.group_id), child.goal, by=by, fits=good)


def _remember(run: Run, note: str) -> None:
    """The person's own words, as a preference their agent is told of with every goal they fit."""
    agent = AgentInstance.objects.filter(organization_id=run.organization_id, user_id=run.user_id).first()
    if agent is None:
        return
    memory_write(
        note,
        Scope(run.organization_id, user_id=run.user_id, agent_instance_id=agent.pk),
        type="core",
        metadata={"pa_preference": True, "category": "rating"},
        source_run_id=run.pk,
    )
