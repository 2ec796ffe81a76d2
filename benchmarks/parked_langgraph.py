"""LangGraph's parked threads: a node interrupts with a question, and the answer resumes it."""

import itertools
import os
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from benchmarks.client import serve
from benchmarks.escalation_langgraph import ANSWER, GOAL, State, connect, prepare, said


class Parked:
    def __init__(self, url: str) -> None:
        self._db = connect(url)
        graph = StateGraph(State)
        graph.add_node("decide", lambda state: {"messages": [said("For which region?", "ask_user")]})
        graph.add_node("ask", lambda state: {"messages": [{"role": "tool", "content": interrupt("Region?")}]})
        graph.add_node("answer", lambda state: {"messages": [said(ANSWER)]})
        for here, there in itertools.pairwise([START, "decide", "ask", "answer", END]):
            graph.add_edge(here, there)
        self._graph = graph.compile(checkpointer=PostgresSaver(self._db))

    def execute(self, sql: str) -> None:
        self._db.execute(sql)

    def close(self) -> None:
        self._db.close()

    def invoke(self, given: Any, thread: str) -> dict[str, Any]:
        return self._graph.invoke(given, {"configurable": {"thread_id": thread}}, durability="sync")


class Park(Parked):
    """An item is a thread from its start to its question."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._threads = (f"{os.getpid()}-{n}" for n in itertools.count())

    def item(self) -> None:
        state = self.invoke({"messages": [{"role": "user", "content": GOAL}]}, next(self._threads))
        assert "__interrupt__" in state


class Wake(Parked):
    """An item is a parked thread from its answer to its end."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        # an ended thread has more checkpoints than one that waits for its answer
        rows = self._db.execute("SELECT thread_id FROM checkpoints GROUP BY thread_id HAVING count(*) = 3")
        self._parked = iter([row["thread_id"] for row in rows])

    def item(self) -> None:
        state = self.invoke(Command(resume="Europe"), next(self._parked))
        assert state["messages"][-1]["content"] == ANSWER


if __name__ == "__main__":
    serve(prepare, park=Park, wake=Wake)
