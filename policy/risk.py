"""A guess at a tool's risk, where nobody has said what it is."""

from collections.abc import Mapping
from typing import Any

from policy.provenance.infer import infer
from policy.terms import Risk


def guessed(name: str, parameters: Mapping[str, Any] | None = None, description: str = "") -> Risk:
    """Low for a name whose verb reads; high for any other.

    What reads an address the caller names can carry something out to it, and is no mere reading.
    """
    addressed = any("url" in key.lower() for key in (parameters or {}).get("properties") or {})
    return "high" if addressed or infer(name, description, parameters or {}).effect else "low"


def is_known(name: str, parameters: Mapping[str, Any] | None = None) -> bool:
    """Whether the name has a verb that says what the tool does, or an argument names an address."""
    inferred = infer(name, "", parameters or {})
    return bool(inferred.deeds) or inferred.network
