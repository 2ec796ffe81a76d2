"""A guess at a tool's risk, where nobody has said what it is."""

import re
from collections.abc import Mapping
from typing import Any

from policy.terms import Risk

READS = frozenset(
    "get list read search find view fetch show query check look lookup describe calculate compute count "  # noqa: SIM905
    "retrieve browse download summarize think is has verify export compare inspect current".split()
)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def guessed(name: str, parameters: Mapping[str, Any] | None = None) -> Risk:
    """Low for a name that begins with a verb of reading; high for any other.

    What reads an address the caller names can carry something out to it, and is no mere reading.
    """
    words = [word.lower() for word in WORD.findall(name)]
    addressed = any("url" in key.lower() for key in (parameters or {}).get("properties") or {})
    return "low" if words and words[0] in READS and not addressed else "high"
