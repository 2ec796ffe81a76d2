"""What is wrong with a rule, a binding or a grant that is about to be saved. Pure: values in, words out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policy import conditions
from policy.evaluate import bind
from policy.terms import Binding
from policy.tools import ToolFacts

Tools = Mapping[str, ToolFacts]

MOST_TOLD = 5  # problems of one field
PATTERN = re.compile(r"[A-Za-z0-9_.:*/-]+")
TESTED = re.compile(r"\bhas\s*\(\s*args\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)\s*\)")


def concerned(
    tools: Tools, bindings: Sequence[Binding], tool: str, capability: str | None
) -> list[ToolFacts]:
    """The tools a rule speaks of: the one it names, or every one that has its capability."""
    if tool:
        return [tools[tool]] if tool in tools else []
    return [facts for facts in tools.values() if capability in bind(facts.info, bindings).capabilities]


def condition_problems(text: str, about: Sequence[ToolFacts]) -> list[str]:
    """Line, column and what is wrong, for each tool the condition will be asked about.

    Of several tools some may lack an argument: there the condition has to ask `has(args.name)` first.
    """
    if not about:
        return [str(problem) for problem in conditions.check(text)]
    found: dict[str, list[str]] = {}
    for facts in about:
        for problem in conditions.check(text, _with_tested(text, facts, about)):
            found.setdefault(str(problem), []).append(facts.name)
    said = [
        words if len(names) == len(about) else f"{words} (for {', '.join(names)})"
        for words, names in found.items()
    ]
    return said[:MOST_TOLD]


def _with_tested(text: str, facts: ToolFacts, about: Sequence[ToolFacts]) -> Mapping[str, Any]:
    """The tool's schema, and the arguments of the other tools whose presence the condition tests."""
    tested = set(TESTED.findall(text))
    properties: dict[str, Any] = {}
    for other in about:
        theirs = other.parameters.get("properties") or {}
        properties |= {name: theirs[name] for name in theirs if name in tested}
    properties |= facts.parameters.get("properties") or {}
    return {**facts.parameters, "properties": properties}


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a binding's pattern; None where it can be used."""
    if not PATTERN.fullmatch(pattern):
        return "A pattern is a tool's name: letters, digits and _ . : / -, where * stands for any characters."
    return None


def argument_problems(arguments: Any, facts: ToolFacts) -> list[str]:
    """What keeps a grant's pattern of arguments from ever covering a call of the tool."""
    if not isinstance(arguments, Mapping):
        return ["The arguments are an object: {name: the value it must have}."]
    return list(_argument_problems(arguments, facts))[:MOST_TOLD]


def _argument_problems(arguments: Mapping[str, Any], facts: ToolFacts) -> Iterator[str]:
    known = facts.parameters.get("properties") or {}
    if facts.parameters.get("additionalProperties", True) is False:
        yield from (
            f"The tool {facts.name} has no argument '{name}'." for name in arguments if name not in known
        )
    shape = {part: facts.parameters[part] for part in ("$defs", "definitions") if part in facts.parameters}
    for error in facts.check({**shape, "properties": known}, arguments):
        yield f"/{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
