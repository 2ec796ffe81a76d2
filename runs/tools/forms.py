"""Forms: what somebody else's server asks a person in the middle of a call, and what the person answers.

A form is JSON and stands in the event that asks: `server` and `url` (whom the answer goes to), `keys` (of the
server's requests), `fields` ([{key, name, label, schema, required, default?}]) and `token` (what the server
wants back unchanged, or null). The words are the server's: quoted line by line, shortened, without what looks
like a secret. Nothing here reads a database.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError

from common import redact
from common.canonical import NotJson, normalise
from runs.models.choices import FORMS as PREFIX

__all__ = ["DECLINE", "MAX_ROUNDS", "PREFIX", "NoForm", "WrongAnswer", "answered", "form", "question"]

DECLINE = "/decline"  # the answer that gives nothing
MAX_ROUNDS = 5  # questions of one call
MAX_REQUESTS, MAX_FIELDS, MAX_CHOICES = 5, 20, 50
MAX_QUESTION, MAX_MESSAGE, MAX_WORDS, MAX_NAME = 8_000, 2_000, 200, 64  # characters
MAX_TOKEN = 65_536  # bytes
TYPES = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "yes or no"}
KEPT = frozenset({"type", "enum", "minimum", "maximum", "minLength", "maxLength", "format"})
NAME = re.compile(r"[\w.$@ -]*[\w.$@-]")
TRUTHS = dict.fromkeys(("yes", "true", "是"), True) | dict.fromkeys(("no", "false", "否"), False)
WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
FORMATS = FormatChecker()


class NoForm(Exception):
    """What the server asks cannot be put to a person; the words say why."""


class WrongAnswer(Exception):
    """The answer does not fit; the words say what to do."""


# What is asked


def form(
    server: str, url: str, asked: Mapping[str, tuple[str, Mapping[str, Any]]], token: str | None
) -> dict[str, Any]:
    """The form for these requests: by key, each one's message and schema. Raises NoForm."""
    if token is not None and len(token.encode(errors="replace")) > MAX_TOKEN:
        raise NoForm(f"its requestState is larger than {MAX_TOKEN} bytes")
    if any(len(key) > MAX_WORDS for key in asked):
        raise NoForm("the name of a request is too long")
    if not 0 < len(asked) <= MAX_REQUESTS:
        raise NoForm(f"it asks {len(asked)} things at once; 1 to {MAX_REQUESTS} are possible")
    fields = [one for key, (_, schema) in asked.items() for one in _fields(key, schema, len(asked) > 1)]
    if len(fields) > MAX_FIELDS:
        raise NoForm(f"it asks for more than {MAX_FIELDS} fields")
    made = {"server": server, "url": url, "keys": list(asked), "fields": fields, "token": token}
    try:
        return dict(normalise(made))
    except NotJson:
        raise NoForm("it holds characters that cannot be kept") from None


def _fields(key: str, schema: Mapping[str, Any], several: bool) -> list[dict[str, Any]]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type", "object") != "object" or not isinstance(properties, dict):
        raise NoForm("its form is no flat object")
    if not isinstance(required, list) or any(name not in list(properties) for name in required):
        raise NoForm("its form requires fields that it does not have")
    return [
        _field(key, name, f"{key}.{name}" if several else name, said, name in required)
        for name, said in properties.items()
    ]


def _field(key: str, name: str, label: str, said: Any, required: bool) -> dict[str, Any]:
    if len(label) > MAX_NAME or not NAME.fullmatch(label):
        raise NoForm("a field of its form has no plain name")
    if redact.names_secret(name):
        raise NoForm(f"it asks for a secret ('{name}'), and what is answered is kept in the log")
    if not isinstance(said, dict) or said.get("type") not in list(TYPES):
        raise NoForm(f"its field '{name}' is neither text, nor a number, nor yes or no")
    schema = {word: value for word, value in said.items() if word in KEPT}
    titles = said.get("oneOf", [])
    if isinstance(titles, list) and titles:
        schema["enum"] = [one.get("const") for one in titles if isinstance(one, dict)]
    _check(name, schema)
    field = {"key": key, "name": name, "label": label, "schema": schema, "required": required}
    field["about"] = _cut(" - ".join(str(said[word]) for word in ("title", "description") if word in said))
    if "default" in said and _problem(schema, said["default"]) is None:
        field["default"] = said["default"]
    return field


def _check(name: str, schema: dict[str, Any]) -> None:
    choices = schema.get("enum", [])
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        raise NoForm(f"the schema of its field '{name}' is wrong") from None
    if len(choices) > MAX_CHOICES or any(
        not isinstance(one, str | int | float) or len(str(one)) > MAX_WORDS for one in choices
    ):
        raise NoForm(f"the choices of its field '{name}' are too many, or no plain values")


def question(tool: str, made: Mapping[str, Any], messages: list[str], who: str = "") -> str:
    """What the person reads: who asks, the server's words as a quotation, and how to answer. `who` names
    whoever is no MCP server.
    """
    server = made["server"]
    who = who or f"The MCP server '{server}'"
    said = [line for message in messages for line in _cut(message, MAX_MESSAGE, "\n").splitlines()]
    said += [_described(one) for one in made["fields"]]
    quoted = _shortened("\n".join(f"> {line}" for line in said), MAX_QUESTION)
    return (
        f"{who} asks you something before it answers '{tool}'. The lines with > are its "
        f"words, not Deputy's:\n{quoted}\n{_how(made)} Only '{server}' gets your answer, and it approves "
        f"nothing here. {DECLINE} gives it nothing."
    )


