"""Watch a run in a terminal until it ends, or until only a person can go on with it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection
from django.urls import reverse
from rich.console import Console
from rich.text import Text

from groups.actors import Actor
from policy.authority import NotAllowed
from runs.actions.message import message
from runs.actions.signal import SignalRefused
from runs.execution import inline
from runs.models.choices import EventType, RunStatus, WaitKind
from runs.outbound.following import Delta
from runs.terminal.lines import clean, line
from runs.terminal.tail import Heard, Seen, Tail
from runs.terminal.words import Listener
from runs.workers.sweep import sweep

LOOK = 0.15  # seconds between two looks at the database
SWEEP = 1.0  # and between two sweeps where no cluster does it
PATIENCE = 5.0  # seconds a run may be pending before a reader is told why

NOBODY = (
    "Nobody has taken this run yet: start Deputy with `make run`, or ask with --inline. It keeps its place."
)


class Follower:
    """Shows one run's tree on a console; `console` is None where nothing is to be shown."""

    def __init__(
        self, root_id: str, actor: Actor, console: Console | None, *, drives: bool, waits: bool
    ) -> None:
        self.tail = Tail(root_id)
        self.actor = actor
        self.console = console
        self.drives = drives
        self.waits = waits
        self.events: list[Heard] = []
        self.turn = threading.Lock()
        self.swept = 0.0
        self.told_nobody = False
        self.asked: set[tuple[str, str]] = set()  # questions a person was asked here
        self.answered = False  # whether the last message stands on the terminal whole, as it was said
        self.printed = ""  # words of the root's agent that stand on the terminal, their message not yet

    def follow(self) -> Seen:
        """Until the run ends; unless it `waits`, until a person is needed. Raises KeyboardInterrupt."""
        with self._listening() as listener:
            return self._follow(listener)

    @contextmanager
    def _listening(self) -> Iterator[Listener | None]:
        """Who hears the models' words; nobody where there is no terminal, or runs are driven right here."""
        if self.console is None or not self.console.is_terminal or self.drives:
            yield None
            return
        listener = Listener(self.tail.root_id)
        listener.start()
        try:
            yield listener
        finally:
            listener.stop()

    def _follow(self, listener: Listener | None) -> Seen:
        began = time.monotonic()
        while True:
            if self.drives:
                self._drive()
            if listener is not None:
                self._speak(listener.take())
            self.show()
            if self.tail.ended or (self.tail.waits_for_a_person and not self.waits):
                return self.tail.root
            if self.tail.waits_for_a_person == "input" and self._answer():
                continue
            if time.monotonic() - began > PATIENCE:
                self._say_nobody()
            time.sleep(LOOK)

    def show(self) -> None:
        """Print what has happened since the last time."""
        with self.turn:
            new = self.tail.new()
            self.events += new
            for heard in new:
                self._print(heard)

    def _speak(self, heard: list[Delta]) -> None:
        """Print what the root's agent is just saying, as it comes."""
        assert self.console is not None  # noqa: S101
        for delta in heard:
            if delta.run_id == self.tail.root_id:
                if not self.printed:
                    self.console.print()
                self.printed += delta.text
                self.console.print(Text(clean(delta.text)), end="", soft_wrap=True)

    def _print(self, heard: Heard) -> None:
        if heard.run.id == self.tail.root_id and self._end_of_words(heard):
            return  # it stands there already, as it was said
        shown = line(heard)
        if self.console is None or shown is None:
            return
        self.console.print(shown, soft_wrap=True)
        if heard.event.type == EventType.TOOL_REQUIRES_APPROVAL:
            link = Text(
                "  " * (heard.run.depth + 2) + approval_link(heard.event.payload["approval"]), "underline"
            )
            self.console.print(link, soft_wrap=True)

    def _end_of_words(self, heard: Heard) -> bool:
        """What was printed of a message ends with it, or with what came instead; whether it was all of it."""
        if self.printed and self.console is not None:
            self.console.print()
        spoken, self.printed = self.printed.strip(), ""
        if heard.event.type == EventType.MESSAGE_CREATED:
            self.answered = bool(spoken) and spoken == heard.event.payload["content"].strip()
            return self.answered
        return False

    def _drive(self) -> None:
        if time.monotonic() - self.swept > SWEEP:
            sweep()
            self.swept = time.monotonic()
        with self._shown_meanwhile():
            inline.drive(self.tail.root_id, self.show)

    @contextmanager
    def _shown_meanwhile(self) -> Iterator[None]:
        """A slow model must not silence the terminal: a thread that only reads shows what happens."""
        if self.console is None or not self.console.is_terminal:
            yield
            return
        stop = threading.Event()
        reader = threading.Thread(target=self._read_until, args=(stop,), daemon=True)
        reader.start()
        try:
            yield
        finally:
            stop.set()
            reader.join()

    def _read_until(self, stop: threading.Event) -> None:
        try:
            while not stop.wait(LOOK):
                self.show()
        finally:
            connection.close()

    def _say_nobody(self) -> None:
        root = self.tail.root
        untouched = root.status == RunStatus.PENDING and root.last_seq <= 2
        if untouched and not self.told_nobody and not self.drives and self.console is not None:
            self.told_nobody = True
            self.console.print(Text(NOBODY, "yellow"), soft_wrap=True)

    def _answer(self) -> bool:
        """Let whoever sits at the terminal answer the agent's question; whether they did."""
        if self.console is None or not self.console.is_interactive or not self.console.is_terminal:
            return False
        for heard in self.events:
            key = (heard.run.id, heard.event.payload.get("correlation_key", ""))
            told = heard.event.payload
            asks = (
                heard.event.type == EventType.TOOL_WAITS
                and told.get("kind") == WaitKind.INPUT
                and not told.get("repeats")
            )
            if asks and key not in self.asked:
                self.asked.add(key)
                return self._deliver(key)
        return False

    def _deliver(self, key: tuple[str, str]) -> bool:
        assert self.console is not None  # noqa: S101
        try:
            answer = self.console.input("  > ")
            message(key[0], answer, self.actor, key[1])
        except EOFError:
            return False
        except (SignalRefused, NotAllowed) as refused:
            self.console.print(Text(clean(refused.message), "yellow"))
            if refused.code in ("EMPTY", "INVALID_ANSWER"):
                self.asked.discard(key)
        return True


def approval_link(approval_id: str) -> str:
    """Where people decide this approval."""
    return f"{base_url()}{reverse('web:approval', args=[approval_id])}"


def base_url() -> str:
    """Where people reach Deputy."""
    return str(settings.PUBLIC_URL).rstrip("/")
