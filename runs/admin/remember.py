"""The form beside an approval that makes it a standing one."""

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groups.actors import Actor
from policy.authority import Verb, can
from runs.actions.decide import Remember
from runs.admin import words
from runs.gate import demands
from runs.models import Approval

MOST_USES = 1_000_000


class RememberForm(forms.Form):
    """Which later calls pass, and until when.

    Nothing is chosen beforehand; what says too little is refused by the action itself.
    """

    same = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    any_arguments = forms.BooleanField(required=False, label=gettext_lazy("Whatever the arguments"))
    until = forms.DateTimeField(
        required=False,
        label=gettext_lazy("Until"),
        widget=forms.DateTimeInput({"type": "datetime-local"}, "%Y-%m-%dT%H:%M"),
    )
    uses = forms.IntegerField(
        required=False, label=gettext_lazy("For this many further calls"), min_value=1, max_value=MOST_USES
    )

    def __init__(self, arguments: dict[str, Any], data: Any = None) -> None:
        super().__init__(data, prefix="remember")
        self.fields["same"].choices = [(name, _line(name, arguments[name])) for name in arguments]  # type: ignore[attr-defined]
        for name in ("until", "uses"):
            self.fields[name].widget.attrs["class"] = "dp-input dp-narrow"

    def clean_until(self) -> Any:
        until = self.cleaned_data["until"]
        if until is not None and until <= timezone.now():
            raise forms.ValidationError(_("This time is over."))
        return until

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("same") and cleaned.get("any_arguments"):
            raise forms.ValidationError(
                _("Choose arguments that stay the same, or whatever they are: one of the two.")
            )
        return cleaned

    def remember(self) -> Remember:
        said = self.cleaned_data
        return Remember(tuple(said["same"]), said["any_arguments"], said["until"], said["uses"])


def offered(approval: Approval, actor: Actor) -> bool:
    """Whether this decider may make a standing approval of it."""
    demand = demands.of_approval(approval, approval.run.project.allow_self_approval)
    return demand.grantable and can(actor, Verb.GRANT, approval)


def _line(name: str, value: Any) -> str:
    text = "; ".join(
        f"{line.name} = {line.text}" if line.name else line.text for line in words.readable(value)
    )
    return f"{words.visible(name)} = {text[:200]}{'…' if len(text) > 200 else ''}"
