"""Files that a person hands to their agent, as text: text from outside, as a page of the web is."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from runs.actions.start import MAX_CONTEXT

MOST_FILES = 5
MOST_BYTES = 5 * 1024 * 1024  # of one file
MOST_CHARACTERS = 60_000  # of all of them
PDF_SECONDS = 20  # for all of one request
MOST_READING = 2  # requests of a web process whose PDFs are read at once; one of a person
TEXT = frozenset((".txt", ".text", ".md", ".markdown", ".csv", ".json", ".log", ".yaml", ".yml"))
ACCEPTED = (*sorted(TEXT), ".pdf")


class UnreadableFile(Exception):
    """The file cannot be taken; the words say which and why, in the reader's language."""


_reading: set[Any] = set()  # whose PDFs are being read
_lock = threading.Lock()


def as_context(files: Iterable[Any], whose: Any = None) -> str:
    """Each file's name and text. `whose`: the id of the person who hands them over. Raises UnreadableFile."""
    found = list(files)
    if len(found) > MOST_FILES:
        raise UnreadableFile(_("At most {count} files at once.").format(count=MOST_FILES))
    texts = list(_texts(found, whose))
    length = sum(len(text) for _name, text in texts)
    if length > MOST_CHARACTERS:
        told = _("The files have {length} characters together; at most {most} fit. Leave some out.")
        raise UnreadableFile(told.format(length=length, most=MOST_CHARACTERS))
    parts = [f"## File: {name}\n\n{text.strip()}" for name, text in texts]
    return "\n\n".join(parts)[:MAX_CONTEXT]


def _texts(files: list[Any], whose: Any) -> Iterator[tuple[str, str]]:
    if not any(_ending(name_of(file)) == ".pdf" for file in files):
        yield from ((name_of(file), text_of(file, PDF_SECONDS)) for file in files)
        return
    with _turn(whose):
        until = time.monotonic() + PDF_SECONDS
        yield from ((name_of(file), text_of(file, max(until - time.monotonic(), 0.1))) for file in files)


@contextmanager
def _turn(whose: Any) -> Iterator[None]:
    """Reading a PDF holds one of the process's few threads and a processor, so that others would wait."""
    with _lock:
        busy = whose in _reading or len(_reading) >= MOST_READING
        if not busy:
            _reading.add(whose)
    if busy:
        raise UnreadableFile(_("Other PDF files are being read just now: try again in a moment."))
    try:
        yield
    finally:
        with _lock:
            _reading.discard(whose)


def _ending(name: str) -> str:
    return PurePath(name).suffix.lower()


def name_of(file: Any) -> str:
    """The file's name, on one line and without what a name need not have."""
    name = PurePath(str(file.name)).name
    return "".join(c for c in name if c.isprintable())[:100] or "file"


def text_of(file: Any, seconds: float) -> str:
    """The text of one file, a PDF's within so many seconds. Raises UnreadableFile."""
    name = name_of(file)
    ending = _ending(name)
    if ending not in ACCEPTED:
        told = _("{name}: only text, Markdown and PDF can be read.")
        raise UnreadableFile(told.format(name=name))
    if file.size > MOST_BYTES:
        told = _("{name} is larger than {most} MB.")
        raise UnreadableFile(told.format(name=name, most=MOST_BYTES // 1024 // 1024))
    content = file.read()
    text = _of_pdf(name, content, seconds) if ending == ".pdf" else _decoded(name, content)
    if not text.strip():
        raise UnreadableFile(_("{name} has no text in it.").format(name=name))
    return text


def _decoded(name: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile(_("{name} is not text in UTF-8.").format(name=name)) from None
    if "\x00" in text:
        raise UnreadableFile(_("{name} is not text.").format(name=name))
    return text


def _of_pdf(name: str, content: bytes, seconds: float) -> str:
    command = [sys.executable, "-m", "runs.web.pdf_text"]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            input=content,
            capture_output=True,
            timeout=seconds,
            cwd=settings.BASE_DIR,
            env={},  # a reader of strangers' files needs no secrets
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFile(_("{name} takes too long to read.").format(name=name)) from None
    if done.returncode:
        raise UnreadableFile(_("{name} cannot be read as a PDF.").format(name=name))
    return done.stdout.decode("utf-8", "replace").replace("\x00", "")
