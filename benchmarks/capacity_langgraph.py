"""LangGraph's slow runs: an async graph with AsyncPostgresSaver, all runs at once in one event loop.

python -m benchmarks.capacity_langgraph DATABASE_URL MODEL_URL KIND RUNS     (prints one JSON line)
"""

import asyncio
import itertools
import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from openai import AsyncOpenAI
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from benchmarks.capacity_peer import ASKED, serve

CONNECTIONS = 20


class State(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


def graph_of(client: AsyncOpenAI, kind: str) -> StateGraph:
    """One node a model call: `single` has one, `escalation` three, the second in a subgraph."""

    async def speak(state: State) -> dict[str, Any]:
        said = await client.chat.completions.create(model="slow", messages=state["messages"])
        return {"messages": [{"role": "assistant", "content": said.choices[0].message.content}]}

    graph = StateGraph(State)
    names = ["answer"] if kind == "single" else ["decide", "group", "answer"]
    for name in names:
        graph.add_node(name, _child(speak) if name == "group" else speak)
    for here, there in itertools.pairwise([START, *names, END]):
        graph.add_edge(here, there)
    return graph


def _child(speak: Any) -> Any:
    child = StateGraph(State)
    child.add_node("expert", speak)
    child.add_edge(START, "expert")
    child.add_edge("expert", END)
    return child.compile()


async def run(url: str, model_url: str, kind: str, runs: int) -> None:
    client = AsyncOpenAI(base_url=model_url, api_key="none", max_retries=0, timeout=600)
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, min_size=CONNECTIONS, max_size=CONNECTIONS, kwargs=options) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        graph = graph_of(client, kind).compile(checkpointer=saver)

        async def one(number: int) -> None:
            asked = {"messages": [{"role": "user", "content": ASKED.format(number)}]}
            thread = {"configurable": {"thread_id": f"{kind}-{number}"}}
            state = await graph.ainvoke(asked, thread, durability="sync")
            assert state["messages"][-1]["content"]

        await serve(lambda: asyncio.gather(*(one(number) for number in range(runs))))


if __name__ == "__main__":
    import sys

    asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
