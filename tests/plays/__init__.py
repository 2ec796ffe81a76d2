"""What the agents of a cluster under test say: the model `scripted:tests.plays.by_goal`.

A goal is the name of a play and what the play is told, `deep 3`. A play sees nothing but its prompt, so
that it answers the same whichever process asks, and again after a crash.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runs.providers.base import Message, ProviderError, Reply
from tests.scripted import call, say


def by_goal(messages: Sequence[Message], facts: dict[str, Any]) -> Reply | ProviderError:
    name, _, told = facts["goal"].partition(" ")
    return PLAYS[name](told, answers(messages), facts)


def answers(messages: Sequence[Message]) -> list[str]:
    """What the speaker's tools have answered so far."""
    return [message.content for message in messages if message.role == "tool"]


def escalate(goal: str, facts: dict[str, Any]) -> Reply:
    """The context is the group's id, all the way down."""
    return call(
        ("escalate_to_group", {"goal": goal, "group_id": facts["context"], "context": facts["context"]})
    )


def deep(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """Escalates as many levels as it is told, and says which level it was. In a group the lead does."""
    if answered or told == "0" or (facts["kind"] == "group" and not facts["is_lead"]):
        return say(f"DECISION: {told}")
    return escalate(f"deep {int(told) - 1}", facts)


def team(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """The personal agent escalates; each member of the group has its effect, with the tool it is told."""
    if answered:
        return say("DECISION: done.")
    return (
        escalate(facts["goal"], facts)
        if facts["kind"] == "personal"
        else call((told, {"name": facts["role"]}))
    )


LETTER = {"to": ["everybody@example.com"], "subject": "Atlas 2.0", "body": "It moves to Friday."}


def letter(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """As many levels down as it is told, the member that speaks first sends a letter; leads pass on."""
    if answered:
        return say("DECISION: sent.")
    if told == "0":
        return say("DECISION: sent.") if facts["is_lead"] else call(("send_email", LETTER))
    if facts["kind"] == "group" and not facts["is_lead"]:
        return say("The lead knows whom to ask.")
    return escalate(f"letter {int(told) - 1}", facts)


def alone(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """Calls the tool it is told, once."""
    return say("Done alone.") if answered else call((told, {"name": "it"}))


def marked(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """An effect at every level, as many levels down as it is told. In a group the lead works."""
    if facts["kind"] == "group" and not facts["is_lead"]:
        return say("The lead works.")
    if not answered:
        return call(("keyed_effect", {"name": f"level {told}"}))
    if len(answered) == 1 and told != "0":
        return escalate(f"marked {int(told) - 1}", facts)
    return say("DECISION: marked.")


def asking(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """Asks a person, and says what the answer was."""
    return say(f"It was {answered[-1]}") if answered else call(("ask_user", {"question": "Which year?"}))


def relay(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """Has the group that its context names work on what it is told, and says what came of it."""
    if answered:
        return say(answered[-1])
    return call(("escalate_to_group", {"goal": told, "group_id": facts["context"]}))


def later(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """Asks a person, and has the effect it is told once they have answered."""
    if not answered:
        return call(("ask_user", {"question": "Shall I?"}))
    return call((told, {"name": "later"})) if len(answered) == 1 else say("Done later.")


def poisoned(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """The personal agent escalates; whoever speaks first in the group takes its worker down, each time."""
    if answered:
        return say(f"DECISION: {answered[-1]}")
    return escalate("poisoned", facts) if facts["kind"] == "personal" else call(("poison", {}))


def nap(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """Calls a tool that takes as many seconds as it is told."""
    return say("Slept well.") if answered else call(("nap", {"seconds": float(told)}))


def naps(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """Half a second, as many times as it is told."""
    return (
        say("Slept well.")
        if len(answered) == int(told)
        else call(("nap", {"seconds": 0.5 + len(answered) / 1000}))
    )


def flaky(told: str, answered: list[str], facts: dict[str, Any]) -> Reply | ProviderError:
    """Fails the first time, asking to come again in 1.5 s; the file it is told remembers that."""
    if Path(told).exists():
        return say("Better now.")
    Path(told).touch()
    return ProviderError("MODEL_UNAVAILABLE", "Away.", retryable=True, retry_after=1.5)


def brief(told: str, answered: list[str], facts: dict[str, Any]) -> Reply:
    """One reply."""
    return say("Yes.")


PLAYS = {
    play.__name__: play
    for play in (deep, team, letter, alone, marked, asking, relay, later, poisoned, nap, naps, flaky, brief)
}
