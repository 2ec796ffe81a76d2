"""What a first visit offers to try. Each works with the embedded model and the demo's knowledge."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from groups.models import Group
from runs.web import access
from runs.web.access import MemberRequest


@dataclass(frozen=True)
class Suggestion:
    """Something to ask, and what it shows."""

    title: str
    goal: str
    shows: str


def offered(request: MemberRequest) -> list[Suggestion]:
    """Three things to try; without groups the second is about one's own preferences."""
    return [
        Suggestion(
            _("Ask something a group knows"),
            _("What do our competitors charge?"),
            _("Your agent passes it to a group of experts and brings back their answer, with its sources."),
        )
        if _has_groups(request)
        else Suggestion(
            _("Ask what is known"),
            _("What do you know about this project?"),
            _("Your agent looks into what is remembered and says where it found it."),
        ),
        Suggestion(
            _("See it stop for a decision"),
            _("Email ann@example.com that the release moves to Friday"),
            _("Nothing is sent before somebody who may decide has approved exactly this e-mail."),
        ),
        Suggestion(
            _("Teach it something about you"),
            _("Remember that I prefer short answers"),
            _("You will find it under “What my agent knows”, where you can correct or delete it."),
        ),
    ]


def _has_groups(request: MemberRequest) -> bool:
    projects: Any = access.projects(request)
    return Group.objects.filter(project__in=projects, active=True, members__isnull=False).exists()
