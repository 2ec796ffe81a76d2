"""Two pages about policy: what would happen to a call, and every decision there was."""

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from groups.admin.tenancy import sight
from groups.models import Group, Membership, Organization, Project, Role
from runs.gate.simulation import CannotSimulate, Simulated, considered, simulate
from runs.observe import audit
from runs.tools import toolbox

ASK = "policy.view_capabilityrule"
LOOK = "runs.view_runevent"
PAGE = 100  # decisions
# the fields' names, as the pages look them up
LABELS = (
    *(gettext_noop("User"), gettext_noop("Project"), gettext_noop("Group"), gettext_noop("Role")),
    *(gettext_noop("Tool"), gettext_noop("Arguments"), gettext_noop("Organization"), gettext_noop("Run")),
    *(gettext_noop("Effect"), gettext_noop("Rule"), gettext_noop("Since"), gettext_noop("Until")),
    *(gettext_noop("Goal"), gettext_noop("Context"), gettext_noop("Session")),
)
TONES = {"allow": "good", "require_approval": "warn", "require_human": "warn", "deny": "bad"}


class WhatIfForm(forms.Form):
    """A call somebody's agent might make."""

    user = forms.CharField(
        max_length=150,
        help_text=gettext_lazy("Whose agent, by username."),
        widget=UnfoldAdminTextInputWidget(),
    )
    project = forms.ModelChoiceField(
        Project.objects.none(), empty_label=None, widget=UnfoldAdminSelectWidget()
    )
    group = forms.ModelChoiceField(
        Group.objects.none(),
        required=False,
        help_text=gettext_lazy("Where the call is made by a group's member. Optional."),
        widget=UnfoldAdminSelectWidget(),
    )
    role = forms.ModelChoiceField(
        Role.objects.none(),
        required=False,
        help_text=gettext_lazy("The role that makes it; empty: the user's own agent."),
        widget=UnfoldAdminSelectWidget(),
    )
    tool = forms.ChoiceField(widget=UnfoldAdminSelectWidget())
    arguments = forms.CharField(
        initial="{}",
        max_length=100_000,
        strip=False,
        help_text=gettext_lazy("As JSON."),
        widget=UnfoldAdminTextareaWidget({"rows": 6, "spellcheck": "false"}),
    )

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        seen = sight(request)
        rows: dict[str, Any] = {
            "project": (Project.objects.select_related("organization"), "pk"),
            "group": (Group.objects.select_related("project"), "project_id"),
            "role": (Role.objects.all(), ""),
        }
        for name, (found, lookup) in rows.items():
            mine = found if seen.everything else found.filter(seen.condition("organization_id", lookup))
            self.fields[name].queryset = mine.order_by("name")  # type: ignore[attr-defined]
        names = sorted(toolbox.names(None if seen.everything else seen.organizations))
        self.fields["tool"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]

    def clean_arguments(self) -> dict[str, Any]:
        try:
            found = json.loads(self.cleaned_data["arguments"])
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(_("This is not JSON: {error}").format(error=error)) from None
        if not isinstance(found, dict):
            raise forms.ValidationError(_('The arguments are a JSON object: {"name": value}.'))
        return found

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if "project" in cleaned and "user" in cleaned:
            members = Membership.objects.select_related("user").filter(
                organization_id=cleaned["project"].organization_id, user__username=cleaned["user"]
            )
            member = members.first()
            if member is None:
                self.add_error("user", _("Nobody of this name is a member of the project's organization."))
            else:
                cleaned["member"] = member.user
        return cleaned

    def answer(self) -> Simulated | None:
        """What would happen; None, with an error on the form, where the question makes no sense."""
        asked = self.cleaned_data
        project = asked["project"]
        try:
            return simulate(
                project.organization,
                project,
                asked["member"],
                asked["tool"],
                asked["arguments"],
                role=asked["role"],
                group=asked["group"],
            )
        except CannotSimulate as refused:
            self.add_error(None, str(refused))
            return None


