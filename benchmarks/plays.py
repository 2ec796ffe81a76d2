"""What the scripted model says: the same in every run, by what has been said before."""

import time
from collections.abc import Sequence

from django.db import connection

from benchmarks.deputy import ANSWER, ASSISTANT, GOAL
from runs.providers.base import Message, ModelSettings, Reply, ToolRequest, ToolSchema, Usage
from runs.tools.base import ToolContext
from runs.tools.registry import tool

LOOK_UPS = 2
LONG = 100
asked_at: list[float] = []  # when the model of the long play was asked
fetched: list[str] = [""]  # what the tool of the fetching play answers with


class Scripted:
    """Answers with the function of this module that the model's name says."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        results = sum(message.role == "tool" for message in messages)
        return PLAYS[settings.model](settings.facts.get("role") == ASSISTANT, results)


def escalate(is_assistant: bool, results: int) -> Reply:
    """The assistant asks the group, whose expert looks up twice before it concludes."""
    if is_assistant and not results:
        return _call("This is beyond me.", "escalate_to_group", goal=GOAL)
    if not is_assistant and results < LOOK_UPS:
        return _call("Let me look that up.", "look_up")
    return _say(ANSWER)


def ask(is_assistant: bool, results: int) -> Reply:
    """The assistant asks its user, and answers when they have."""
    if not results:
        return _call("One question first.", "ask_user", question="For which region?")
    return _say(ANSWER)


def approve(is_assistant: bool, results: int) -> Reply:
    """The assistant makes a call that a rule stops, and answers when it has been let through."""
    if not results:
        return _call("I need to see the groups.", "list_available_groups")
    return _say(ANSWER)


def long(is_assistant: bool, results: int) -> Reply:
    """LONG look-ups one after the other, each with a word of its own, before the answer."""
    asked_at.append(time.perf_counter())
    if results < LONG:
        return _call("Let me look that up.", "look_up", word=str(results))
    return _say(ANSWER)


def fetch(is_assistant: bool, results: int) -> Reply:
    """One call of a tool that answers with `fetched`."""
    return _say(ANSWER) if results else _call("Let me see.", "fetch_page")


PLAYS = {"escalate": escalate, "ask": ask, "approve": approve, "long": long, "fetch": fetch}


def _say(content: str) -> Reply:
    return Reply(content, usage=Usage(10, 5), model="scripted")


def _call(content: str, name: str, **arguments: str) -> Reply:
    return Reply(content, (ToolRequest(name, arguments),), Usage(10, 5), "scripted")


@tool(description="Look something up.", transactional=True, idempotent=True)
def look_up(run: ToolContext, *, word: str = "") -> dict[str, str]:
    """One row of the database, whatever the word."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM groups_project WHERE id = %s", [run.project_id])
        return {"project": cursor.fetchone()[0]}


@tool(description="Fetch a page.", transactional=True, idempotent=True)
def fetch_page(run: ToolContext) -> str:
    return fetched[0]
