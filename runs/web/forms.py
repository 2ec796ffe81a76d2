"""The forms of people's own pages."""

from contextlib import suppress
from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from common import cron
from groups.models import Group, Project
from groups.scopes import SCOPES
from runs.actions.schedule import most
from runs.actions.start import MAX_GOAL
from runs.models import OnMissed
from runs.web import access, files
from runs.web.access import MemberRequest

LONGEST_LIFE_DAYS = 365


class SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """Any number of files; the text of all of them is the field's value."""

    widget = SeveralFiles
    whose: Any = None  # the id of the person

    def clean(self, data: Any, initial: Any = None) -> str:
        found = data if isinstance(data, list | tuple) else [data]
        try:
            return files.as_context([super(FilesField, self).clean(one) for one in found if one], self.whose)
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
        self.fields["attachments"].whose = request.user.pk  # type: ignore[attr-defined]
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


REPEATS = {  # how often, and the cron expression for it by the chosen time's parts
    "once": (gettext_lazy("Once"), ""),
    "hourly": (gettext_lazy("Every hour"), "{minute} * * * *"),
    "daily": (gettext_lazy("Every day"), "{minute} {hour} * * *"),
    "workdays": (gettext_lazy("Monday to Friday"), "{minute} {hour} * * 1-5"),
    "weekly": (gettext_lazy("Every week, on this weekday"), "{minute} {hour} * * {weekday}"),
    "monthly": (gettext_lazy("Every month, on this day"), "{minute} {hour} {day} * *"),
    "cron": (gettext_lazy("By a cron expression"), ""),
}
WALL = "%Y-%m-%dT%H:%M"  # as a browser's field for a local time has it


class WallTimeField(forms.DateTimeField):
    """A time on the wall of the time zone that is chosen beside it."""

    widget = forms.DateTimeInput(format=WALL, attrs={"type": "datetime-local"})
    input_formats = (WALL, "%Y-%m-%dT%H:%M:%S")

    def to_python(self, value: Any) -> Any:
        return None if value in self.empty_values else self._wall(str(value).strip())

    def _wall(self, value: str) -> datetime:
        for form in (WALL, "%Y-%m-%dT%H:%M:%S"):
            with suppress(ValueError):
                return datetime.strptime(value, form)
        raise forms.ValidationError(self.error_messages["invalid"], code="invalid")


class ScheduleForm(forms.Form):
    """A goal, when, until when, and what each of its runs may use."""

    goal = forms.CharField(
        max_length=MAX_GOAL,
        widget=forms.Textarea({"rows": 3}),
        label=gettext_lazy("What should your agent do?"),
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput)  # the goal that the form was opened with
    title = forms.CharField(max_length=200, required=False, label=gettext_lazy("Title"))
    project = forms.ModelChoiceField(Project.objects.none(), empty_label=None, label=gettext_lazy("Project"))
    group = GroupChoice(
        Group.objects.none(),
        required=False,
        empty_label=gettext_lazy("My agent chooses"),
        label=gettext_lazy("Who works on it"),
    )
    repeat = forms.ChoiceField(
        choices=[(name, said) for name, (said, _expression) in REPEATS.items()],
        label=gettext_lazy("How often"),
    )
    at = WallTimeField(required=False, label=gettext_lazy("Date and time"))
    cron = forms.CharField(max_length=100, required=False, label=gettext_lazy("Cron expression"))
    time_zone = forms.ChoiceField(label=gettext_lazy("Time zone"))
    ends_at = WallTimeField(required=False, label=gettext_lazy("Until"))
    most_runs = forms.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, label=gettext_lazy("At most so many runs")
    )
    on_missed = forms.ChoiceField(choices=OnMissed.choices, label=gettext_lazy("A time that was missed"))
    steps = forms.IntegerField(required=False, min_value=1, label=gettext_lazy("Steps"))
    tokens = forms.IntegerField(required=False, min_value=1, label=gettext_lazy("Tokens"))
    minutes = forms.IntegerField(required=False, min_value=1, label=gettext_lazy("Minutes"))

    def __init__(self, request: MemberRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        projects: Any = access.projects(request)
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]
        inside = Group.objects.filter(active=True, members__isnull=False, project__in=projects)
        self.fields["group"].queryset = inside.distinct().order_by("name")  # type: ignore[attr-defined]
        zones = [(name, name) for name in sorted(cron.zones())]
        self.fields["time_zone"].choices = zones  # type: ignore[attr-defined]
        limits = most()
        for name, limit in (
            ("steps", limits["steps"]),
            ("tokens", limits["tokens"]),
            ("minutes", max(1, limits["seconds"] // 60)),
        ):
            self.fields[name] = forms.IntegerField(
                required=False, min_value=1, max_value=limit, label=self.fields[name].label
            )
            self.fields[name].widget.attrs["placeholder"] = str(limit)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        group = cleaned.get("group")
        if group and cleaned.get("project") and group.project_id != cleaned["project"].pk:
            raise forms.ValidationError(_("This group belongs to another project."))
        return cleaned

    def times(self) -> dict[str, Any]:
        """The fields of a schedule that say when; of a form that may lack all else."""
        said = self.cleaned_data
        repeat, at = said.get("repeat", "once"), said.get("at")
        found: dict[str, Any] = {name: said.get(name) for name in ("time_zone", "ends_at")}
        if repeat == "cron":
            return {**found, "at": None, "cron": said.get("cron") or ""}
        expression = REPEATS[repeat][1]
        if at is None or not expression:
            return {**found, "at": at, "cron": ""}
        parts = {"minute": at.minute, "hour": at.hour, "day": at.day, "weekday": at.isoweekday() % 7}
        return {**found, "at": None, "cron": expression.format(**parts)}

    def problems(self) -> list[str]:
        return [
            f"{self.fields[name].label}: {problem}" if name in self.fields else str(problem)
            for name, found in self.errors.items()
            for problem in found
        ]


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
