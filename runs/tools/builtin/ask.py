"""Ask the person."""

from typing import Annotated

from policy.provenance.infer import Declaration
from runs.tools.base import ToolContext, ToolError, WaitFor
from runs.tools.registry import tool

MOST_CHOICES = 10
LONGEST_CHOICE = 200  # characters


@tool(
    description="Ask the user a question and wait for the answer. Use it when you cannot go on without it.",
    risk_level="low",
    mutating=False,
    supports_parallel=True,
    transactional=True,
    declared=Declaration(
        output_trust="user", content=frozenset({"question", "choices"}), effect=False, origin="declared"
    ),
)
def ask_user(
    run: ToolContext,
    *,
    question: Annotated[str, "In the user's language"],
    choices: Annotated[
        list[str] | None,
        "Optional. Short answers to choose from; the user may answer something else.",
        {"maxItems": MOST_CHOICES},
    ] = None,
) -> WaitFor:
    """Wait for a message."""
    if not question.strip():
        raise ToolError("The question is empty.", "QUESTION_EMPTY")
    offered = tuple(dict.fromkeys(filter(None, (choice.strip() for choice in choices or []))))
    if any(len(choice) > LONGEST_CHOICE for choice in offered):
        raise ToolError(f"A choice has at most {LONGEST_CHOICE} characters.", "CHOICE_TOO_LONG")
    return WaitFor("input", question.strip(), choices=offered)
