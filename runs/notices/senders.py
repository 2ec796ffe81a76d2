"""The ways to reach somebody: a sender for each kind of channel. Packages add theirs by the entry point
`deputy.notifiers` (docs/extending.md).
"""

from functools import cache
from typing import Any

from common import extensions
from runs.notices import chat, mail, push, slack
from runs.notices.base import Message, Sender


def found(kind: str) -> Sender | None:
    return all_of_them().get(kind)


@cache
def all_of_them() -> dict[str, Sender]:
    """By kind. Raises BadSetting for a package's notifier that cannot be used."""
    ours = {sender.kind: sender for sender in (mail.SENDER, chat.SENDER, slack.SENDER, push.SENDER)}
    for extension in extensions.brought("notifiers"):
        if extension.name in ours:
            raise extension.refused(f"there is a channel {extension.name!r} already")
        ours[extension.name] = _of_package(extension.name, extension.load(), extension)
    return ours


def _of_package(name: str, notifier: Any, extension: extensions.Extension) -> Sender:
    for wanted in ("check", "send"):
        if not callable(getattr(notifier, wanted, None)):
            raise extension.refused(f"it has no function {wanted}")

    def send(address: str, message: Message, channel: str) -> None:
        notifier.send(address, message)

    return Sender(name, str(getattr(notifier, "label", name)), notifier.check, send)
