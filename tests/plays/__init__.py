"""What the agents of a cluster under test say; `scripted:tests.plays.deep` names one.

A play sees nothing but its prompt, so that it answers the same whichever process asks, and again
after a crash.
"""

from collections.abc import Sequence
from typing import Any

from runs.providers.base import Message, Reply
from tests.scripted import call, say


def results(messages: Sequence[Message]) -> list[str]:
    """What the tools have answered so far."""
    return [message.content for message in messages if message.role == "tool"]


def once(messages: Sequence[Message], request: tuple[str, dict[str, Any]], closing: str) -> Reply:
    """One call, then the closing words."""
    return say(closing) if results(messages) else call(request)


def deep(messages: Sequence[Message], facts: dict[str, Any]) -> Reply:
    """Escalates as long as a level is left; `goal` is the number of levels below."""
    left = int(facts["goal"])
    if left == 0:
        return say("DECISION: the bottom")
    request = (
        "escalate_to_group",
        {"goal": str(left - 1), "group_id": facts["context"], "context": facts["context"]},
    )
    return once(messages, request, f"DECISION: {left}")


def effectful(messages: Sequence[Message], facts: dict[str, Any]) -> Reply:
    """The personal agent escalates once; the group's members each have an effect, in turn."""
    if facts["kind"] == "personal":
        request = ("escalate_to_group", {"goal": facts["goal"], "group_id": facts["context"]})
        return once(messages, request, "All done.")
    return once(messages, ("keyed_effect", {"name": facts["role"]}), "DECISION: effect done.")


def alone(messages: Sequence[Message], facts: dict[str, Any]) -> Reply:
    """The personal agent calls the tool its goal names and says so."""
    return once(messages, (facts["goal"], {"name": "it"}), "Done alone.")


def brief(messages: Sequence[Message], facts: dict[str, Any]) -> Reply:
    """One reply."""
    return say("Yes.")


def sleepy(messages: Sequence[Message], facts: dict[str, Any]) -> Reply:
    """Calls a tool that takes as many seconds as the goal says."""
    return once(messages, ("nap", {"seconds": float(facts["goal"])}), "Slept well.")
