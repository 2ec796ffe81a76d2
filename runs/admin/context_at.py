"""What an agent sees: its view at the end of a run's log, or right after any event of it."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest

from memory.context.rendering import LEGEND
from runs.admin import words
from runs.context.agent_view import NoSuchAgent, view_at
from runs.log.log import RunGone
from runs.models import Run

LATEST = "last"
LONGEST = 9  # digits of an event's number


@dataclass(frozen=True)
class Seen:
    """The panel. `seq` is the event it stands after; `members` are (agent, role) of those who speak."""

    agent: str
    role: str
    seq: int
    latest: bool
    tokens: int
    version: int | None
    legend: str
    sections: list[str]
    members: tuple[tuple[str, str], ...]


def seen(request: HttpRequest, run: Run) -> Seen | None:
    """What `?at=` and `&agent=` ask for; None, at no cost, where nobody asks. Raises Http404."""
    at = request.GET.get("at")
    if at is None:
        return None
    if at != LATEST and not (at.isascii() and at.isdigit() and len(at) <= LONGEST):
        raise Http404
    seq = None if at == LATEST else max(int(at), 1)
    try:
        found = view_at(run.pk, seq, request.GET.get("agent") or None)
    except (NoSuchAgent, RunGone):
        raise Http404 from None
    moment = found.shown(run.user_id == request.user.pk)
    rendered = moment.rendered
    return Seen(
        agent=moment.agent,
        role=moment.role,
        seq=moment.seq,
        latest=seq is None,
        tokens=rendered.tokens,
        version=moment.version,
        legend=LEGEND,
        sections=[words.visible(part.text) for part in rendered.sections],
        members=moment.members,
    )
