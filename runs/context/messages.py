"""What kind of message an agent's words are, read from how they begin."""

import re

from runs.log.state import Member
from runs.models.choices import MessageType

TAG = re.compile(r"^\s*\**(TASK|PROPOSAL|EVIDENCE|DECISION|STATUS)\**\s*[:：]", re.IGNORECASE)
# One run of blanks and marks before the word: of three in a row, each length of each would be tried.
SECTION = re.compile(r"[-*\s]*(DECISION|EVIDENCE|TODO|EVIDENCES|TODOS)\**\s*[:：]\s*(.*)$", re.IGNORECASE)


def message_type(content: str, speaker: Member, is_group: bool, has_calls: bool) -> str:
    """The type an agent's message carries: its tag, or what such a speaker's plain words are."""
    tagged = TAG.match(content)
    if tagged:
        return MessageType(tagged.group(1).upper()).value
    if has_calls or not is_group:
        return MessageType.STATUS.value
    return (MessageType.DECISION if speaker.is_lead else MessageType.EVIDENCE).value


def sections(content: str) -> dict[str, list[str]]:
    """A closing message as {"DECISION": […], "EVIDENCE": […], "TODO": […]}.

    A line that begins with one of these words opens an entry, further lines belong to it; text
    before any of them is part of no entry.
    """
    found: dict[str, list[str]] = {"DECISION": [], "EVIDENCE": [], "TODO": []}
    current: list[str] | None = None
    for line in content.splitlines():
        opened = SECTION.match(line)
        if opened:
            current = found[opened.group(1).upper()]
            current.append(opened.group(2))
        elif current is not None:
            current[-1] = f"{current[-1]}\n{line}"
    return {kind: [entry.strip() for entry in entries if entry.strip()] for kind, entries in found.items()}
