"""What an MCP server says a tool is: read strictly, compared by digest, trusted only where it tightens."""

import difflib
import json
import re
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, SchemaError, validators
from jsonschema.protocols import Validator
from referencing import Registry

from common.canonical import NotJson, canonical, digest, normalise
from policy.risk import guessed, is_known
from runs.tools import checking, schemas

NAME = re.compile(r"[A-Za-z0-9_.\-/]{1,128}", re.ASCII)
MAX_NAME = 128  # characters
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MAX_DESCRIPTION = 10_000  # characters
MAX_SCHEMA = 100_000  # characters of its canonical JSON
MAX_NODES = 20_000  # of a schema with its references written out
MAX_RESOURCES = 500  # and templates, of one server
READ_RESOURCE = "read_resource"  # the tool that reads them
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True)
class Listed:
    """A tool as a server listed it. `problem` says why it cannot be used; empty where it can."""

    name: str
    definition: dict[str, Any]
    digest: str
    problem: str = ""


def read(tool: dict[str, Any]) -> Listed:
    """One entry of a server's list, as JSON."""
    listed = str(tool.get("name", ""))
    name = _storable(listed)
    annotations = tool.get("annotations") or {}
    found = {
        "title": str(tool.get("title") or annotations.get("title") or ""),
        "description": str(tool.get("description") or ""),
        "input_schema": tool.get("inputSchema"),
        "annotations": {hint: annotations[hint] for hint in HINTS if isinstance(annotations.get(hint), bool)},
    }
    try:
        found = normalise(found)
    except (NotJson, RecursionError) as error:
        return Listed(name, {}, digest(name), f"It cannot be kept: {error}")
    return Listed(name, found, digest(canonical(found)), problem_of(listed, found))


def _storable(name: str) -> str:
    """The name, if the database can keep it, or else what no usable tool is called: a list is kept whatever
    names stand in it, so that what has changed in the rest of it is seen.
    """
    plain = UNSTORABLE.sub("\ufffd", name)
    return plain if len(plain) <= MAX_NAME else f"{plain[: MAX_NAME - 1]}…"


def of_resources(resources: list[dict[str, Any]], templates: list[dict[str, Any]]) -> Listed | None:
    """The tool that reads a server's resources, with what it lists of them, as JSON; None where it has none.

    Accepting the tool accepts these addresses and descriptions; no other address is read.
    """
    found = {
        "title": "",
        "description": "Read a resource of this server as text. Without uri, list the resources it has.",
        "input_schema": {
            "type": "object",
            "properties": {"uri": {"type": "string", "maxLength": 2000, "description": "As it is listed."}},
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True},
        "resources": _about("uri", resources),
        "templates": _about("uriTemplate", templates),
    }
    if not resources and not templates:
        return None
    try:
        found = normalise(found)
    except (NotJson, RecursionError) as error:
        return Listed(READ_RESOURCE, {}, digest(READ_RESOURCE), f"It cannot be kept: {error}")
    problem = ""
    if len(resources) + len(templates) > MAX_RESOURCES:
        problem = f"The server lists more than {MAX_RESOURCES} resources."
    elif len(canonical(found)) > MAX_SCHEMA:
        problem = f"What the server lists of its resources is longer than {MAX_SCHEMA} characters."
    return Listed(READ_RESOURCE, found, digest(canonical(found)), problem)


