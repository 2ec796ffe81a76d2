"""What pages of the admin say beside values: the tone of a status, badges. Values are put into words by
runs/deciding/words.py, whose names are offered here too.
"""

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from runs.deciding.words import FOLDED, Line, marked, readable, scalar, shown, tone, visible
from runs.models import Run

__all__ = [
    "FOLDED",
    "Line",
    "badge",
    "followed_up",
    "marked",
    "readable",
    "run_badge",
    "scalar",
    "shown",
    "tokens",
    "tone",
    "visible",
]


def badge(text: str, tone: str) -> SafeString:
    """A word or two in the colour of their tone."""
    return format_html('<span class="dp-badge dp-{}">{}</span>', tone, text)


def run_badge(run: Run) -> SafeString:
    """A run's status, and what it waits for."""
    status = run.get_status_display()
    reason = f": {run.get_waiting_reason_display().lower()}" if run.waiting_reason else ""
    return badge(f"{status}{reason}", tone(run.status))


def tokens(usage: dict[str, Any] | None) -> int:
    """The tokens a run has used, its ended children's included."""
    return int((usage or {}).get("tokens", 0))


FOLLOWED_UP = {
    "reminded": gettext_lazy("Reminded: {people}"),
    "escalated": gettext_lazy("Nobody has decided yet; told now: {people}"),
    "alarm_over": gettext_lazy("Somebody hears of it again"),
}
ALARMS = {
    "nobody": gettext_lazy("Nobody may decide this. An administrator has to name somebody."),
    "no_channel": gettext_lazy("Nobody who may decide this can be reached by any channel."),
    "unheard": gettext_lazy("No message about this has arrived anywhere."),
    "overdue": gettext_lazy("This has been waiting for a decision too long."),
}


def followed_up(payload: dict[str, Any]) -> str:
    """What was done about an approval that nobody had decided, in words."""
    if payload.get("what") == "alarm":
        return str(ALARMS.get(str(payload.get("alarm")), ""))
    said = FOLLOWED_UP.get(str(payload.get("what")))
    return str(said).format(people=", ".join(map(str, payload.get("people") or ()))) if said else ""
