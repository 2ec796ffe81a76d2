"""A LangGraph agent under Deputy's gate: DEPUTY_TOKEN=dpt_… python -m examples.langgraph_agent atlas "Goal"

Needs requirements-examples.txt. The graph has two nodes: one thinks, the other calls Deputy. A call that
waits for an approval holds up its node, and nothing else: Deputy executes it once somebody has decided.
"""

import operator
import os
import sys
from typing import Annotated, Any, TypedDict

import httpx
from langgraph.graph import END, START, StateGraph

from examples.outside_agent import Deputy, Refused, think


class State(TypedDict):
    """What the graph carries along."""

    goal: str
    heard: Annotated[list[str], operator.add]  # what the calls brought, one after the other
    step: Any  # the next call as (tool, arguments), or the final answer


def graph_of(deputy: Deputy) -> Any:
    """think → call → think …, until there is an answer. Put your model into `think`."""

    def thinks(state: State) -> dict[str, Any]:
        return {"step": think(state["goal"], state["heard"])}

    def calls(state: State) -> dict[str, Any]:
        name, arguments = state["step"]
        try:
            result = deputy.call(str(len(state["heard"]) + 1), name, arguments)
        except Refused as refused:
            result = f"refused: {refused}"
        return {"heard": [str(result)]}

    graph = StateGraph(State)
    graph.add_node("think", thinks)
    graph.add_node("call", calls)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", lambda state: END if isinstance(state["step"], str) else "call")
    graph.add_edge("call", "think")
    return graph.compile()


def work(deputy: Deputy, goal: str) -> str:
    """Run the graph to its answer, and complete the run with it."""
    answer: str = graph_of(deputy).invoke({"goal": goal, "heard": [], "step": None})["step"]
    deputy.end("complete", output=answer)
    return answer


if __name__ == "__main__":
    token = {"Authorization": f"Token {os.environ['DEPUTY_TOKEN']}"}
    url = os.environ.get("DEPUTY_URL", "http://localhost:8000")
    with httpx.Client(base_url=url, headers=token, timeout=60) as client:
        print(work(Deputy(client, sys.argv[1], sys.argv[2]), sys.argv[2]))
