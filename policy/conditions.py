"""Conditions of rules: CEL expressions over a call's arguments.

`amount <= 100 && currency == "EUR"`, or the same through `args.amount`. The engine is cel-cpp: regular
expressions are RE2, nesting and iterations are bounded, and there is no clock to ask. What each iteration
does is not, so that all but what is sure to be quick is evaluated in a process of its own (policy/apart.py).
Nothing else is asked or kept.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from policy import apart, cel_names, meanings, spellings
from policy.cel_text import (
    ARGS_FIELD,
    BARE_TYPE,
    CACHED,
    FACTS,
    IDENTIFIER,
    KEYWORDS,
    SOURCES,
    STRING,
    TYPE_NAMES,
    asks_origin,
    code_of,
    in_brackets,
    with_variables,
)
from policy.cel_words import plain
from policy.provenance.terms import Facts
from policy.strict import DIFFERENT, NO_TEXT, TooDeep, strict
from policy.terms import WithDefaults

MAX_LENGTH = 1000  # characters of one condition
MAX_REPORTED = 10  # problems reported at once

# A field of a record read earlier in the run: `read.get_order.status`, `read["shop.get_order"].status`.
READ = re.compile(r"(?<![\w.])read\s*(?=[.\[])")
RESULTS = "read"

# What is sure to be quick, and up to how many bytes of values: no call but these, or one macro and nothing
# put together. It goes by the whole text, strings included, so that nothing hides in what looks like one.
CALLED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
QUICK = frozenset(
    ("size", "has", "contains", "startsWith", "endsWith", "int", "uint", "double", "string", "bool")
) | frozenset(("timestamp", "duration", "type", "in"))
MACROS = frozenset(("all", "exists", "exists_one"))
QUICK_BYTES = 65_536
MACRO_BYTES = 4096
MOST_SUMS = 8
NO_OPERATION = "No matching overload"
MATCHES = re.compile(r"(?<=\bmatches)\s*\(\s*")
SURROGATE = re.compile("[\ud800-\udfff]")
REPORTED_AT = re.compile(r"<input>:(\d+):(\d+): ([^\n]*)")

# Numbers of different kinds compare at run time; only the checker holds them apart.
COMPARED_NUMBERS = re.compile(
    r"found no matching overload for '(?:_[<>]=?_|_[=!]=_|@in)' applied to "
    r"'\((?:int, double|double, int|int, list\(double\)|double, list\(int\))\)'"
)


class ConditionError(ValueError):
    """The condition cannot be evaluated; the message says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a condition, and where (lines and columns from 1)."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition: what it says, and the names of arguments it may read."""

    program: cel.Expression
    names: tuple[str, ...]
    reads_args: bool
    asks_origin: bool = False
    asks_results: bool = False
    quick_bytes: int = 0  # of values, up to which it is evaluated in this process


def holds(
    text: str,
    arguments: Mapping[str, Any],
    facts: Callable[[], Facts] | None = None,
    allows: bool = False,
    with_defaults: WithDefaults | None = None,
) -> bool:
    """Whether the condition is true of these arguments; ConditionError where it is neither true nor false."""
    return speaks(answers(text, arguments, facts, with_defaults), allows)


def speaks(found: frozenset[bool], allows: bool) -> bool:
    """Whether a rule with a condition of these answers speaks of the call: one that `allows` takes all of
    them to be true, any other one of them.
    """
    return found == {True} if allows else True in found


def answers(
    text: str,
    arguments: Mapping[str, Any],
    facts: Callable[[], Facts] | None = None,
    with_defaults: WithDefaults | None = None,
) -> frozenset[bool]:
    """Whether the condition is true of these arguments, in each way in which it may be meant: `with_defaults`
    in the place of what is left out as well, unless it asks where values come from.

    `facts` is called only by a condition that asks where the values came from. Addresses and hosts
    are compared in one spelling: eve@BANK.example reaches whom eve@bank.example reaches. A whole number is
    one however it is written (5.0): it is asked about both, unless the condition's arithmetic takes one.

    A text that is a link is asked about in the form in which it is asked for as well (policy/links.py).

    The condition may speak of a part of one, in capitals ("Bank.example", "CEO"), and which of its texts do
    nobody can tell. So where there are addresses it is asked once more without regard to capitals; where it
    speaks of "xn--", with hosts as machines write them; and where characters of an address are taken for
    others (wide letters, accents apart, invisible ones), with those; each of these without regard to capitals
    as well.
    """
    condition = compiled(spellings.condition_small(text))
    known = {}
    if condition.asks_origin or condition.asks_results:
        known = _origins(arguments, facts, condition.asks_results)
    stated = [arguments]
    if with_defaults is not None and not condition.asks_origin:
        try:
            filled = with_defaults(arguments)
        except ValueError as failure:
            raise ConditionError(str(failure)) from failure
        stated += cel_names.with_some(text, condition.names, arguments, filled)
    try:
        return frozenset(found for said in stated for found in _about(text, condition, said, known))
    except (apart.Failed, meanings.Unclear) as failure:
        raise ConditionError(str(failure)) from failure
    except RecursionError as failure:
        raise ConditionError("a value is nested too deeply") from failure


