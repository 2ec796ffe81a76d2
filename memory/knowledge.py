"""Files as knowledge: a section of Markdown, or a text file, becomes one archival memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from django.db import transaction
from markdown_it import MarkdownIt

from memory import statistics
from memory.models import Memory, MemoryStatus, MemoryType
from memory.write import MOST_CHARACTERS

SUFFIXES = (".md", ".txt")
FILE = "file"  # metadata.source of what was loaded


class UnreadableFile(Exception):
    """A file is not text Deputy can load; the message names it and says why."""


@dataclass
class Loaded:
    """What one load did, in sections."""

    files: int = 0
    added: int = 0
    unchanged: int = 0
    superseded: int = 0  # the section has changed, or is gone from its file
    ids: list[str] = field(default_factory=list)


class Section(NamedTuple):
    file: str
    heading: str  # the way to it: `Handbook > Travel`; empty before the first heading
    content: str

    @property
    def digest(self) -> str:
        return sha256("\n".join(self).encode()).hexdigest()


def load(paths: Iterable[str | Path], organization_id: str, project_id: str | None) -> Loaded:
    """Load files and folders (*.md and *.txt in them) into a project's knowledge, or the organization's.

    All or nothing. Loading again adds nothing twice; a changed section supersedes its older self, one
    that is gone from its file is superseded by none. Raises UnreadableFile.
    """
    sections = {name: _sections(name, path) for name, path in _files(paths)}
    with transaction.atomic():
        statistics.lock(f"memory.load.{organization_id}.{project_id}")
        loaded = Loaded(files=len(sections))
        for name, found in sections.items():
            _load_file(name, found, organization_id, project_id, loaded)
    statistics.merge_all_deltas(
        set(Memory.objects.filter(id__in=loaded.ids[:1]).values_list("scope_key", flat=True))
    )
    return loaded


def _load_file(
    name: str, sections: list[Section], organization_id: str, project_id: str | None, loaded: Loaded
) -> None:
    there = {
        memory.metadata.get("digest"): memory
        for memory in Memory.objects.select_for_update(no_key=True).filter(
            organization_id=organization_id,
            project_id=project_id,
            type=MemoryType.ARCHIVAL,
            status=MemoryStatus.ACTIVE,
            metadata__contains={"source": FILE, "file": name},
        )
    }
    wanted = {section.digest: section for section in sections}
    new = [
        Memory(
            organization_id=organization_id,
            project_id=project_id,
            type=MemoryType.ARCHIVAL,
            content=section.content,
            metadata={"source": FILE, "file": name, "heading": section.heading, "digest": digest},
        )
        for digest, section in wanted.items()
        if digest not in there
    ]
    Memory.objects.bulk_create(new, batch_size=500)
    by_heading = {memory.metadata["heading"]: memory for memory in new}
    for digest, memory in there.items():
        if digest not in wanted:
            memory.status = MemoryStatus.SUPERSEDED
            memory.superseded_by = by_heading.get(memory.metadata["heading"])
            memory.save(update_fields=["status", "superseded_by"])
            loaded.superseded += 1
    loaded.added += len(new)
    loaded.ids += [memory.id for memory in new]
    loaded.unchanged += len(wanted.keys() & there.keys())


def _files(paths: Iterable[str | Path]) -> Iterator[tuple[str, Path]]:
    """The files to load, each with the name it is known by: as given, or relative to the folder given."""
    for given in map(Path, paths):
        if given.is_dir():
            inside = (path for path in given.rglob("*") if path.suffix.lower() in SUFFIXES)
            for path in sorted(path for path in inside if path.is_file()):
                inner = path.relative_to(given)
                if not any(part.startswith(".") for part in inner.parts):
                    yield f"{given.resolve().name}/{inner.as_posix()}", path
        else:
            yield given.name, given


def _sections(name: str, path: Path) -> list[Section]:
    text = _read(path)
    if path.suffix.lower() == ".md":
        found = _markdown_sections(name, text)
    else:
        found = [Section(name, "", text.strip())]
    found = [section for section in found if section.content]
    if too_long := next((section for section in found if len(section.content) > MOST_CHARACTERS), None):
        where = f", section {too_long.heading!r}" if too_long.heading else ""
        raise UnreadableFile(f"{path}{where}: longer than {MOST_CHARACTERS} characters")
    return found


def _read(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnreadableFile(f"{path}: {(error.strerror or 'unreadable').lower()}") from None
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: not UTF-8 text (byte {error.start})") from None
    if "\x00" in text:
        raise UnreadableFile(f"{path}: binary, not text")
    return text


def _markdown_sections(name: str, text: str) -> list[Section]:
    """Each heading with what stands under it, up to the next heading of any level."""
    lines = text.splitlines()
    tokens = MarkdownIt("commonmark").parse(text)
    starts: list[tuple[int, int, str]] = [(0, 0, "")]  # line, level, heading
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            starts.append((token.map[0], int(token.tag[1]), inline.content))
    sections, way = [], list[tuple[int, str]]()
    for (line, level, heading), following in zip(starts, [*starts[1:], (len(lines), 0, "")], strict=True):
        if level:
            way = [*(step for step in way if step[0] < level), (level, heading)]
        content = "\n".join(lines[line : following[0]]).strip()
        if not level or "\n" in content:  # a heading with nothing under it says nothing
            sections.append(Section(name, " > ".join(step[1] for step in way), content))
    return sections
