"""What pages of the admin say beside values: the tone of a status, badges. Values are put into words by
runs/deciding/words.py, whose names are offered here too.
"""

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.deciding.words import FOLDED, Line, marked, readable, scalar, shown, tone, visible
from runs.models import Run

__all__ = [
    "FOLDED",
    "Line",
    "badge",
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
