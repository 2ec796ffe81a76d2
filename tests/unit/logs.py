"""Logs written by hand, for the pure parts of a run."""

from datetime import UTC, datetime
from typing import Any

from runs.log.log import Event

AT = datetime(2026, 1, 1, tzinfo=UTC)
PA = {"agent": "agt_pa", "role_id": "rol_pa", "role": "Personal agent", "ordinal": 0, "is_lead": False}
BUDGETS = {"steps": 25, "tokens": 1000, "depth": 5, "children": 20}


def member(name: str, ordinal: int, is_lead: bool = False) -> dict[str, Any]:
    return {
        "agent": f"agt_{name}",
        "role_id": f"rol_{name}",
        "role": name,
        "ordinal": ordinal,
        "is_lead": is_lead,
    }


class Log(list[Event]):
    """A list of events that numbers them itself."""

    def add(self, type: str, agent: str = "", **payload: Any) -> "Log":
        self.append(Event(len(self) + 1, type, agent, payload, AT))
        return self

    def created(
        self, kind: str = "personal", members: Any = (PA,), max_rounds: int = 1, **budgets: int
    ) -> "Log":
        self.add(
            "run.created",
            kind=kind,
            goal="g",
            members=list(members),
            max_rounds=max_rounds,
            budgets={**BUDGETS, **budgets},
            model="m",
        )
        return self.person("g")

    def person(self, content: str) -> "Log":
        return self.add("message.created", role="user", author="mia", content=content)

    def says(
        self, content: str, agent: str = "agt_pa", type: str = "STATUS", tokens: int = 0, **more: Any
    ) -> "Log":
        usage = {"input_tokens": tokens, "output_tokens": 0}
        return self.add(
            "message.created",
            agent,
            role="assistant",
            author=agent,
            content=content,
            message_type=type,
            usage=usage,
            **more,
        )

    def asks_for(self, *names: str, agent: str = "agt_pa", **arguments: Any) -> "Log":
        """A reply with calls; their ids are `{this event's seq}.0`, `.1`, …"""
        return self.says("", agent, tool_calls=[{"name": name, "arguments": arguments} for name in names])