class DecisionsForm(forms.Form):
    """Which decisions to show."""

    organization = forms.ModelChoiceField(
        Organization.objects.none(), empty_label=None, required=False, widget=UnfoldAdminSelectWidget()
    )
    project = forms.ModelChoiceField(Project.objects.none(), required=False, widget=UnfoldAdminSelectWidget())
    user = forms.CharField(required=False, max_length=150, widget=UnfoldAdminTextInputWidget())
    run = forms.CharField(required=False, max_length=31, widget=UnfoldAdminTextInputWidget())
    tool = forms.CharField(required=False, max_length=64, widget=UnfoldAdminTextInputWidget())
    effect = forms.ChoiceField(
        choices=[("", gettext_lazy("any")), *((effect, effect) for effect in audit.EFFECTS)],
        required=False,
        widget=UnfoldAdminSelectWidget(),
    )
    rule = forms.CharField(required=False, max_length=64, widget=UnfoldAdminTextInputWidget())
    since = forms.DateTimeField(
        required=False, widget=UnfoldAdminTextInputWidget({"placeholder": "2026-01-31 08:00"})
    )
    until = forms.DateTimeField(
        required=False, widget=UnfoldAdminTextInputWidget({"placeholder": "2026-01-31 08:00"})
    )

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen = sight(request)
        organizations, projects = Organization.objects.order_by("name"), Project.objects.order_by("name")
        if not self.seen.everything:
            organizations = organizations.filter(pk__in=self.seen.organizations)
            projects = projects.filter(self.seen.condition("organization_id", "pk"))
        self.fields["organization"].queryset = organizations  # type: ignore[attr-defined]
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]

    def asked(self) -> audit.Asked | None:
        """The question, within what the person sees; None where they see no organization."""
        said = self.cleaned_data
        organization = said["organization"] or self.fields["organization"].queryset.first()  # type: ignore[attr-defined]
        if organization is None:
            return None
        projects = None if self.seen.everything else self.seen.organizations[organization.pk]
        if said["project"] is not None:
            projects = [said["project"].pk]
        user = None
        if said["user"]:
            member = Membership.objects.filter(organization=organization, user__username=said["user"]).first()
            user = member.user_id if member else 0
        texts = {name: said[name] for name in ("run", "tool", "effect", "rule")}
        times = {name: said[name] for name in ("since", "until")}
        return audit.Asked(organization.pk, projects, user, **texts, **times)


class PolicyPages:
    """Adds the pages to an admin class."""

    admin_site: admin.AdminSite

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("what-would-happen/", wrap(self.what_if_view), name="runs_what_if"),
            path("decisions/", wrap(self.decisions_view), name="runs_decisions"),
            path("decisions.csv", wrap(self.export_view), name="runs_decisions_export"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def what_if_view(self, request: HttpRequest) -> HttpResponse:
        """What policy would decide about a call. Nothing is run, and nothing kept."""
        _check(request, ASK)
        initial = {"user": request.user.get_username(), **request.GET.dict()}
        form = WhatIfForm(request, request.POST or None, initial=initial)
        found = form.answer() if form.is_bound and form.is_valid() else None
        context = {**self.admin_site.each_context(request), "title": _("What would happen?"), "form": form}
        if found is not None:
            project = form.cleaned_data["project"]
            seen = sight(request)
            projects = None if seen.everything else seen.organizations[project.organization_id]
            context |= {
                "found": found,
                "said": found.explained,
                "tone": TONES[found.explained.effect],
                "considered": considered(found, project.organization_id, projects),
            }
        return TemplateResponse(request, "admin/runs/policy/what_if.html", context)

    def decisions_view(self, request: HttpRequest) -> HttpResponse:
        """Every decision of policy, the newest first."""
        form = self._decisions_form(request)
        rows = self._rows(form, request.GET.get("before", ""))
        query = {name: value for name, value in request.GET.items() if name != "before" and value}
        context = {
            **self.admin_site.each_context(request),
            "title": _("Decisions"),
            "form": form,
            "rows": [(row, TONES.get(row.effect, "")) for row in rows],
            "query": urlencode(query),
            "older": urlencode({**query, "before": _mark(rows[-1])}) if len(rows) == PAGE else "",
        }
        return TemplateResponse(request, "admin/runs/policy/decisions.html", context)

    def export_view(self, request: HttpRequest) -> StreamingHttpResponse:
        """The same decisions, all of them, as CSV."""
        form = self._decisions_form(request)
        asked = form.asked() if form.is_valid() else None
        if asked is None:
            raise Http404
        return StreamingHttpResponse(
            audit.as_csv(asked),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="decisions.csv"'},
        )

    def _decisions_form(self, request: HttpRequest) -> DecisionsForm:
        _check(request, LOOK)
        return DecisionsForm(request, request.GET)

    def _rows(self, form: DecisionsForm, before: str) -> list[audit.Row]:
        asked = form.asked() if form.is_valid() else None
        return audit.decisions(asked, PAGE, _position(before)) if asked else []


def _check(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied


def _mark(row: audit.Row) -> str:
    return "|".join((row.time.isoformat(), row.run, str(row.seq)))


def _position(mark: str) -> tuple[datetime, str, int] | None:
    """What `_mark` wrote; None for anything else."""
    try:
        time, run, seq = mark.split("|")
        return datetime.fromisoformat(time), run, int(seq)
    except ValueError:
        return None
