"""A model that looks up the weather of the city the person names, and says it."""

import json
from collections.abc import Sequence

from runs.providers.base import Message, ModelSettings, Reply, ToolRequest, ToolSchema


class WeatherModel:
    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        last = messages[-1]
        if last.role == "tool":
            found = json.loads(last.content)
            return Reply(f"The sky over {found['city']} is {found['sky']}.", model=settings.model)
        return Reply("", (ToolRequest("weather_look", {"city": last.content.split()[-1]}),))
