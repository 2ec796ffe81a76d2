"""Where a call's values came from: one sentence, and the values themselves, the doubtful ones first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.deciding.words import visible
from runs.gate.origins import MEMORY, Origin, Passage, origins
from runs.gate.origins import shown as shown_to
from runs.models import Approval, RunEvent

FIRST = {"unknown": 0, "outside": 1, "organization": 2, "user": 3}
LISTED = 100  # values on the page; the sentence counts all
WEB = "http_get"


@dataclass(frozen=True)
class Sources:
    """`sentence` counts all values; `values` are the first of them, `more` how many there are beside."""

    sentence: str
    values: tuple[Origin, ...]
    more: int
    asked_for: bool
    rights: tuple[str, ...]

    @property
    def doubtful(self) -> bool:
        return any(value.source in ("unknown", "outside") for value in self.values)


def where_from(approval: Approval, reader: Any) -> Sources:
    """Where the call's values came from, as this person may read it, with invisible characters shown."""
    found = shown_to(origins(approval), own=approval.run.user_id == reader.pk)
    in_order = sorted(found.values, key=lambda value: (FIRST.get(value.source, 0), not value.steers))
    listed = tuple(map(_visible, in_order[:LISTED]))
    sentence = _sentence(in_order)
    return Sources(sentence, listed, len(in_order) - len(listed), found.asked_for, found.rights)


def _sentence(values: Sequence[Origin]) -> str:
    """`30 values: 1 from a web page, 29 from the person`."""
    if not values:
        return _("The call has no arguments.")
    tools = _tools([value for value in values if value.source == "outside"])
    counts = Counter(_from(value, tools) for value in values)
    told = ngettext("{count} value: {origins}", "{count} values: {origins}", len(values))
    parts = [f"{count} {origin}" if len(values) > 1 else origin for origin, count in counts.items()]
    return told.format(count=len(values), origins=", ".join(parts))


def _from(value: Origin, tools: dict[tuple[str, int], str]) -> str:
    if value.source == "user":
        return _("from the person")
    if value.source == "organization":
        return _("from the organization")
    if value.source != "outside" or not value.passages:
        return _("of unknown origin")
    passage = value.passages[0]
    if passage.field.startswith(MEMORY):
        return _("from memory")
    tool = tools.get((passage.run, passage.event), "")
    if tool == WEB:
        return _("from a web page")
    return _("from what {tool} returned").format(tool=visible(tool)) if tool else _("from outside")


def _tools(values: Sequence[Origin]) -> dict[tuple[str, int], str]:
    """The tools whose results are quoted first for these values, by run and event. One query."""
    first = [value.passages[0] for value in values if value.passages]
    if not first:
        return {}
    events = RunEvent.objects.filter(
        run_id__in={one.run for one in first}, seq__in={one.event for one in first}
    )
    rows = events.values_list("run_id", "seq", "payload__tool")
    return {(run, seq): str(tool) for run, seq, tool in rows if tool}


def _visible(value: Origin) -> Origin:
    return replace(value, value=visible(value.value), passages=tuple(map(_passage, value.passages)))


def _passage(one: Passage) -> Passage:
    said = {name: visible(getattr(one, name)) for name in ("before", "marked", "after")}
    return replace(one, **said)
