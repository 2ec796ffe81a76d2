"""An agent of the OpenAI Agents SDK under Deputy's gate: python -m examples.openai_agent atlas "Goal"

Needs requirements-examples.txt, DEPUTY_TOKEN, and OPENAI_API_KEY (OPENAI_BASE_URL for another server that
speaks like OpenAI's). The SDK runs the loop; each of its tools is one of Deputy's, called over HTTP.
"""

import asyncio
import json
import os
import sys
from typing import Any

import httpx
from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, RunConfig, Runner
from openai import AsyncOpenAI

from examples.outside_agent import Deputy, Refused

HELD_BACK = ("deny",)  # what policy would deny anyway is not offered to the model


def tools_of(deputy: Deputy) -> list[FunctionTool]:
    """The tools that this run may call, with Deputy's own descriptions and schemas."""
    offered = deputy.http.get("/api/tools/", params={"run": deputy.run}).raise_for_status().json()["results"]
    return [
        FunctionTool(
            name=tool["name"],
            description=tool["description"],
            params_json_schema=tool["parameters"],
            on_invoke_tool=calling(deputy, tool["name"]),
            strict_json_schema=False,
        )
        for tool in offered
        if tool["decision"]["effect"] not in HELD_BACK
    ]


def calling(deputy: Deputy, name: str) -> Any:
    """What the SDK calls. The model's id of the call is Deputy's too: asked twice, it is done once."""

    async def invoke(context: Any, arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
            return str(await asyncio.to_thread(deputy.call, context.tool_call_id, name, given))
        except (Refused, ValueError) as refused:
            return f"refused: {refused}"  # the model reads it and may try something else

    return invoke


def work(deputy: Deputy, goal: str, model: str, client: AsyncOpenAI) -> str:
    """Let the SDK drive the agent to its answer, and complete the run with it."""
    agent = Agent(
        name="Outside agent",
        instructions="Do what you are asked with the tools you have. Say what you could not do.",
        model=OpenAIChatCompletionsModel(model, client),
        tools=list(tools_of(deputy)),
    )
    found = Runner.run_sync(agent, goal, run_config=RunConfig(tracing_disabled=True))
    answer = str(found.final_output)
    deputy.end("complete", output=answer)
    return answer


if __name__ == "__main__":
    token = {"Authorization": f"Token {os.environ['DEPUTY_TOKEN']}"}
    url = os.environ.get("DEPUTY_URL", "http://localhost:8000")
    with httpx.Client(base_url=url, headers=token, timeout=60) as http:
        deputy = Deputy(http, sys.argv[1], sys.argv[2])
        print(work(deputy, sys.argv[2], os.environ.get("OPENAI_MODEL", "gpt-5"), AsyncOpenAI()))
