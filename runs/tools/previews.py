"""What a tool's call looks like to whoever decides it: a mail, a request, a file, a payment, a statement.

A preview only says which argument is what. It is no template: what is shown is text, and arguments that it
does not name are shown beside it, so that a preview can hide nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Kind = Literal["mail", "http", "file", "payment", "sql", "generic"]

PARTS: dict[str, tuple[str, ...]] = {
    "mail": ("to", "cc", "bcc", "subject", "body"),
    "http": ("method", "url", "headers", "body"),
    "file": ("path", "content"),
    "payment": ("amount", "currency", "to", "reference"),
    "sql": ("database", "statement", "parameters"),
    "generic": ("to", "amount"),
}
# The parts that say where an effect goes; they are what earlier calls are compared by.
TARGETS = ("to", "cc", "bcc", "url", "path", "database")


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
