"""A call's arguments as fields: what is left alone stays exactly as it was."""

import pytest

from runs.deciding import edit

ARGUMENTS = {
    "to": ["ada@example.org", "bo@example.org"],
    "body": "Dear Ada,\r\n\nsix.\n",
    "count": 3,
    "price": 1.5,
    "draft": False,
    "when": None,
    "extra": {"a": [1, 2]},
    "odd": ["two\nlines", ""],
}


def as_sent(arguments, **changes):
    """What a browser sends of the form: every line break as two characters."""
    found = edit.fields(arguments)
    names = {field.label: field.name for field in found}
    sent = {field.name: field.value.replace("\r\n", "\n").replace("\n", "\r\n") for field in found}
    return sent | {names[label]: value for label, value in changes.items()}


def test_each_argument_has_the_field_that_fits():
    kinds = {field.label: field.kind for field in edit.fields(ARGUMENTS)}

    assert kinds == {
        "to": "lines", "body": "text", "count": "number", "price": "number", "draft": "choice",
        "when": "json", "extra": "json", "odd": "json",
    }  # fmt: skip


def test_a_form_sent_as_it_came_changes_nothing():
    assert edit.read(ARGUMENTS, as_sent(ARGUMENTS)) == ARGUMENTS
    assert edit.read(ARGUMENTS, {}) == ARGUMENTS


def test_what_was_changed_keeps_its_kind():
    sent = as_sent(
        ARGUMENTS, to="cy@example.org\r\n\r\n di@example.org ", body="Hi\r\n\r\nyou", count="4", draft="true",
        when='"now"',
    )  # fmt: skip

    found = edit.read(ARGUMENTS, sent)

    assert found["to"] == ["cy@example.org", "di@example.org"]
    assert found["body"] == "Hi\n\nyou"
    assert (found["count"], found["draft"], found["when"]) == (4, True, "now")
    assert (found["price"], found["extra"], found["odd"]) == (1.5, {"a": [1, 2]}, ["two\nlines", ""])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"count": "many"}, "not a value"),
        ({"count": '"4"'}, "takes a number"),
        ({"extra": "{"}, "not a value"),
        ({"extra": '{"to": "ada@example.org", "to": "eve@example.net"}'}, "not a value"),
        ({"extra": '{"a": NaN}'}, "not a value"),
        ({"price": "1e400"}, "not a value"),
    ],
)
def test_what_cannot_be_read_is_said(changes, said):
    with pytest.raises(edit.NotReadable, match=said):
        edit.read(ARGUMENTS, as_sent(ARGUMENTS, **changes))


def test_the_schema_explains_a_field():
    schema = {"properties": {"count": {"description": "How many"}}}

    assert {f.label: f.hint for f in edit.fields({"count": 1, "x": 2}, schema)} == {
        "count": "How many",
        "x": "",
    }
