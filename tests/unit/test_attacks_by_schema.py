"""Ways to hand a tool what no rule was asked about."""

import pytest

from policy.conditions import ConditionError, holds
from runs.tools import checking, schemas
from runs.tools.base import Tool
from runs.tools.mcp import definitions

pydantic = pytest.importorskip("pydantic")


class Payee(pydantic.BaseModel):
    model_config = {"populate_by_name": True}

    account: str = pydantic.Field("own", alias="toAccount")


class Payment(pydantic.BaseModel):
    model_config = {"populate_by_name": True}

    amount: float = pydantic.Field(1, alias="amountEur")
    payee: Payee = pydantic.Field(default_factory=Payee)


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"amountEur": 5, "payee": {"toAccount": "Bob"}}, True),
        ({"amount": 5}, False),  # a rule looks at amountEur
        ({"payee": {"account": "Mallory"}}, False),
    ],
)
def test_a_models_fields_have_one_name(arguments, fits):
    validator = checking.checker(schemas.schema_of_model(Payment))
    assert (checking.errors(validator, arguments) == []) is fits
    assert schemas.called_with_model(lambda run, said: said, Payment)(
        None, **arguments
    )  # it would take either


DIALECT = {"$schema": "http://json-schema.org/draft-07/schema#"}
NESTED = {
    **DIALECT,
    "type": "object",
    "properties": {
        "again": {"$ref": "#"},
        "inner": {**DIALECT, "properties": {"bcc": {}, "$schema": {"type": "string"}}},
        "bcc": {"type": "array"},
        "rows": {"type": "array", "items": {"properties": {"replyTo": {}, "ReplyTo": {}}}},
    },
}


@pytest.mark.parametrize("checker", [checking.checker, definitions.checker])
@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"bcc": [], "rows": [{"replyTo": "a", "ReplyTo": "b"}]}, ""),
        ({"BCC": ["eve@rival.example"]}, "'BCC' is not its 'bcc'"),
        ({"bcc": [], "Bcc": ["eve@rival.example"]}, "'Bcc' is not its 'bcc'"),
        ({"bcc:": ["eve@rival.example"]}, "'bcc:' is not its 'bcc'"),
        ({"again": {"Bcc": ["eve@rival.example"]}}, "'Bcc' is not its 'bcc'"),
        ({"inner": {"$schema": "x", "Bcc": ["eve@rival.example"]}}, "'Bcc' is not its 'bcc'"),
        ({"further": {"of": [{"__proto__": {"bcc": "eve@rival.example"}}]}}, "'__proto__' is no name"),
        ({"rows": [{"replyto": "eve@rival.example"}]}, "'replyto' is not its"),
    ],
)
def test_no_name_is_one_of_the_schemas_in_other_letters(checker, arguments, wrong):
    """Libraries that read JSON for a server take one for the other; a rule about `bcc` speaks of `bcc`."""
    found = [error.message for error in checking.errors(checker(NESTED), arguments)]
    own = [message for message in found if "does not name" not in message]
    assert [wrong in message for message in own] == ([True] if wrong else [])


@pytest.mark.parametrize(
    "arguments",
    [{"further": 1}, {"inner": {"bcc": 1, "more": 1}}, {"rows": [{"more": 1}]}, {"again": {"more": 1}}],
)
def test_a_server_is_sent_nothing_that_its_accepted_schema_does_not_name(arguments):
    """No rule could speak of it. Where the schema says that more may come, more may."""
    assert checking.errors(definitions.checker(NESTED), arguments)
    assert not checking.errors(checking.checker(NESTED), arguments)
    opened = {**NESTED, "additionalProperties": True}
    assert not checking.errors(definitions.checker(opened), {"further": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {
            "properties": {"a": {}},
            "anyOf": [{"properties": {"b": {}}, "required": ["b"]}, {"required": ["a"]}],
        },
        {"$defs": {"both": {"properties": {"a": {}, "b": {}}}}, "$ref": "#/$defs/both"},
        {
            "$defs": {"more": {"type": "object"}},
            "properties": {"a": {}},
            "$ref": "#/$defs/more",
            "additionalProperties": {},
        },
        {"properties": {"a": {}}, "patternProperties": {"^b": {}}},
    ],
)
def test_what_any_part_of_a_schema_names_may_come(schema):
    assert not checking.errors(definitions.checker(schema), {"a": 1, "b": 2})


STATES = {
    "$defs": {
        "Currency": {"type": "string", "default": "USD"},
        "Tree": {"$ref": "#"},
        "Card": {"properties": {"of": {"default": "team"}}},
    },
    "properties": {
        "visibility": {"default": "public"},
        "currency": {"$ref": "#/$defs/Currency"},
        "mode": {"allOf": [{"type": "string"}, {"default": "fast"}]},
        "options": {"default": {}, "properties": {"shared": {"default": True}, "note": {"default": ""}}},
        "by": {"additionalProperties": {"$ref": "#/$defs/Card"}},
        "pair": {"prefixItems": [{"$ref": "#/$defs/Card"}]},
        "either": {"anyOf": [{"$ref": "#/$defs/Card"}, {"type": "null"}]},
        "people": {"items": {"properties": {"role": {"default": "writer"}, "name": {}}}},
        "tree": {"$ref": "#/$defs/Tree", "default": None},
        "force": {"default": False},
        "bcc": {"default": []},
    },
}


def test_what_a_call_leaves_out_is_what_the_schema_states():
    info = Tool("share", "", STATES, len).info
    assert info.with_defaults({"either": {}})["either"] == {"of": "team"}
    assert info.with_defaults({"by": {"a": {}}, "pair": [{}, 1]}) | {"by": {"a": {"of": "team"}}} == (
        info.with_defaults({"by": {"a": {}}, "pair": [{"of": "team"}, 1]})
    )
    assert info.with_defaults({"people": [{"name": "Ann"}, {"role": "reader"}], "visibility": "team"}) == {
        "visibility": "team",
        "currency": "USD",
        "mode": "fast",
        "options": {"shared": True},
        "people": [{"name": "Ann", "role": "writer"}, {"role": "reader"}],
    }
    assert Tool("plain", "", NESTED, len).info.with_defaults is None


def test_a_schema_whose_defaults_are_without_end_lets_nothing_pass():
    """It may be an outsider's. A condition says that it cannot say."""
    endless = {"properties": {name: {"$ref": "#", "default": {}} for name in "abcdefgh"}}
    with pytest.raises(ConditionError, match="too many to be looked at"):
        holds("has(args.z)", {}, with_defaults=Tool("odd", "", endless, len).info.with_defaults)
