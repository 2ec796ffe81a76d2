"""Files that a person hands to their agent, as text: text from outside, as a page of the web is."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from runs.actions.start import MAX_CONTEXT

MOST_FILES = 5
MOST_BYTES = 5 * 1024 * 1024  # of one file
MOST_CHARACTERS = 60_000  # of all of them
PDF_SECONDS = 20
TEXT = frozenset((".txt", ".text", ".md", ".markdown", ".csv", ".json", ".log", ".yaml", ".yml"))
ACCEPTED = (*sorted(TEXT), ".pdf")


class UnreadableFile(Exception):
    """The file cannot be taken; the words say which and why, in the reader's language."""


def as_context(files: Iterable[Any], said: str = "") -> str:
    """What the person said of the goal, then each file's name and text. Raises UnreadableFile."""
    found = list(files)
    if len(found) > MOST_FILES:
        raise UnreadableFile(_("At most {count} files at once.").format(count=MOST_FILES))
    texts = [(name_of(file), text_of(file)) for file in found]
    length = sum(len(text) for _name, text in texts)
    if length > MOST_CHARACTERS:
        told = _("The files have {length} characters together; at most {most} fit. Leave some out.")
        raise UnreadableFile(told.format(length=length, most=MOST_CHARACTERS))
    parts = [said.strip(), *(f"## File: {name}\n\n{text.strip()}" for name, text in texts)]
    return "\n\n".join(filter(None, parts))[:MAX_CONTEXT]


def name_of(file: Any) -> str:
    """The file's name, on one line and without what a name need not have."""
    name = PurePath(str(file.name)).name
    return "".join(c for c in name if c.isprintable())[:100] or "file"


def text_of(file: Any) -> str:
    """The text of one file. Raises UnreadableFile."""
    name = name_of(file)
    ending = PurePath(name).suffix.lower()
    if ending not in ACCEPTED:
        told = _("{name}: only text, Markdown and PDF can be read.")
        raise UnreadableFile(told.format(name=name))
    if file.size > MOST_BYTES:
        told = _("{name} is larger than {most} MB.")
        raise UnreadableFile(told.format(name=name, most=MOST_BYTES // 1024 // 1024))
    content = file.read()
    text = _of_pdf(name, content) if ending == ".pdf" else _decoded(name, content)
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


def _of_pdf(name: str, content: bytes) -> str:
    command = [sys.executable, "-m", "runs.web.pdf_text"]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            input=content,
            capture_output=True,
            timeout=PDF_SECONDS,
            cwd=settings.BASE_DIR,
            env={},  # a reader of strangers' files needs no secrets
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFile(_("{name} takes too long to read.").format(name=name)) from None
    if done.returncode:
        raise UnreadableFile(_("{name} cannot be read as a PDF.").format(name=name))
    return done.stdout.decode("utf-8", "replace").replace("\x00", "")
