"""Where all values are of the types that a condition compares, nothing is other than the engine says."""

import random

import pytest
from cel_expr_python import cel

from policy.strict import strict

TEXTS = [
    '"a"',
    "args.text",
    "text",
    'args["text"]',
    "args.inner.text",
    '"é\\n{}[]"',
    "'_==_'",
    '"\\x12\\x04_==_"',
]
NUMBERS = ["1", "2.5", "3u", "args.number", "number", "size(args.list)"]
LISTS = ['["a"]', "args.list", "list_of", '[args.text, "a"]']
TRUTHS = ["true", "args.truth", "truth"]


def condition(draw: random.Random, depth: int) -> str:
    def pair(of: list[str], between: str) -> str:
        return f"{draw.choice(of)} {between} {draw.choice(of)}"

    def inner() -> str:
        return f"({condition(draw, depth - 1)})"

    simple = [
        lambda: pair(TEXTS, draw.choice(["==", "!="])),
        lambda: pair(NUMBERS, draw.choice(["==", "!="])),
        lambda: pair(LISTS, "=="),
        lambda: pair(TRUTHS, "=="),
        lambda: f"{draw.choice(TEXTS)} in {draw.choice(LISTS)}",
        lambda: f"{draw.choice(LISTS)}.{draw.choice(['exists', 'all'])}(x, x == {draw.choice(TEXTS)})",
    ]
    composed = [
        lambda: f"({inner()} {draw.choice(['&&', '||', '=='])} {inner()})",
        lambda: f"!({inner()})",
        lambda: f"({inner()} ? {inner()} : {inner()})",
    ]
    return draw.choice(simple + composed * bool(depth))()


def values(draw: random.Random) -> dict[str, object]:
    of = {
        "text": draw.choice(["a", "b@x", ""]),
        "number": draw.choice([0, 1, 2.5, 3]),
        "list": draw.choice([[], ["a"], ["b@x", "a"]]),
        "truth": draw.choice([True, False]),
        "inner": {"text": "a"},
    }
    return {**of, "list_of": of["list"], "args": of}


@pytest.mark.parametrize("seed", range(6))
def test_a_condition_over_values_of_its_types_says_what_it_said(seed: int) -> None:
    draw, engine, compared = random.Random(seed), cel.NewEnv(), 0
    while compared < 500:
        program = engine.compile(text := condition(draw, 3), disable_check=True)
        rewritten, said = strict(engine, program), values(draw)
        before, after = program.eval(data=said), rewritten.eval(data=said)
        assert before.type() == after.type() == cel.Type.BOOL, text
        assert before.value() == after.value(), (text, said)
        compared += 1
