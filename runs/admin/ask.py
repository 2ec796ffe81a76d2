"""The form that asks an agent."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from groups import current
from groups.models import Project
from runs.actions.start import MAX_CONTEXT, MAX_GOAL


class AskForm(forms.Form):
    """A goal for one's own agent, in a project one is a member of."""

    project = forms.ModelChoiceField(
        Project.objects.none(), empty_label=None, widget=UnfoldAdminSelectWidget()
    )
    goal = forms.CharField(
        max_length=MAX_GOAL,
        help_text=gettext_lazy("What is to be done. Your agent hands it to a group when it is beyond it."),
        widget=UnfoldAdminTextareaWidget({"rows": 4, "autofocus": True}),
    )
    context = forms.CharField(
        required=False,
        max_length=MAX_CONTEXT,
        help_text=gettext_lazy("What the agent should know for this. Optional."),
        widget=UnfoldAdminTextareaWidget({"rows": 4}),
    )
    session_key = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Session"),
        help_text=gettext_lazy("Runs of one session remember each other. Optional: any name."),
        widget=UnfoldAdminTextInputWidget(),
    )

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = rooms(request)  # type: ignore[attr-defined]


def rooms(request: HttpRequest) -> QuerySet[Project]:
    """The projects in which this person has an agent; being a superuser makes nobody a member."""
    found: list[str] = []
    for membership in current.memberships_of(request.user):
        inside = Project.objects.filter(organization_id=membership.organization_id)
        if membership.projects is not None:
            inside = inside.filter(pk__in=membership.projects)
        found += inside.values_list("pk", flat=True)
    return Project.objects.filter(pk__in=found).order_by("name")
