"""Events in the OpenAPI document: one schema for each type."""

from typing import Any

from runs.log.payloads import SHARED, form, schema
from runs.models.choices import EventType

EVENT = "Event"


def typed(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular's: an `Event` is one of several, told apart by its `type`."""
    schemas = result["components"]["schemas"]
    plain = schemas[EVENT]
    del schemas["EventType"]  # each event names its own
    schemas |= SHARED
    names = {type: name_of(type) for type in EventType}
    for type, name in names.items():
        schemas[name] = of_type(type, plain)
    schemas[EVENT] = {
        "oneOf": [_reference(name) for name in names.values()],
        "discriminator": {
            "propertyName": "type",
            "mapping": {type.value: _reference(name)["$ref"] for type, name in names.items()},
        },
    }
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    return result


def name_of(type: EventType) -> str:
    """`RunCreatedEvent`."""
    return "".join(part.capitalize() for part in type.value.replace(".", "_").split("_")) + "Event"


def of_type(type: EventType, plain: dict[str, Any]) -> dict[str, Any]:
    """The schema of an event, as its serializer has it, with this type and its payload."""
    payload = schema(type)
    fields = {name: _shared(about) for name, about in payload["properties"].items()}
    own = {
        "type": {"type": "string", "enum": [type.value], "description": "What happened."},
        "payload": {**payload, "properties": fields},
    }
    properties = {name: own.get(name, about) for name, about in plain["properties"].items()}
    return {**plain, "description": form(type).when, "properties": properties}


def _shared(about: dict[str, Any]) -> dict[str, Any]:
    """The field, or a reference to the record that several payloads have."""
    for name, record in SHARED.items():
        if about == record:
            return _reference(name)
        if about == {**record, "nullable": True}:
            return {"allOf": [_reference(name)], "nullable": True}
    return about


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
