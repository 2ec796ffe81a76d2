"""A tool that cannot be: its risk is none that policy knows."""

from runs.tools.registry import tool


@tool(description="Does something.", risk_level="tremendous")
def weather_make(context: object) -> str:
    return "rain"