def _about(key: str, listed: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What agents are told of each, in an order that is always the same."""
    named = ((key, "uri"), ("name", "name"), ("title", "title"), ("description", "description"))
    found = [
        {name: str(one[word]) for word, name in (*named, ("mimeType", "mime_type")) if one.get(word)}
        for one in listed
        if one.get(key)
    ]
    return sorted(found, key=canonical)


def reads_resources(definition: dict[str, Any]) -> bool:
    """Whether this is the tool that reads a server's resources; no server can say so of one of its own."""
    return "resources" in definition


def may_read(definition: dict[str, Any], uri: str) -> bool:
    """Whether the address is one that was accepted, or fits a template that was."""
    if any(one["uri"] == uri for one in definition["resources"]):
        return True
    return any(_fits(one["uri"], uri) for one in definition["templates"])


def _fits(template: str, uri: str) -> bool:
    from mcp.shared.path_security import contains_path_traversal
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        found = UriTemplate.parse(template).match(uri)
    except InvalidUriTemplate:
        return False
    values = [
        each for value in (found or {}).values() for each in ([value] if isinstance(value, str) else value)
    ]
    return found is not None and not any(map(contains_path_traversal, values))


def problem_of(name: str, definition: dict[str, Any]) -> str:
    """Why the tool cannot be used; empty where it can."""
    if not NAME.fullmatch(name):
        return "Its name has characters that calls cannot carry."
    if len(definition["description"]) > MAX_DESCRIPTION:
        return f"Its description is longer than {MAX_DESCRIPTION} characters."
    schema = definition["input_schema"]
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "Its input schema is not that of an object."
    if len(canonical(schema)) > MAX_SCHEMA:
        return f"Its input schema is longer than {MAX_SCHEMA} characters."
    return schema_problem(schema)


def schema_problem(schema: dict[str, Any]) -> str:
    """What keeps a schema from being used: it is none, points elsewhere, or would take too long."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"Its input schema is no JSON Schema: {error.message[:200]}"
    try:
        if size(schema, schema, ()) > MAX_NODES:
            return "Its input schema is too large once its references are written out."
    except LookupError as error:
        return f"Its input schema refers to {error.args[0][:80]!r}, which is not in it."
    return ""


def size(node: Any, root: Any, within: tuple[str, ...]) -> int:
    """The nodes of a schema with every reference written out once on each path; stops at MAX_NODES.

    Raises LookupError for a reference that leads out of the schema.
    """
    total = 1
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        total += size(child, root, within)
        if total > MAX_NODES:
            return total
    for reference in references(node):
        if reference not in within:
            total += size(schemas.target(root, reference), root, (*within, reference))
    return total


def references(node: Any) -> list[str]:
    if not isinstance(node, dict):
        return []
    return [node[key] for key in ("$ref", "$dynamicRef") if isinstance(node.get(key), str)]


MOST_TOLD = 3  # names that no schema has
OPEN = frozenset(("additionalProperties", "unevaluatedProperties"))
SEVERAL, BESIDE = ("allOf", "anyOf", "oneOf"), ("if", "then", "else")


def _skip(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    """An outsider's regular expressions could keep a worker busy for ever: their server checks them."""


def _additional(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    """As usual, but where patterns that are skipped decide what is additional."""
    if "patternProperties" in schema:
        return ()
    return Draft202012Validator.VALIDATORS["additionalProperties"](validator, value, instance, schema)


def _unnamed(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    """As usual, in words."""
    usual = Draft202012Validator.VALIDATORS["unevaluatedProperties"]
    for error in usual(validator, value, instance, schema):
        names = sorted(set(instance) - set(schema.get("properties") or ()))[:MOST_TOLD]
        error.message = (
            f"its schema does not name {', '.join(map(repr, names))}" if value is False else error.message
        )
        yield error


_Lenient: Any = checking.extended(
    {
        "unevaluatedProperties": _unnamed,
        "pattern": _skip,
        "patternProperties": _skip,
        "additionalProperties": _additional,
        "format": _skip,
    }
)
# To find out what is left unevaluated, the patterns of the whole schema would be matched.
_Patterned: Any = validators.extend(_Lenient, {"unevaluatedProperties": _skip})


def checker(schema: dict[str, Any]) -> Validator:
    """Checks arguments against an outsider's schema: fetches nothing, matches no expression of theirs."""
    kind = _Patterned if _has_patterns(schema) else _Lenient
    plain = checking.of_one_dialect(schema)
    made: Validator = kind(closed(plain, plain), registry=Registry())
    return made


def closed(node: Any, root: Any) -> Any:
    """The schema of a value with all that its objects may hold named, where it names anything of it and does
    not say that more may come: what nobody has accepted, and no rule may speak of, does not leave.
    """
    if not isinstance(node, dict):
        return node
    made = dict(node)
    if isinstance(node.get("properties"), dict):
        made["properties"] = {name: closed(part, root) for name, part in node["properties"].items()}
    if isinstance(node.get("items"), dict):
        made["items"] = closed(node["items"], root)
    if OPEN.isdisjoint(node) and _names_parts(node, root, ()):
        made["unevaluatedProperties"] = False
    return made


def _names_parts(node: Any, root: Any, within: tuple[str, ...]) -> bool:
    """Whether a schema, or one that holds for the same value, names properties."""
    if not isinstance(node, dict):
        return False
    if isinstance(node.get("properties"), dict):
        return True
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in within:
        try:
            if _names_parts(schemas.target(root, reference), root, (*within, reference)):
                return True
        except LookupError:
            pass
    parts = [part for name in SEVERAL for part in node.get(name) or () if isinstance(node[name], list)]
    return any(_names_parts(part, root, within) for part in (*parts, *(node.get(name) for name in BESIDE)))


def _has_patterns(node: Any) -> bool:
    """Whether properties are told by patterns anywhere in the schema."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (isinstance(node, dict) and "patternProperties" in node) or any(map(_has_patterns, children))


# What the hints are worth: they tighten, and speak where no verb does


def risk(name: str, definition: dict[str, Any]) -> str:
    """High where the tool says that it destroys, reaches out or does more than read; else what its name and
    schema suggest.

    Where its verb is not known, its own word that it only reads is taken.
    """
    hints = definition["annotations"]
    if reads_resources(definition):
        return "low"
    if hints.get("destructiveHint") or hints.get("openWorldHint") or hints.get("readOnlyHint") is False:
        return "high"
    if hints.get("readOnlyHint") and not is_known(name, definition["input_schema"]):
        return "low"
    return str(guessed(name, definition["input_schema"]))


def mutating(name: str, definition: dict[str, Any]) -> bool:
    """Only what says that it reads, and looks like it, is taken to change nothing."""
    return not definition["annotations"].get("readOnlyHint") or risk(name, definition) == "high"


def idempotent(definition: dict[str, Any]) -> bool:
    """Whether it may be called again after a crash, with the same key."""
    return definition["annotations"].get("idempotentHint") is True


def difference(accepted: dict[str, Any] | None, listed: dict[str, Any]) -> str:
    """What would change by accepting it: a unified diff of the two definitions, line by line."""
    old, new = (written(each) if each else [] for each in (accepted, listed))
    return "\n".join(difflib.unified_diff(old, new, "accepted", "listed now", lineterm="", n=2))


def written(definition: dict[str, Any]) -> list[str]:
    return json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
