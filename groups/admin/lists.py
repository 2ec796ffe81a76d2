"""Lists of names in forms: one a line; "no restriction" apart from an empty list where that differs."""

from typing import Any

from django import forms
from django.contrib.postgres.fields import ArrayField
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectMultipleWidget, UnfoldAdminTextareaWidget, UnfoldBooleanWidget

HELP = {
    False: gettext_lazy("One a line."),
    True: gettext_lazy("One a line. Without a restriction and with an empty list are opposites."),
}


def lines(text: str) -> list[str]:
    """The entries of a text, one a line, each once. A comma may be a part of one."""
    entries = map(str.strip, text.replace("\r", "\n").split("\n"))
    return list(dict.fromkeys(entry for entry in entries if entry))


class LinesWidget(UnfoldAdminTextareaWidget):
    """A list as lines."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"rows": 4, "spellcheck": "false", **(attrs or {})})

    def format_value(self, value: Any) -> str:
        return "\n".join(value) if isinstance(value, list | tuple) else value or ""


class LinesField(forms.CharField):
    """One entry a line."""

    widget = LinesWidget

    def __init__(self, *, base_field: Any = None, **kwargs: Any) -> None:
        self.item_length = getattr(base_field, "max_length", None)
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> Any:
        found = lines(super().to_python(value) or "")
        for entry in found:
            if self.item_length and len(entry) > self.item_length:
                raise forms.ValidationError(
                    _("“{start}…” is too long: at most {most} characters an entry.").format(
                        start=entry[:40], most=self.item_length
                    )
                )
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:
        return lines(data or "") != list(initial or [])


class Sent(list[Any]):
    """What a form was sent for a list that may be open: the checkbox and the entries."""


class OpenWidget(forms.MultiWidget):
    """A checkbox "no restriction", and what holds when it is not ticked."""

    template_name = "admin/widgets/open_list.html"

    def __init__(self, entries: forms.Widget, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"open": UnfoldBooleanWidget(), "list": entries}, attrs)

    def decompress(self, value: Any) -> list[Any]:
        return [value is None, value or []]

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Sent:
        return Sent(super().value_from_datadict(data, files, name))

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Django takes any list for one of the widgets' values, and a stored list is none."""
        parts = value if isinstance(value, Sent) else self.decompress(value)
        found: dict[str, Any] = super().get_context(name, parts, attrs)
        return found


class OpenListWidget(OpenWidget):
    """The entries one a line."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(LinesWidget(), attrs)

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}_list" not in data and f"{name}_open" not in data


class OpenListField(forms.MultiValueField):
    """None where nothing restricts; otherwise the list, and an empty list allows nothing."""

    widget = OpenListWidget

    def __init__(self, *, base_field: Any = None, **kwargs: Any) -> None:
        kwargs.pop("require_all_fields", None)
        kwargs["required"] = False
        inner = (forms.BooleanField(required=False), LinesField(base_field=base_field, required=False))
        super().__init__(inner, require_all_fields=False, **kwargs)

    def clean(self, value: Any) -> Any:
        unrestricted, text = value or (True, "")
        return None if unrestricted else self.fields[1].clean(text)

    def has_changed(self, initial: Any, data: Any) -> bool:
        unrestricted, text = data or (True, "")
        now = None if unrestricted in (True, "on", "true") else lines(text or "")
        return now != (None if initial is None else list(initial))


class OpenChoiceField(forms.MultiValueField):
    """Like OpenListField, for ids that are chosen by name."""

    def __init__(self, *, choices: Any, **kwargs: Any) -> None:
        inner = (
            forms.BooleanField(required=False),
            forms.MultipleChoiceField(choices=choices, required=False),
        )
        widget = OpenWidget(UnfoldAdminSelectMultipleWidget(choices=choices))
        super().__init__(inner, widget=widget, required=False, require_all_fields=False, **kwargs)

    def clean(self, value: Any) -> Any:
        unrestricted, chosen = value or (True, [])
        return None if unrestricted else list(self.fields[1].clean(chosen))

    def has_changed(self, initial: Any, data: Any) -> bool:
        unrestricted, chosen = data or (True, [])
        return (None if unrestricted else sorted(chosen or [])) != (
            None if initial is None else sorted(initial)
        )


class ListFields:
    """Gives a model's lists the field that fits: whether null means "no restriction" decides."""

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if not isinstance(db_field, ArrayField):
            return super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        kind = OpenListField if db_field.null else LinesField
        help_text = db_field.help_text or HELP[db_field.null]
        return kind(
            base_field=db_field.base_field,
            label=capfirst(db_field.verbose_name),
            help_text=help_text,
            required=False,
            initial=None if db_field.null else list,
        )
