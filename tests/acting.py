"""Actions as tests take them: in somebody's name, who sits at Deputy's pages unless a test says otherwise."""

from typing import Any

from django.contrib.auth import get_user_model

from groups import bearer
from groups.actors import Actor, Via, active_membership
from groups.models import Token
from groups.scopes import SCOPES
from runs.actions import cancel as cancelling
from runs.actions import decide
from runs.actions import fork as forking
from runs.actions import message as messages
from runs.actions import resolve as resolving
from runs.actions import signal as signals
from runs.actions import start as starting
from runs.execution import outside_agents
from runs.models import Approval, Run


def at_the_pages(user: Any, organization_id: str, confirmed: bool = True) -> Actor:
    """The user in a browser session, which was confirmed lately."""
    return Actor(user, active_membership(user, organization_id), Via.SESSION, interactive=confirmed)


def by_token(
    user: Any, organization_id: str, *scopes: str, via: Via = Via.TOKEN, token_id: str | None = None
) -> Actor:
    """A program of the user's, with these scopes or all that need no name."""
    reach = frozenset(scopes) or frozenset(SCOPES) - {"speak_as_person"}
    return Actor(user, active_membership(user, organization_id), via, reach, token_id=token_id)


def start(*, project: Any, user: Any = None, actor: Actor | None = None, **fields: Any) -> str:
    """As the actor, or as the user at Deputy's terminal."""
    by = actor or Actor.terminal(user, project.organization)
    return starting.start(actor=by, project=project, **fields)


def approve(
    approval_id: str,
    by: Any,
    reason: str = "",
    arguments: dict[str, Any] | None = None,
    remember: decide.Remember | None = None,
    digest: str | None = None,
) -> Approval:
    """As whoever has just seen the approval as it stands."""
    approval = Approval.objects.get(pk=approval_id)
    actor = by if isinstance(by, Actor) else at_the_pages(by, approval.organization_id)
    return decide.approve(
        approval_id, actor, digest or approval.arguments_digest, reason, arguments, remember
    )


def reject(approval_id: str, by: Any, reason: str, digest: str | None = None) -> Approval:
    approval = Approval.objects.get(pk=approval_id)
    actor = by if isinstance(by, Actor) else at_the_pages(by, approval.organization_id)
    return decide.reject(approval_id, actor, digest or approval.arguments_digest, reason)


def message(run_id: str, content: str, author: Any = None, correlation_key: str = "") -> Any:
    """The run's own person's word, unless `author` is an actor."""
    return messages.message(run_id, content, _of(run_id, author), correlation_key)


def cancel(run_id: str, by: Any = "", reason: str = "") -> None:
    """As the run's own person where somebody is named, else as Deputy itself."""
    run = Run.objects.get(pk=run_id)
    actor = _of(run_id, by) if by else Actor.system(run.organization_id)
    cancelling.cancel(run_id, actor, reason)


def signal(run_id: str, correlation_key: str, payload: Any = None) -> Any:
    return signals.signal(run_id, correlation_key, _of(run_id, None), payload)


def fork(run_id: str, seq: int, by: Any, content: str = "", session_key: str = "") -> str:
    run = Run.objects.select_related("organization").get(pk=run_id)
    actor = by if isinstance(by, Actor) else Actor.terminal(by, run.organization)
    return forking.fork(run_id, seq, actor, content, session_key)


def resolve(run_id: str, call_id: str, outcome: str, by: Any, *said: Any, **named: Any) -> None:
    resolving.resolve(run_id, call_id, outcome, _of(run_id, by), *said, **named)


def request_call(run_id: str, call_id: str, name: str, arguments: dict[str, Any]) -> str:
    """As the run's own outside agent, by its person's token."""
    return outside_agents.request_call(run_id, _driver(run_id), call_id, name, arguments)


def complete(run_id: str, output: str) -> None:
    outside_agents.complete(run_id, _driver(run_id), output)


def fail(run_id: str, message: str, **more: Any) -> None:
    outside_agents.fail(run_id, _driver(run_id), message, **more)


def _driver(run_id: str) -> Actor:
    run = Run.objects.filter(pk=run_id).select_related("user").first()
    return by_token(run.user, run.organization_id) if run else Actor(None, None, Via.SYSTEM)


def _of(run_id: str, by: Any) -> Actor:
    if isinstance(by, Actor):
        return by
    run = Run.objects.filter(pk=run_id).select_related("user").first()
    if run is None:
        return Actor(None, None, Via.SYSTEM)
    user = by if isinstance(by, get_user_model()) else run.user
    return at_the_pages(user, run.organization_id)


def holder(secret: str) -> Token | None:
    """The usable token for this secret, or None."""
    found = bearer.live(secret)
    return found[0] if found else None
