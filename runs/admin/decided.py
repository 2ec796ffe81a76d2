"""The page of who decided what, and its exports; for those whose projects, runs or decisions they are."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.http import require_safe
from unfold.widgets import UnfoldAdminTextInputWidget

from common import times
from groups.actors import actors_of
from groups.admin.tenancy import sight
from runs.admin import words
from runs.models import ApprovalDecision
from runs.observe import decided

SHOWN = 100
FORMS = tuple(decided.TYPES)
LABELS = (gettext_noop("Decider"), gettext_noop("Tool"), gettext_noop("Project"))


class DecidedForm(forms.Form):
    """Which decisions to show."""

    decider = forms.CharField(required=False, max_length=150, widget=UnfoldAdminTextInputWidget())
    tool = forms.CharField(required=False, max_length=64, widget=UnfoldAdminTextInputWidget())
    project = forms.CharField(
        required=False,
        max_length=63,
        help_text=gettext_lazy("Its id or its short name."),
        widget=UnfoldAdminTextInputWidget(),
    )
    since = forms.DateTimeField(
        required=False, widget=UnfoldAdminTextInputWidget({"placeholder": "2026-01-31"})
    )
    until = forms.DateTimeField(
        required=False, widget=UnfoldAdminTextInputWidget({"placeholder": "2026-01-31"})
    )

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


class DecidedPages:
    """Adds the pages to an admin class."""

    admin_site: admin.AdminSite

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("decided/", wrap(require_safe(self.decided_view)), name="runs_decided"),
            path("decided/export/", wrap(require_safe(self.decided_export)), name="runs_decided_export"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def decided_view(self, request: HttpRequest) -> HttpResponse:
        """Who decided what, the newest first."""
        form = self._decided_form(request)
        asked = form.asked()
        found = self._decisions(request)
        found = decided.filtered(found, asked) if asked else found.none()
        before = request.GET.get("before", "")
        if before.isascii() and before.isdigit() and len(before) < 19:
            found = found.filter(pk__lt=int(before))
        page = list(found[: SHOWN + 1])
        query = {name: value for name, value in request.GET.items() if name != "before" and value}
        rows = [decided.row(one, request.user.pk) for one in page[:SHOWN]]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Who decided what"),
            "form": form,
            "rows": [(one, words.shown(one.arguments)) for one in rows],
            "presets": presets(request),
            "query": urlencode(query),
            "forms": FORMS,
            "older": urlencode({**query, "before": page[SHOWN - 1].pk}) if len(page) > SHOWN else "",
        }
        return TemplateResponse(request, "admin/runs/approval/decided.html", context)

    def decided_export(self, request: HttpRequest) -> StreamingHttpResponse:
        """The same, all of them, as a file."""
        asked, form = self._decided_form(request).asked(), request.GET.get("as", "csv")
        if asked is None or form not in FORMS:
            raise Http404
        found = decided.filtered(self._decisions(request), asked)
        return StreamingHttpResponse(
            decided.exported(form, found, request.user.pk),
            content_type=decided.TYPES[form],
            headers={"Content-Disposition": f'attachment; filename="decided.{form}"'},
        )

    def _decided_form(self, request: HttpRequest) -> DecidedForm:
        if not request.user.has_perm("runs.view_approval"):
            raise PermissionDenied
        return DecidedForm(request.GET)

    def _decisions(self, request: HttpRequest) -> QuerySet[ApprovalDecision]:
        if sight(request).everything:
            return ApprovalDecision.objects.all()
        found = ApprovalDecision.objects.none()
        for actor in actors_of(request):
            found = found | decided.seen(actor)
        return found
