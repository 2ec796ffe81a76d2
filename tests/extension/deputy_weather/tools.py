"""Two tools: one described by its signature, one by a pydantic model."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from runs.tools.base import ToolContext, ToolError
from runs.tools.previews import Preview
from runs.tools.registry import tool


@tool(description="What the weather is in a city.", risk_level="low", idempotent=True)
def weather_look(context: ToolContext, *, city: Annotated[str, "A city's name"]) -> Any:
    if city == "Atlantis":
        raise ToolError("There is no station in Atlantis.", "NO_STATION")
    return {"city": city, "sky": "clear", "asked_for": context.user_id}


class Warning(BaseModel):
    """A warning to publish."""

    city: str = Field(max_length=80)
    level: int = Field(ge=1, le=4)


@tool(
    description="Publish a weather warning.",
    parameters=Warning,
    risk_level="high",
    mutating=True,
    capabilities=("publish",),
    preview=Preview("generic", {"to": "city"}, does="publish a warning"),
)
class weather_warn:
    def __call__(self, context: ToolContext, warning: Warning) -> Any:
        return f"warned {warning.city} at level {warning.level} ({context.idempotency_key[:8]})"
