"""A person's conversations: the runs of one session, the latest first, with a title and a mark until seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from common import redact
from common.db import rows
from runs.models import Conversation, Run
from runs.models.choices import ACTIVE, RunStatus
from runs.web import access
from runs.web.access import MemberRequest

SHOWN = 40  # conversations of one page of the list
TURNS = 20  # of a conversation that are shown at once
TITLE = 80  # characters of a goal that stand for a title

# `projects` is null where the membership sees all. A run without a session is a conversation of its own.
LIST = """
WITH turn AS (
    SELECT r.id, r.project_id, COALESCE(NULLIF(r.session_key, ''), r.id) AS key, r.goal, r.output, r.status,
        COALESCE(r.ended_at, r.created_at) AS moved_at, r.ended_at, r.waiting_reason
    FROM runs_run r
    WHERE r.organization_id = %(organization)s AND r.user_id = %(user)s AND r.depth = 0
        AND (%(projects)s::text[] IS NULL OR r.project_id = ANY(%(projects)s))
), talk AS (
    SELECT project_id, key, (array_agg(id ORDER BY id))[1] AS first, (array_agg(goal ORDER BY id))[1] AS goal,
        (array_agg(id ORDER BY id DESC))[1] AS last, (array_agg(status ORDER BY id DESC))[1] AS status,
        (array_agg(waiting_reason ORDER BY id DESC))[1] AS reason, max(moved_at) AS moved_at,
        max(ended_at) AS ended_at, bool_or(goal ILIKE %(words)s OR output ILIKE %(words)s) AS matches
    FROM turn GROUP BY project_id, key
)
SELECT talk.first, talk.key, talk.goal, talk.status, talk.reason, talk.moved_at, c.title,
    talk.ended_at > COALESCE(c.seen_at, '-infinity') AS unseen, p.name
FROM talk JOIN groups_project p ON p.id = talk.project_id
LEFT JOIN runs_conversation c ON c.organization_id = %(organization)s AND c.user_id = %(user)s
    AND c.project_id = talk.project_id AND c.key = talk.key
WHERE %(words)s = '' OR talk.matches OR c.title ILIKE %(words)s
ORDER BY talk.last DESC OFFSET %(offset)s LIMIT %(limit)s
"""


@dataclass(frozen=True)
class Listed:
    """A conversation in the list; `run` is its first, by which its page is addressed."""

    run: str
    title: str
    project: str
    moved_at: datetime
    active: bool
    waits: bool
    unseen: bool


def listed(request: MemberRequest, words: str = "", page: int = 0) -> tuple[list[Listed], bool]:
    """The conversations in which these words stand, the latest first; and whether there are more."""
    membership = request.membership
    values = {
        "organization": membership.organization_id,
        "user": request.user.pk,
        "projects": membership.projects,
        "words": f"%{_escaped(words.strip())}%" if words.strip() else "",
        "offset": page * SHOWN,
        "limit": SHOWN + 1,
    }
    found = [_listed(row) for row in rows(LIST, values)]
    return found[:SHOWN], len(found) > SHOWN


def _escaped(words: str) -> str:
    """Words for LIKE, in which nothing is a wildcard."""
    return words[:200].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("\x00", "")


def _listed(row: Any) -> Listed:
    run, _key, goal, status, reason, moved_at, title, unseen, project = row
    return Listed(
        run=run,
        title=redact.shown(title) if title else titled(goal),
        project=project,
        moved_at=moved_at,
        active=status in ACTIVE,
        waits=status == RunStatus.WAITING and reason in ("approval", "input", "review"),
        unseen=bool(unseen) and status not in ACTIVE,
    )


def titled(goal: str) -> str:
    """The first line of a goal, or as much of it as fits."""
    line = " ".join(redact.shown(goal).split("\n", 1)[0].split())
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"


def key_of(run: Run) -> str:
    return run.session_key or run.pk


def turns(request: MemberRequest, run: Run) -> QuerySet[Run]:
    """The runs of the conversation that this one belongs to, the oldest first."""
    mine = access.own_runs(request).filter(depth=0, project_id=run.project_id)
    same = mine.filter(session_key=run.session_key) if run.session_key else mine.filter(pk=run.pk)
    return same.select_related("project", "rating").order_by("id")


def latest(request: MemberRequest, run: Run, shown: int = TURNS) -> tuple[Sequence[Run], int]:
    """The last turns of a conversation, the oldest first; and how many came before them."""
    every = turns(request, run)
    count = every.count()
    return list(every[max(count - shown, 0) :]), max(count - shown, 0)


def kept(request: MemberRequest, run: Run) -> Conversation:
    """The conversation's own row, made on first use."""
    found, _ = Conversation.objects.get_or_create(
        organization_id=run.organization_id,
        project_id=run.project_id,
        user=request.user,
        key=key_of(run),
    )
    return found


def see(request: MemberRequest, run: Run) -> Conversation:
    """The person looks at the conversation now: what has come is new no longer."""
    conversation = kept(request, run)
    Conversation.objects.filter(pk=conversation.pk).update(seen_at=Now())
    return conversation


def has_looked(request: MemberRequest) -> bool:
    """Whether the person has opened any of their conversations here."""
    here = Conversation.objects.filter(organization_id=request.membership.organization_id)
    return here.filter(user=request.user).exists()


def rename(request: MemberRequest, run: Run, title: str) -> None:
    conversation = kept(request, run)
    conversation.title = " ".join(title.replace("\x00", "").split())[:200]
    conversation.save(update_fields=["title"])
