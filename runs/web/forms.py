"""The forms of people's own pages."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groups.models import Group, Project
from groups.scopes import SCOPES
from runs.actions.start import MAX_GOAL
from runs.web import access, files
from runs.web.access import MemberRequest

LONGEST_LIFE_DAYS = 365


class SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """Any number of files; the text of all of them is the field's value."""

    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> str:
        found = data if isinstance(data, list | tuple) else [data]
        try:
            return files.as_context([super(FilesField, self).clean(one) for one in found if one])
        except files.UnreadableFile as unreadable:
            raise forms.ValidationError(str(unreadable)) from None


class GroupChoice(forms.ModelChoiceField):
    def label_from_instance(self, group: Any) -> str:
        return str(group.name)


class AskForm(forms.Form):
    """A goal, in which project, for which group, with which files."""

    goal = forms.CharField(max_length=MAX_GOAL, strip=True, label=gettext_lazy("What should your agent do?"))
    project = forms.ModelChoiceField(
        Project.objects.none(), empty_label=None, required=False, label=gettext_lazy("Project")
    )
    group = GroupChoice(
        Group.objects.none(),
        required=False,
        empty_label=gettext_lazy("My agent chooses"),
        label=gettext_lazy("Who works on it"),
    )
    attachments = FilesField(required=False, label=gettext_lazy("Files"))

    def __init__(self, request: MemberRequest, project: Project | None = None, *args: Any) -> None:
        super().__init__(*args)
        projects = access.projects(request)
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]
        self.fixed = project
        inside = Group.objects.filter(active=True, members__isnull=False).distinct().order_by("name")
        inside = inside.filter(project=project) if project else inside.filter(project__in=projects)
        self.fields["group"].queryset = inside  # type: ignore[attr-defined]
        goal = {"rows": 1, "placeholder": _("Ask your agent…"), "aria-label": _("What should your agent do?")}
        self.fields["goal"].widget = forms.Textarea(goal)
        self.fields["attachments"].widget.attrs["accept"] = ",".join(files.ACCEPTED)

    @property
    def several_projects(self) -> bool:
        return self.fixed is None and self.fields["project"].queryset.count() > 1  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        group = cleaned.get("group")
        cleaned["project"] = self.fixed or (group and group.project) or cleaned.get("project")
        if cleaned["project"] is None:
            cleaned["project"] = self.fields["project"].queryset.first()  # type: ignore[attr-defined]
        if cleaned["project"] is None:
            raise forms.ValidationError(_("You see no project yet: ask an administrator to add you to one."))
        return cleaned

    def problems(self) -> list[str]:
        return [str(problem) for found in self.errors.values() for problem in found]


class TokenForm(forms.Form):
    """A token of one's own, with scopes and an end."""

    name = forms.CharField(max_length=100, label=gettext_lazy("What is it for?"))
    scopes = forms.MultipleChoiceField(
        choices=[(name, name) for name in SCOPES],
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("What it may do"),
    )
    days = forms.IntegerField(
        min_value=1, max_value=LONGEST_LIFE_DAYS, initial=90, label=gettext_lazy("Days until it ends")
    )
