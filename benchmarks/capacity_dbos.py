"""DBOS's slow runs: async workflows, each model call a recorded step, all runs at once in one process.

python -m benchmarks.capacity_dbos DATABASE_URL MODEL_URL KIND RUNS     (prints one JSON line)
"""

import asyncio
import sys
from typing import Any

from dbos import DBOS
from openai import AsyncOpenAI

from benchmarks.capacity_peer import ASKED, serve
from benchmarks.escalation_dbos import sqlalchemy_url

client: AsyncOpenAI


@DBOS.step()
async def speak(messages: list[dict[str, Any]]) -> dict[str, Any]:
    said = await client.chat.completions.create(model="slow", messages=messages)  # type: ignore[arg-type]
    return {"role": "assistant", "content": said.choices[0].message.content}


@DBOS.workflow()
async def single(goal: str) -> str:
    return str((await speak([{"role": "user", "content": goal}]))["content"])


@DBOS.workflow()
async def escalation(goal: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": goal}]
    messages.append(await speak(messages))
    child = await DBOS.start_workflow_async(single, goal)
    messages.append({"role": "user", "content": await child.get_result()})
    return str((await speak(messages))["content"])


async def run(url: str, model_url: str, kind: str, runs: int) -> None:
    global client
    client = AsyncOpenAI(base_url=model_url, api_key="none", max_retries=0, timeout=600)
    config: Any = {"name": "capacity", "system_database_url": sqlalchemy_url(url), "log_level": "ERROR"}
    DBOS(config={**config, "run_admin_server": False})
    DBOS.launch()
    workflow = {"single": single, "escalation": escalation}[kind]

    async def one(number: int) -> None:
        handle = await DBOS.start_workflow_async(workflow, ASKED.format(number))
        assert await handle.get_result()

    await serve(lambda: asyncio.gather(*(one(number) for number in range(runs))))
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
