"""What an MCP server says of a tool: what is usable, and which schemas would harm a worker."""

from functools import partial

import pytest

from policy.checks import argument_problems
from policy.tools import ToolFacts
from runs.tools import facts
from runs.tools.base import Tool
from runs.tools.call import check_arguments
from runs.tools.mcp import definitions

PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}}


def listed(**how):
    return definitions.read({"name": "find", "description": "Finds.", "inputSchema": PLAIN, **how})


def nested(levels):
    """A schema that doubles with each level when its references are followed."""
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {
        "type": "object",
        "$defs": {**defs, f"d{levels}": {}},
        "properties": {"a": {"$ref": "#/$defs/d0"}},
    }


def test_an_ordinary_tool_can_be_used():
    assert listed().problem == ""
    assert listed(inputSchema={"type": "object"}).problem == ""


def test_a_recursive_schema_can_be_used_and_checks():
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert listed(inputSchema=tree).problem == ""
    checker = definitions.checker(tree)
    assert checker.is_valid({"child": {"child": {"n": 1}}})
    assert not checker.is_valid({"child": {"child": {"n": "1"}}})


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"name": "a b"}, "characters"),
        ({"name": ""}, "characters"),
        ({"description": "x" * 10_001}, "description is longer"),
        ({"description": "\x00"}, "cannot be kept"),
        ({"inputSchema": None}, "not that of an object"),
        ({"inputSchema": {"type": "array"}}, "not that of an object"),
        ({"inputSchema": {"type": "object", "title": "x" * 100_001}}, "longer than"),
        ({"inputSchema": {"type": "object", "properties": 3}}, "no JSON Schema"),
        ({"inputSchema": {"properties": {"a": {"$ref": "https://example.org/x"}}}}, "refers to"),
        ({"inputSchema": {"properties": {"a": {"$ref": "#/$defs/none"}}}}, "refers to"),
        ({"inputSchema": nested(40)}, "too large"),
    ],
)
def test_what_cannot_be_used_says_why(how, says):
    assert says in listed(**how).problem


def test_an_outsiders_expressions_are_never_matched():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}
    assert definitions.checker(schema).is_valid({"a": "a" * 60 + "!"})
    patterned = {"type": "object", "patternProperties": {"(a+)+$": {}}, "additionalProperties": False}
    assert definitions.checker(patterned).is_valid({"a" * 60 + "!": 1})
    left = {"type": "object", "patternProperties": {"(a+)+$": {}}, "unevaluatedProperties": False}
    for one in (left, {"allOf": [left], "unevaluatedProperties": False}):
        assert definitions.checker(one).is_valid({"a" * 60 + "!": 1})
    plain = {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}
    assert not definitions.checker(plain).is_valid({"b": 1})
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    assert not definitions.checker(closed).is_valid({"b": 1})


ELSEWHERE = {"$id": "https://example.org/x", "$ref": "#/definitions/foo"}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"type": "object", "$ref": "#"}, {}),
        ({"properties": {"a": ELSEWHERE}, "definitions": {"foo": {}}}, {"a": 1}),
        ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**400}),
    ],
    ids=["loops without end", "refers to what is elsewhere", "divides what is too large"],
)
def test_a_schema_that_cannot_be_applied_is_an_error_of_the_call(schema, arguments):
    tool = Tool("crm.odd", "", schema, len, checker=definitions.checker)
    refused = check_arguments(tool, arguments)
    assert refused is not None and refused.code == "INVALID_ARGUMENTS"
    assert list(facts._check(tool, schema, arguments))


def test_nor_are_they_when_a_standing_approval_is_made():
    """Its arguments are a call's, which a model may have been led to choose."""
    schema = {"properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}
    tool = Tool("crm.odd", "", schema, len, checker=definitions.checker)
    known = ToolFacts(tool.info, schema, check=partial(facts._check, tool))
    assert argument_problems({"a": "a" * 60 + "!"}, known) == []
    assert argument_problems({"a": 1}, known) != []


@pytest.mark.parametrize("part", ["title", "description", "inputSchema", "annotations"])
def test_every_part_a_model_or_policy_reads_is_in_the_digest(part):
    other = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}.get(part, "other")
    assert listed(**{part: other}).digest != listed().digest


def test_what_nobody_reads_is_not_in_the_digest():
    assert listed(_meta={"build": 7}, outputSchema={"type": "object"}).digest == listed().digest


def test_the_difference_shows_old_and_new():
    old, new = listed().definition, listed(description="Pays.").definition
    lines = definitions.difference(old, new).splitlines()
    assert '-  "description": "Finds.",' in lines and '+  "description": "Pays.",' in lines


@pytest.mark.parametrize(
    ("name", "hints", "risk"),
    [
        ("find_note", {}, "low"),
        ("find_note", {"readOnlyHint": True}, "low"),
        ("find_note", {"readOnlyHint": False}, "high"),
        ("find_note", {"destructiveHint": False, "openWorldHint": False}, "low"),
        ("find_and_send_note", {}, "high"),
        ("find_and_send_note", {"readOnlyHint": True}, "high"),
    ],
)
def test_a_tool_that_does_more_than_read_is_of_high_risk(name, hints, risk):
    assert (
        definitions.risk(name, {"annotations": hints, "input_schema": PLAIN, "description": "Finds."}) == risk
    )
