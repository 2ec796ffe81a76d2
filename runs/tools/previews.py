"""What a tool's call looks like to whoever decides it: a mail, a request, a file, a payment, a statement.

A preview only says which argument is what. It is no template: what is shown is text, and arguments that it
does not name are shown beside it, so that a preview can hide nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Kind = Literal["mail", "http", "file", "payment", "sql", "generic"]

RECIPIENTS = ("to", "cc", "bcc")  # of a mail
PARTS: dict[str, tuple[str, ...]] = {
    "mail": (*RECIPIENTS, "subject", "body"),
    "http": ("method", "url", "headers", "body"),
    "file": ("path", "content"),
    "payment": ("amount", "currency", "to", "reference"),
    "sql": ("database", "statement", "parameters"),
    "generic": ("to", "amount"),
}
# The parts that say where an effect goes; they are what earlier calls are compared by.
TARGETS = (*RECIPIENTS, "url", "path", "database")
# How tools without a preview call arguments that say it.
ALSO_TARGETS = ("recipient", "recipients", "email", "uri", "channel", "account", "iban")


class BadPreview(ValueError):
    """A preview that does not fit its tool; the message says what to change."""


@dataclass(frozen=True)
class Preview:
    """`parts`: the argument of each part of this kind (`{"to": "recipients", "body": "text"}`), as many as
    the tool has. `fixed`: parts that are always the same and no argument, such as the method of a request.
    `does`: what approving does, for the button, where the kind does not say it: "book the room".
    """

    kind: Kind
    parts: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    does: str = ""

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raises BadPreview for a kind or part that there is not, or an argument the tool does not take."""
        if self.kind not in get_args(Kind):
            raise BadPreview(f"there is no preview '{self.kind}'; it is one of {', '.join(get_args(Kind))}")
        known = PARTS[self.kind]
        for part in (*self.parts, *self.fixed):
            if part not in known:
                raise BadPreview(f"a preview '{self.kind}' has no part '{part}'; it has {', '.join(known)}")
        taken = schema.get("properties") or {}
        for argument in self.parts.values():
            if argument not in taken:
                raise BadPreview(f"the preview names '{argument}', which the tool does not take")

    @property
    def targets(self) -> tuple[str, ...]:
        """The arguments that say where the effect goes."""
        return tuple(self.parts[part] for part in TARGETS if part in self.parts)


def targets_among(preview: Preview | None, names: Iterable[str]) -> tuple[str, ...]:
    """Those of a call's arguments that say where its effect goes: as the tool's preview has it, else by their
    names.
    """
    if preview is not None and preview.targets:
        return preview.targets
    return tuple(name for name in names if name.lower() in (*TARGETS, *ALSO_TARGETS))
