"""What people do from their own pages: each of these calls one action, in the person's name."""

import secrets
from contextlib import suppress
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.utils.translation import gettext as _

from groups.models import Project
from policy.authority import NotAllowed
from runs.actions import cancel, decide, fork, message, rate, repeat, start
from runs.actions.signal import SignalRefused
from runs.actions.start import CannotStart
from runs.gate import repeats
from runs.log.log import AlreadyEnded, RunGone
from runs.models import Approval, Run
from runs.models.choices import ACTIVE, FORMS
from runs.web.access import MemberRequest, own_runs, own_waits


def record(request: MemberRequest, thing: Model, flag: int) -> None:
    """The entry of the admin's history: who added or changed it here."""
    LogEntry.objects.log_actions(request.user.pk, [thing], flag, "On one's own page.", single_object=True)


class Refused(Exception):
    """It was not done, and nothing has changed; the words say why, in the reader's language."""


def new_key() -> str:
    """The session key of a new conversation."""
    return f"web-{secrets.token_urlsafe(12)}"


def ask(
    request: MemberRequest,
    project: Project,
    goal: str,
    context: str,
    session_key: str,
    group_id: str | None,
) -> str:
    """Start a turn of a conversation; the run's id. Raises Refused."""
    try:
        return start.start(
            actor=request.actor,
            project=project,
            goal=goal,
            context=context,
            session_key=session_key,
            group_id=group_id,
        )
    except (NotAllowed, CannotStart) as refused:
        raise Refused(_(refused.message)) from None


def again(request: MemberRequest, run: Run) -> str:
    """The same goal once more, in the run's conversation or a new one; the new run's id. Raises Refused."""
    try:
        return start.again(run, request.actor, run.session_key or new_key())
    except (NotAllowed, CannotStart) as refused:
        raise Refused(_(refused.message)) from None


def say(request: MemberRequest, run: Run, content: str, correlation_key: str = "") -> str:
    """An answer, or a word in between: `delivered` or `kept`. Raises Refused."""
    try:
        said = message.message(run.pk, content, request.actor, correlation_key)
    except (NotAllowed, SignalRefused) as refused:
        raise Refused(_(refused.message)) from None
    except RunGone:
        raise Refused(_("This run is gone.")) from None
    return said.state


def tell(request: MemberRequest, root: Run, content: str) -> str:
    """Words for whoever speaks next in a turn: `delivered` or `kept`. Raises Refused.

    They answer what is asked; else the group at work hears them, and in any case the person's own agent,
    which writes the answer.
    """
    tree = own_runs(request).filter(root=root, status__in=ACTIVE)
    waits = own_waits(request).exclude(correlation_key__startswith=repeats.PREFIX)
    answered = waits.exclude(correlation_key__startswith=FORMS)
    asked = answered.filter(run__in=tree).first()
    if asked is not None:
        return say(request, asked.run, content, asked.correlation_key)
    said = say(request, root, content)
    lowest = tree.filter(depth__gt=0).order_by("depth", "id").last()
    if lowest is not None:
        with suppress(Refused):  # it has ended meanwhile, and the agent has heard it
            say(request, lowest, content)
    return said


def decline(request: MemberRequest, run: Run, correlation_key: str) -> None:
    """What a call needs is not given. Raises Refused."""
    try:
        repeat.decline(run.pk, correlation_key, request.actor)
    except (NotAllowed, SignalRefused) as refused:
        raise Refused(_(refused.message)) from None
    except RunGone:
        raise Refused(_("This run is gone.")) from None


def stop(request: MemberRequest, run: Run) -> None:
    """Cancel a run and all below it. Raises Refused."""
    try:
        cancel.cancel(run.pk, request.actor)
    except NotAllowed as refused:
        raise Refused(_(refused.message)) from None
    except (AlreadyEnded, RunGone) as refused:
        raise Refused(_(str(refused))) from None


def go_on(request: MemberRequest, run: Run, seq: int, content: str) -> str:
    """A new conversation that knows what the run knew after an event; its run's id. Raises Refused."""
    try:
        return fork.fork(run.pk, seq, request.actor, content, session_key=new_key())
    except (NotAllowed, CannotStart) as refused:
        raise Refused(_(refused.message)) from None
    except RunGone:
        raise Refused(_("This run is gone.")) from None


def decide_one(
    request: MemberRequest,
    approval: Approval,
    approve: bool,
    digest: str,
    reason: str,
    arguments: dict[str, Any] | None = None,
) -> Approval:
    """Approve, with other arguments if need be, or reject, what has this digest. Raises Refused."""
    try:
        if approve:
            return decide.approve(approval.pk, request.actor, digest, reason, arguments)
        return decide.reject(approval.pk, request.actor, digest, reason)
    except decide.DecisionRefused as refused:
        raise Refused(_(refused.message)) from None


def think_of(request: MemberRequest, run: Run, good: bool, note: str, wrong_group: bool) -> None:
    """Rate an answer. Raises Refused."""
    try:
        rate.rate(run.pk, request.actor, good, note, wrong_group)
    except (NotAllowed, rate.CannotRate) as refused:
        raise Refused(_(refused.message)) from None
