"""The tools that MCP's conformance kit expects of a server, as far as a tool of Deputy's can be one."""

import time
from typing import Annotated, Any

from runs.models.choices import WaitKind
from runs.tools.base import ToolContext, ToolError, WaitFor
from runs.tools.registry import tool

SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool(description="Says a sentence.", transactional=True)
def test_simple_text(context: ToolContext) -> str:
    return "This is a simple text response for testing."


@tool(description="Fails.", transactional=True)
def test_error_handling(context: ToolContext) -> str:
    raise ToolError("This tool intentionally returns an error for testing")


@tool(description="Has a schema of every kind.", parameters=SCHEMA_2020_12, transactional=True)
def json_schema_2020_12_tool(context: ToolContext, **said: Any) -> Any:
    return said


@tool(
    description="Has a parameter that is also a header.",
    parameters={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
        "required": ["region", "query"],
        "additionalProperties": False,
    },
    transactional=True,
)
def test_custom_header(context: ToolContext, *, region: str, query: str) -> str:
    return f"{query} in {region}"


@tool(description="Takes a moment.", idempotent=True)
def test_tool_with_progress(context: ToolContext) -> str:
    time.sleep(0.3)
    return "done"


@tool(description="Says hello.", transactional=True)
def greet(context: ToolContext, *, name: Annotated[str, "Whom"] = "World") -> str:
    return f"Hello, {name}!"


@tool(description="Takes its time.", idempotent=True)
def slow_compute(context: ToolContext, *, seconds: float = 1.0, label: str = "") -> str:
    time.sleep(min(seconds, 3))
    return f"computed {label}"


@tool(description="Takes its time, and fails.", idempotent=True)
def failing_job(context: ToolContext) -> str:
    time.sleep(1)
    raise ToolError("The job has failed, as it should.")


@tool(description="Asks before it deletes.", mutating=True, idempotent=True)
def confirm_delete(context: ToolContext, *, filename: str = "") -> WaitFor:
    return WaitFor(WaitKind.INPUT.value, f"Really delete {filename}?", choices=("yes", "no"))


@tool(description="Asks for a name.", transactional=True)
def test_input_required_result_elicitation(context: ToolContext) -> WaitFor:
    return WaitFor(WaitKind.INPUT.value, "What is your name?")


@tool(description="Asks, and keeps the state of the question.", transactional=True)
def test_input_required_result_request_state(context: ToolContext) -> WaitFor:
    return WaitFor(WaitKind.INPUT.value, "Please confirm")


@tool(description="Asks, and does not believe a changed state.", transactional=True)
def test_input_required_result_tampered_state(context: ToolContext) -> WaitFor:
    return WaitFor(WaitKind.INPUT.value, "Please confirm")