def _about(
    text: str, condition: Condition, arguments: Mapping[str, Any], known: Mapping[str, Any]
) -> set[bool]:
    """The answers with numbers in each way in which they may be meant. What the condition's operations do not
    take in one of them, and in another do, its author has not meant.
    """
    found: set[bool] = set()
    failed: Exception | None = None
    for given, beside in meanings.numbers((arguments, known)):
        spelled = spellings.ways(text, condition.names, condition.reads_args, given, beside)
        try:
            found |= {_asked(*one) for one in spelled}
        except (ConditionError, apart.Failed) as failure:
            if NO_OPERATION not in str(failure):
                raise
            failed = failure
    if failed is not None and not found:
        raise failed
    return found


def _asked(text: str, values: Mapping[str, Any]) -> bool:
    quick = compiled(text).quick_bytes
    return here(text, values) if _size(values, quick) <= quick else apart.truth(text, values)


def here(text: str, values: Mapping[str, Any]) -> bool:
    """Whether it is true of the values of its names, in this process. Raises ConditionError."""
    try:
        return _truth(compiled(text).program.eval(data=values))
    except ConditionError:
        raise
    except Exception as failure:  # the engine raises RuntimeError, its value conversion whatever it meets
        raise ConditionError(_reason(failure)) from failure


def _quick_bytes(text: str) -> int:
    """Bytes of values up to which a condition is sure to be quick; -1: it never is."""
    others = [name for name in CALLED.findall(text) if name not in QUICK]
    sums = text.count("+")
    if "//" in text or sums > MOST_SUMS:  # a comment may stand between a name and its bracket
        return -1
    if not others:
        return QUICK_BYTES
    return MACRO_BYTES if len(others) == 1 and others[0] in MACROS and not sums else -1


def _size(value: Any, most: int) -> int:
    """About how many bytes a value has, counted no further than `most`."""
    if isinstance(value, str):
        return len(value)
    found, parts = 8, tuple[Any, ...]()
    if isinstance(value, Mapping):
        found += sum(map(len, map(str, value)))
        parts = tuple(value.values())
    elif isinstance(value, list | tuple):
        parts = tuple(value)
    for part in parts:
        if found > most:
            break
        found += _size(part, most - found)
    return found


def _origins(
    arguments: Mapping[str, Any], facts: Callable[[], Facts] | None, results: bool
) -> dict[str, Any]:
    if facts is None:
        raise ConditionError("nothing says where the values come from")
    found = facts()
    return {
        SOURCES: {name: found.source(name, value) for name, value in arguments.items()},
        "run_read_outside": found.read_outside,
        "call_steering_from_outside": found.steering_from_outside,
        "call_asked_for": found.asked_for,
        "call_carries_confidential": bool(found.carries),
        **({RESULTS: found.results()} if results else {}),
    }


def _truth(answer: cel.Value) -> bool:
    """The answer, if it is one. The value of a null is never fetched: cel-expr-python 0.1.3 returns None
    without taking a reference to it, which ends a Python 3.11 process after some thousand times.
    """
    kind = answer.type()
    if kind == cel.Type.BOOL:
        return bool(answer.value())
    if kind == cel.Type.ERROR:
        raise ConditionError(_reason(answer.value()))
    raise ConditionError(f"it is {kind.name().lower()}, not true or false")


@lru_cache(maxsize=CACHED)
def compiled(text: str) -> Condition:
    """The condition ready to be evaluated, kept for the next time. ConditionError where it does not parse.

    Types are left to run time: one rule may speak of tools with different arguments.
    """
    problems = list(_malformed(text)) or (check(text) if BARE_TYPE.search(code_of(text)) else [])
    if problems:
        raise ConditionError(str(problems[0]))
    try:
        program = _program(text)
    except RuntimeError as failure:
        problem = _problems(failure)[0]
        raise ConditionError(str(replace(problem, message=plain(problem.message)))) from failure
    code = code_of(with_variables(text))
    words = set(IDENTIFIER.findall(code))
    names = tuple(sorted(words - TYPE_NAMES - KEYWORDS - {SOURCES, *FACTS.values()}))
    asks_results = bool(READ.search(code))
    names = tuple(name for name in names if not (asks_results and name == RESULTS))
    return Condition(program, names, "args" in words, code != code_of(text), asks_results, _quick_bytes(text))


def _program(text: str) -> cel.Expression:
    return strict(_untyped(), _untyped().compile(with_variables(text), disable_check=True))