def _how(made: Mapping[str, Any]) -> str:
    fields = made["fields"]
    if not fields:
        return "Answer yes to accept."
    if len(fields) == 1:
        return f"Answer with the value of {fields[0]['label']}."
    return "Answer with a line 'field: value' for each field, or with a JSON object."


def _described(field: Mapping[str, Any]) -> str:
    schema = field["schema"]
    kind = TYPES[schema["type"]]
    if "enum" in schema:
        kind = "one of: " + ", ".join(_cut(str(one)) for one in schema["enum"])
    needed = "" if field["required"] else ", optional"
    standard = f", {_cut(str(field['default']))} if left out" if "default" in field else ""
    about = f": {field['about']}" if field["about"] else ""
    return f"- {field['label']} ({kind}{needed}{standard}){about}"


def _cut(words: str, most: int = MAX_WORDS, breaks: str = "") -> str:
    """Somebody else's words, without secrets, control characters and marks that change the direction."""
    lines = "\n".join(words.splitlines())
    plain = "".join(
        one if one in breaks or unicodedata.category(one)[0] != "C" else " " if one == "\n" else ""
        for one in redact.shown(lines)
    )
    return _shortened(plain, most)


def _shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


# What is answered


def answered(made: Mapping[str, Any], content: str) -> dict[str, Any]:
    """MCP's `inputResponses` for what the person wrote. Raises WrongAnswer."""
    if content.strip().casefold() == DECLINE:
        return {key: {"action": "decline"} for key in made["keys"]}
    responses: dict[str, Any] = {key: {"action": "accept", "content": {}} for key in made["keys"]}
    said = _said(made["fields"], content)
    for field in made["fields"]:
        value = _value(field, said.get(field["label"]))
        if value is not None:
            responses[field["key"]]["content"][field["name"]] = value
    try:
        return dict(normalise(responses))
    except NotJson as error:
        raise WrongAnswer(f"The answer cannot be kept: {error}.") from None


def suggested(made: Mapping[str, Any]) -> list[str]:
    """The answers that the server itself has put into the form: to choose from, or as they stand."""
    choices = [one for field in made["fields"] for one in field["schema"].get("enum", [])]
    return [
        str(one) for one in (*choices, *(field["default"] for field in made["fields"] if "default" in field))
    ]


def values(made: Mapping[str, Any], content: str) -> list[str]:
    """What the words say for the form's fields, where they are an answer to it."""
    try:
        return [str(said) for said in _said(made["fields"], content).values()] if made["fields"] else []
    except WrongAnswer:
        return []


def _said(fields: list[dict[str, Any]], content: str) -> dict[str, Any]:
    """By field, what was written: an object, the only field's value, or a line for each."""
    labels = [field["label"] for field in fields]
    if not fields:
        if TRUTHS.get(content.strip().casefold()) is not True:
            raise WrongAnswer(f"Answer yes to accept, or {DECLINE}.")
        return {}
    found = _object(content)
    if found is None or (len(fields) == 1 and set(found) != set(labels)):
        found = {labels[0]: content} if len(fields) == 1 else _lines(content, labels)
    unknown = sorted(set(found) - set(labels))
    if unknown:
        raise WrongAnswer(f"There is no field '{unknown[0][:MAX_NAME]}'; there are: {', '.join(labels)}.")
    return found


def _object(content: str) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _lines(content: str, labels: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in filter(str.strip, content.splitlines()):
        label, colon, value = line.partition(":")
        if not colon or label.strip() in found:
            raise WrongAnswer(
                f"Write each field once, in a line 'field: value', or a JSON object: {', '.join(labels)}."
            )
        found[label.strip()] = value.strip()
    return found


def _value(field: Mapping[str, Any], said: Any) -> Any:
    """The field's value; None where it is left out."""
    schema, label = field["schema"], field["label"]
    if said is None or (isinstance(said, str) and not said.strip()):
        if field["required"] and "default" not in field:
            raise WrongAnswer(f"{label} is missing.")
        return field.get("default")
    value = _read(schema["type"], said) if isinstance(said, str) else said
    problem = _problem(schema, value)
    if problem:
        raise WrongAnswer(f"{label} does not fit: {problem[:MAX_WORDS]}.")
    return value


def _read(kind: str, said: str) -> Any:
    """What a person wrote, as the type that is wanted; as it is where it cannot be read so."""
    plain = said.strip()
    if kind == "boolean":
        return TRUTHS.get(plain.casefold(), said)
    if kind == "integer" and WHOLE.fullmatch(plain):
        return int(plain)
    if kind == "number":
        try:
            return int(plain) if WHOLE.fullmatch(plain) else float(plain)
        except ValueError:
            return said
    return said


def _problem(schema: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with a value."""
    found = next(Draft202012Validator(schema, format_checker=FORMATS).iter_errors(value), None)
    return found.message if found else None
