"""Whether names in safety settings mean anything: a misspelt tool in a list of denied ones denies nothing.

Which tools and models there are is known further up; whoever has them registers them here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

MOST_NEAR = 3
MOST_TOLD = 5  # names of one field

_sources: dict[str, Callable[..., Any]] = {}
_kept: ContextVar[dict[str, frozenset[str]] | None] = ContextVar("deputy_known_tools", default=None)


def register(
    tools: Callable[[str], Iterable[str]],
    model: Callable[[str, str], str],
    models: Callable[[str], Iterable[str]],
) -> None:
    """`tools`: an organization's, by its id; `model`: what is wrong with a model's name, for it; `models`:
    those that are known to answer for it.
    """
    _sources.update(tools=tools, model=model, models=models)


def tools(organization_id: str) -> frozenset[str]:
    """The names of the organization's tools; empty where nobody has registered any."""
    kept = _kept.get()
    if kept is None:
        return _tools(organization_id)
    if organization_id not in kept:
        kept[organization_id] = _tools(organization_id)
    return kept[organization_id]


def _tools(organization_id: str) -> frozenset[str]:
    return frozenset(_sources["tools"](organization_id)) if "tools" in _sources else frozenset()


@contextmanager
def asked_once() -> Iterator[None]:
    """Inside, each organization's tools are asked for once: for looking at many rows."""
    before = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(before)


def model_problem(organization_id: str, model: str) -> str:
    """What is wrong with the model's name; empty for the deployment's own, and where nobody knows models."""
    return str(_sources["model"](organization_id, model)) if model and "model" in _sources else ""


def models_of(organization_id: str) -> list[str]:
    """The models that are known to answer for the organization, to be offered."""
    return sorted(_sources["models"](organization_id)) if "models" in _sources else []


def unknown_tools(organization_id: str, lists: Mapping[str, Sequence[str] | None]) -> dict[str, list[str]]:
    """By field, a sentence for each name that is no tool's."""
    named = {name for names in lists.values() for name in names or ()}
    there = tools(organization_id) if named else frozenset()
    found = {
        field: [words(name, there) for name in names or () if name not in there][:MOST_TOLD]
        for field, names in lists.items()
    }
    return {field: problems for field, problems in found.items() if problems}


def words(name: str, there: Iterable[str], kind: str = "tool") -> str:
    """That there is nothing of this kind and name, and what may have been meant."""
    near = get_close_matches(name, sorted(there), MOST_NEAR)
    meant = f" Did you mean {', '.join(near)}?" if near else ""
    return f"There is no {kind} '{name}'.{meant}"


def check(row: Any) -> None:
    """Raises ValidationError for names nobody knows, unless the row says that it names what is to come. One
    that has gone since keeps nobody from changing the rest: it is told of wherever somebody looks.
    """
    if row.not_known_yet or not (found := row.unknown_names()):
        return
    stored = type(row).objects.filter(pk=row.pk, not_known_yet=False).first()
    before = stored.unknown_names() if stored else {}
    new = {field: [one for one in said if one not in before.get(field, ())] for field, said in found.items()}
    if any(new.values()):
        raise ValidationError({field: said for field, said in new.items() if said})


class NotKnownYet(models.BooleanField):  # type: ignore[type-arg,unused-ignore]
    """Says that a row may name what there is not, or not yet."""

    def __init__(self, **more: Any) -> None:
        defaults = {
            "default": False,
            "verbose_name": "not known yet",
            "help_text": "Accept names that Deputy does not know yet. While it does not, that is a warning.",
        }
        super().__init__(**{**defaults, **more})