def check(text: str, schema: Mapping[str, Any] | None = None) -> list[Problem]:
    """What is wrong with a condition that is about to be saved; nothing, if it can be used.

    With a tool's JSON Schema, unknown argument names and operations its types do not allow are problems too.
    """
    problems = list(_malformed(text))
    if problems:
        return problems
    for number in (cel.Type.DOUBLE, cel.Type.INT):  # a JSON number arrives as either
        problems += _type_problems(with_variables(text), _variables(with_variables(text), schema, number))
    problems += _unknown_fields(text, schema)
    problems += _bad_patterns(text)
    problems += [] if problems else _too_deep(text)
    first_at = {(problem.line, problem.column): problem for problem in reversed(problems)}
    found = [first_at[place] for place in sorted(first_at)][:MAX_REPORTED]
    names = (schema or {}).get("properties") or {}
    return [replace(problem, message=plain(problem.message, names)) for problem in found]


def _too_deep(text: str) -> Iterator[Problem]:
    try:
        _program(text)
    except TooDeep as failure:
        yield Problem(1, 1, str(failure))


def _malformed(text: str) -> Iterator[Problem]:
    if not text.strip():
        yield Problem(1, 1, "the condition is empty")
    elif len(text) > MAX_LENGTH:
        yield Problem(1, MAX_LENGTH + 1, f"the condition is longer than {MAX_LENGTH} characters")
    elif surrogate := SURROGATE.search(text):
        yield _problem_at(text, surrogate.start(), "a lone surrogate is no character")


def _variables(text: str, schema: Mapping[str, Any] | None, number: cel.Type) -> dict[str, cel.Type]:
    if schema is None:
        names: dict[str, Any] = dict.fromkeys(IDENTIFIER.findall(code_of(text)), None)
    else:
        names = dict(schema.get("properties") or {})
    return {
        name: _type_of(names[name], number)
        for name in names
        if IDENTIFIER.fullmatch(name) and name not in TYPE_NAMES and name not in KEYWORDS
    }


def _type_of(schema: Any, number: cel.Type) -> cel.Type:
    if not isinstance(schema, Mapping):
        return cel.Type.DYN
    kind = schema.get("type")
    if kind == "array":
        return cel.Type.List(_type_of(schema.get("items"), number))
    if kind == "object":
        return cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    if not isinstance(kind, str):
        return cel.Type.DYN
    simple = {"string": cel.Type.STRING, "integer": cel.Type.INT, "boolean": cel.Type.BOOL, "number": number}
    return simple.get(kind, cel.Type.DYN)


def _type_problems(text: str, variables: dict[str, cel.Type]) -> list[Problem]:
    everything = {"args": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)}
    if READ.search(code_of(text)):
        everything[RESULTS] = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    if asks_origin(text):
        everything[SOURCES] = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
        everything |= dict.fromkeys(FACTS.values(), cel.Type.BOOL)
    try:
        kind = cel.NewEnv(variables={**variables, **everything}).compile(text).return_type()
    except RuntimeError as failure:
        return [problem for problem in _problems(failure) if not COMPARED_NUMBERS.match(problem.message)]
    if kind not in (cel.Type.BOOL, cel.Type.DYN):
        return [Problem(1, 1, f"it is {kind.name().lower()}, not true or false")]
    return []


def _unknown_fields(text: str, schema: Mapping[str, Any] | None) -> Iterator[Problem]:
    if schema is None or schema.get("additionalProperties"):
        return
    known = schema.get("properties") or {}
    code = code_of(text)
    for field in ARGS_FIELD.finditer(code):
        if field[1] not in known:
            yield _problem_at(text, field.start(1), _no_argument(field[1], known))
    for literal in in_brackets(text, code):
        if (name := literal[0][1:-1]) not in known:
            yield _problem_at(text, literal.start(), _no_argument(name, known))


def _no_argument(name: str, known: Mapping[str, Any]) -> str:
    near = get_close_matches(name, list(known), 2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"the tool has no argument '{name}'{hint}"


def _bad_patterns(text: str) -> Iterator[Problem]:
    """Regular expressions that are no RE2, found by trying each literal one."""
    for call in MATCHES.finditer(text):
        literal = STRING.match(text, call.end())
        if literal and code_of(text)[call.start()] == "(":
            try:
                _truth(_untyped().compile(f'"".matches({literal[0]})', disable_check=True).eval())
            except (ConditionError, RuntimeError) as failure:
                yield _problem_at(text, literal.start(), _reason(failure))


def _problem_at(text: str, offset: int, message: str) -> Problem:
    line_start = text.rfind("\n", 0, offset) + 1
    return Problem(text.count("\n", 0, offset) + 1, offset - line_start + 1, message)


def _problems(failure: Exception) -> list[Problem]:
    found = [
        Problem(int(line), int(column), _reason(said))
        for line, column, said in REPORTED_AT.findall(str(failure))
    ]
    return found or [Problem(1, 1, _reason(failure))]


def _reason(said: object) -> str:
    for known in (DIFFERENT, NO_TEXT):
        if known in str(said):
            return known
    first_line = str(said).split("\n", 1)[0].replace(" (in container '')", "")
    return re.sub(r"^[A-Z_]+: ", "", first_line)[:300]


@lru_cache(maxsize=1)
def _untyped() -> cel.Env:
    return cel.NewEnv()
