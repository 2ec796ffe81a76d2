"""What senders have in common: a message, and why it did not leave. `senders.py` has all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from common.outbound import Fetched, OutboundError


@dataclass(frozen=True)
class Item:
    """One thing that a message tells of. `approval`, `digest`: what a button decides, where it may."""

    title: str
    lines: tuple[str, ...]
    link: str
    approval: str = ""
    digest: str = ""
    approve_link: str = ""
    reject_link: str = ""


@dataclass(frozen=True)
class Message:
    """A digest as it is sent: what each channel puts into its own form."""

    subject: str
    items: tuple[Item, ...]
    more: str = ""  # what is not shown of a long digest, and where it is

    @property
    def text(self) -> str:
        """Plain text, with the links."""
        parts = ["\n".join((item.title, *item.lines, *_links(item))) for item in self.items]
        return "\n\n".join([*parts, *([self.more] if self.more else [])]) + "\n"


def cut(words: str, most: int) -> str:
    """The words, which say so where they are cut."""
    return words if len(words) <= most else words[: most - 1] + "…"


def _links(item: Item) -> list[str]:
    prepared = [(_("Approve"), item.approve_link), (_("Reject"), item.reject_link)]
    return [*([item.link] if item.link else []), *(f"{said}: {link}" for said, link in prepared if link)]


class NotSent(Exception):
    """The message did not leave. `lasting`: the channel will not work before somebody changes it; `gone`: it
    never will again. The words name no secret. `wait`: the receiver's wish, in seconds.
    """

    def __init__(self, why: str, *, lasting: bool = False, gone: bool = False, wait: int = 0) -> None:
        super().__init__(why)
        self.why, self.lasting, self.gone, self.wait = why[:300], lasting, gone, wait


class BadAddress(Exception):
    """What somebody entered is no address of such a channel; the words say what is."""


@dataclass(frozen=True)
class Sender:
    """`check` returns what may be seen of an address, or raises BadAddress; `send` raises NotSent.

    `send` gets the address, the message, and the channel's id.
    """

    kind: str
    label: Any  # text, or text that is translated when it is shown
    check: Callable[[str], str]
    send: Callable[[str, Message, str], None]


def judge(answer: Fetched) -> None:
    """Raises NotSent unless the receiver took it."""
    if 200 <= answer.status < 300:
        return
    wish = answer.headers.get("retry-after", "")
    wait = min(int(wish), 3600) if wish.isascii() and wish.isdigit() and len(wish) < 7 else 0
    lasting = answer.status in (400, 401, 403, 404, 405, 410)
    raise NotSent(f"The receiver answered {answer.status}.", lasting=lasting, wait=wait)


def unsent(error: OutboundError) -> NotSent:
    """A request that got no answer, as the channel's trouble; names the host at most."""
    return NotSent(f"{error.code}: {error.message}", lasting=error.code == "ADDRESS_REFUSED")
