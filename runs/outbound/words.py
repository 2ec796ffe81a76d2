"""What models say while they say it: gathered, and told to who follows.

Where nobody follows a tree of runs nothing is sent. What is told is kept with it, as it is shown, since it
may come to stand in no message (ShownWords). A secret is masked whole: what may be the first half of one is
told when the rest has come.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable

from common import ids, redact
from runs.outbound import packing
from runs.outbound.table import Table, Taken, Telling
from runs.providers.wire import storable

EVERY_SECONDS = 0.1
MOST_BYTES = 6000  # of words in one notification
MOST_KEPT = 4_000  # characters that are kept back
# The end of a text that may be a part of a secret: the visible characters that no blank ends, with the word
# before them that says what they are; and a private key that has not ended.
UNSETTLED = re.compile(
    r"(?:-----BEGIN (?:(?!-----END )[\s\S])*|(?:\b(?:Bearer|Token|Basic)\s+)?[!-~]{1,1000}|"
    r"\b(?:Bearer|Token|Basic)\s+)\Z"
)


class Words:
    """The words of all calls of a carrier."""

    def __init__(self) -> None:
        self.calls: dict[int, Taken] = {}  # that are streamed
        self.replies: dict[int, str] = {}
        self.followed: set[str] = set()  # roots
        self.told_until = 0.0
        self.pending: dict[int, list[str]] = {}
        self.some = asyncio.Event()

    def of(self, call: Taken) -> Callable[[str], None] | None:
        """What is to be told the call's words; None where it need not be streamed."""
        if not call.of_model or (call.rank and call.root_id not in self.followed):
            return None
        self.calls[call.id] = call
        self.replies[call.id] = ids.shown_words_id()

        def told(text: str) -> None:
            if call.root_id in self.followed:
                self.pending.setdefault(call.id, []).append(text)
                self.some.set()

        return told

    def ended(self, call: Taken) -> None:
        """Its finished message follows: what is left need not be told."""
        for each in (self.calls, self.replies, self.pending):
            each.pop(call.id, None)

    def follow(self, root_id: str) -> None:
        self.followed.add(root_id)

    async def look(self, table: Table) -> None:
        """Which of the trees at hand are followed still; a lost notification is made up for."""
        if time.monotonic() > self.told_until:
            self.told_until = time.monotonic() + 1
            self.followed = await table.followed({call.root_id for call in self.calls.values()})

    async def due(self) -> list[Telling]:
        """The words of the last moment, once there are any."""
        while True:
            await self.some.wait()
            await asyncio.sleep(EVERY_SECONDS)
            self.some.clear()
            pending, self.pending = self.pending, {}
            found = [
                Telling(
                    number,
                    self.replies[number],
                    words,
                    [delta(call, part) for part in parts(words)],
                )
                for number, texts in pending.items()
                if (call := self.calls.get(number))
                and (words := redact.shown(storable(self._settled(number, "".join(texts)))))
            ]
            if found:
                return found

    def _settled(self, number: int, text: str) -> str:
        """What of a call's words can be told now; the rest waits for what comes next."""
        rest = UNSETTLED.search(text, max(len(text) - MOST_KEPT, 0))
        if rest is None:
            return text
        if rest[0]:
            self.pending[number] = [rest[0]]
        return text[: rest.start()]


def parts(text: str) -> list[str]:
    """The text in pieces that fit a notification: a character takes four bytes at most, and an escape six."""
    size = MOST_BYTES // 6
    return [text[at : at + size] for at in range(0, len(text), size)]


def delta(call: Taken, text: str) -> str:
    """The notification: root, run, the last seq its model had seen, the agent, and the words."""
    receipt = json.loads(call.receipt)
    told = [call.root_id, call.run_id, receipt["saw"], receipt["agent"], text]
    return packing.text(told)
