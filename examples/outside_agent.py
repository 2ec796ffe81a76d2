"""An agent of your own under Deputy's gate: DEPUTY_TOKEN=dpt_… python examples/outside_agent.py atlas "Goal"

Replace `think` with your model, or with whatever framework drives it; the rest stays as it is.
"""

import os
import sys
from typing import Any

import httpx


class Refused(Exception):
    """Policy does not allow the call, or it does not fit. The agent may try something else."""


class Deputy:
    """One run, whose tools are called over HTTP."""

    def __init__(self, http: httpx.Client, project: str, goal: str) -> None:
        self.http = http
        started = http.post("/api/runs/", json={"project": project, "goal": goal, "driver": "external"})
        self.run = started.raise_for_status().json()["id"]

    def call(self, call_id: str, name: str, arguments: dict[str, Any]) -> Any:
        """The tool's result, however long somebody takes to approve it. Raises Refused."""
        body = {"call_id": call_id, "name": name, "arguments": arguments}
        answer = self.http.post(f"/api/runs/{self.run}/tool-calls/", json=body)
        while answer.status_code == 202:
            waits = answer.json()["waits_for"] or {"kind": "a worker", "expires_at": None}
            print(f"{name} waits for {waits['kind']} until {waits['expires_at']}", file=sys.stderr)
            answer = self.http.get(answer.headers["Location"], params={"wait": 30})
        if answer.status_code in (403, 422):
            raise Refused(answer.json()["detail"])
        ended = answer.raise_for_status().json()
        if ended["error"]:
            raise Refused(ended["error"]["message"])
        return ended["result"]

    def end(self, how: str, **words: str) -> None:
        self.http.post(f"/api/runs/{self.run}/{how}/", json=words).raise_for_status()


def think(goal: str, heard: list[str]) -> tuple[str, dict[str, Any]] | str:
    """The next call as (tool, arguments), or the final answer. Yours is cleverer."""
    if not heard:
        return "list_available_groups", {}
    if len(heard) == 1:
        return "send_email", {"to": ["ines@example.org"], "subject": goal, "body": heard[0]}
    return f"{goal}: {heard[-1]}"


def work(deputy: Deputy, goal: str) -> str:
    """Think, call, hear; until there is an answer."""
    heard: list[str] = []
    while not isinstance(step := think(goal, heard), str):
        try:
            heard.append(str(deputy.call(str(len(heard) + 1), *step)))
        except Refused as refused:
            heard.append(f"refused: {refused}")
    deputy.end("complete", output=step)
    return step


if __name__ == "__main__":
    token = {"Authorization": f"Token {os.environ['DEPUTY_TOKEN']}"}
    url = os.environ.get("DEPUTY_URL", "http://localhost:8000")
    with httpx.Client(base_url=url, headers=token, timeout=60) as client:
        print(work(Deputy(client, sys.argv[1], sys.argv[2]), sys.argv[2]))
