"""The words of models in the reader's language: names, fields, choices and their help.

Models say them in plain English and stay free of translation; so do migrations, which keep the English.
"""

from collections.abc import Iterator
from functools import partialmethod
from typing import Any

from django.apps import AppConfig
from django.db.models import Field, Model
from django.utils.translation import gettext_lazy


def translate(config: AppConfig) -> None:
    """Let every word that the app's models show be looked up when it is shown."""
    for model in config.get_models():
        options: Any = model._meta
        options.verbose_name = gettext_lazy(str(options.verbose_name))
        options.verbose_name_plural = gettext_lazy(str(options.verbose_name_plural))
        for field in _fields(model):
            field.verbose_name = gettext_lazy(str(field.verbose_name))
            if field.help_text:
                field.help_text = gettext_lazy(str(field.help_text))
            if field.choices:
                field.choices = [(value, gettext_lazy(str(label))) for value, label in field.flatchoices]
                # Django's own makes this dict anew each time
                shown = partialmethod(_label, field.attname, dict(field.choices))
                setattr(model, f"get_{field.name}_display", shown)


def words(config: AppConfig) -> Iterator[str]:
    """The English of all of them."""
    for model in config.get_models():
        yield str(model._meta.verbose_name)
        yield str(model._meta.verbose_name_plural)
        for field in _fields(model):
            yield str(field.verbose_name)
            yield str(field.help_text)
            yield from (str(label) for _, label in field.flatchoices or ())


def _label(row: Model, name: str, labels: dict[Any, Any]) -> Any:
    value = getattr(row, name)
    return str(labels[value]) if value in labels else value


def _fields(model: type[Model]) -> "list[Field[Any, Any]]":
    return [field for field in model._meta.get_fields() if isinstance(field, Field)]
