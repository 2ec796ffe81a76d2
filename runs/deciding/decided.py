"""The page of who decided what, the same at both doors: its filters, what is asked for most, and its files.

Which decisions a reader may look at is said in runs/observe/decided.py.
"""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from common import times
from runs.deciding import words
from runs.models import ApprovalDecision
from runs.observe import decided

SHOWN = 100
FORMS = tuple(decided.TYPES)
LABELS = (gettext_noop("Decider"), gettext_noop("Tool"), gettext_noop("Project"))
DAY = {"placeholder": "2026-01-31"}


class DecidedForm(forms.Form):
    """Which decisions to show."""

    decider = forms.CharField(required=False, max_length=150)
    tool = forms.CharField(required=False, max_length=64)
    project = forms.CharField(
        required=False, max_length=63, help_text=gettext_lazy("Its id or its short name.")
    )
    since = forms.DateTimeField(required=False, widget=forms.TextInput(DAY))
    until = forms.DateTimeField(required=False, widget=forms.TextInput(DAY))

    def asked(self) -> decided.Asked | None:
        """None where the form makes no sense; it says so itself."""
        return decided.Asked(**self.cleaned_data) if self.is_valid() else None


def presets(request: HttpRequest) -> list[tuple[str, str]]:
    """What is asked for most: (words, query). Who stays chosen when the time is."""
    name = request.GET.get("decider", "")
    who = {"decider": name} if name else {}
    mine = {**request.GET.dict(), "decider": request.user.get_username()}
    this, last = (dict(zip(("since", "until"), map(str, times.month(back)), strict=True)) for back in (0, 1))
    return [
        (_("What I decided"), urlencode(mine)),
        (_("This month"), urlencode(who | this)),
        (_("Last month"), urlencode(who | last)),
        (_("Everything"), ""),
    ]


def listed(request: HttpRequest, form: DecidedForm, seen: QuerySet[ApprovalDecision]) -> dict[str, Any]:
    """What the page shows of the decisions that the reader may see, the newest first."""
    asked = form.asked()
    found = decided.filtered(seen, asked) if asked else seen.none()
    before = request.GET.get("before", "")
    last = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    page = decided.newest(found, SHOWN + 1, request.user.pk, last)
    query = {name: value for name, value in request.GET.items() if name != "before" and value}
    return {
        "form": form,
        "rows": [(one, words.shown(one.arguments)) for _key, one in page[:SHOWN]],
        "presets": presets(request),
        "query": urlencode(query),
        "forms": FORMS,
        "older": urlencode({**query, "before": page[SHOWN - 1][0]}) if len(page) > SHOWN else "",
    }


def export(
    request: HttpRequest, form: DecidedForm, seen: QuerySet[ApprovalDecision]
) -> StreamingHttpResponse:
    """The same, all of them, as a file. Raises Http404 for one that there is not."""
    asked, kind = form.asked(), request.GET.get("as", "csv")
    if asked is None or kind not in FORMS:
        raise Http404
    return StreamingHttpResponse(
        decided.exported(kind, decided.filtered(seen, asked), request.user.pk),
        content_type=decided.TYPES[kind],
        headers={"Content-Disposition": f'attachment; filename="decided.{kind}"'},
    )
