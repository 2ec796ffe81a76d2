"""LangGraph's escalation: a graph with a subgraph, checkpoints in PostgreSQL, what it learnt in its store."""

import itertools
import operator
import os
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row

from benchmarks.client import serve

GOAL = "Find out which supplier delivers fastest and what it costs"
ANSWER = "The second supplier delivers within two days; it costs eleven per cent more."


class State(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


def said(content: str, *calls: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def connect(url: str) -> psycopg.Connection[dict[str, Any]]:
    """As PostgresSaver.from_conn_string does."""
    return psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row)


class Graph:
    """A connection for the checkpoints, which are written from a thread, and one for the tool."""

    def __init__(self, url: str) -> None:
        self._db, self._tool = connect(url), connect(url)
        self._threads = (f"{os.getpid()}-{n}" for n in itertools.count())
        self._store = PostgresStore(self._tool)
        self._graph = self._parent().compile(checkpointer=PostgresSaver(self._db), store=self._store)

    def execute(self, sql: str) -> None:
        self._db.execute(sql)
        self._tool.execute(sql)

    def close(self) -> None:
        self._db.close()
        self._tool.close()

    def item(self) -> None:
        asked = {"messages": [{"role": "user", "content": GOAL}]}
        thread = {"configurable": {"thread_id": next(self._threads)}}
        state = self._graph.invoke(asked, thread, durability="sync")
        assert state["messages"][-1]["content"] == ANSWER

    def _parent(self) -> Any:
        graph = StateGraph(State)
        graph.add_node("decide", lambda state: {"messages": [said("This is beyond me.", "escalate")]})
        graph.add_node("group", self._child().compile())
        graph.add_node("answer", self._answer)
        for here, there in itertools.pairwise([START, "decide", "group", "answer", END]):
            graph.add_edge(here, there)
        return graph

    def _child(self) -> Any:
        graph = StateGraph(State)
        graph.add_node("first", self._look_up)
        graph.add_node("second", self._look_up)
        graph.add_node("conclude", self._conclude)
        for here, there in itertools.pairwise([START, "first", "second", "conclude", END]):
            graph.add_edge(here, there)
        return graph

    def _look_up(self, state: State) -> dict[str, Any]:
        """The model's reply and its tool in one node: the fewest checkpoints that keep the steps apart."""
        row = self._tool.execute("SELECT content FROM fact WHERE id = 1").fetchone()
        assert row is not None
        result = {"role": "tool", "content": row["content"]}
        return {"messages": [said("Let me look that up.", "look_up"), result]}

    def _conclude(self, state: State) -> dict[str, Any]:
        self._store.put(("project", "knowledge"), str(uuid4()), {"content": ANSWER}, index=False)
        return {"messages": [said(ANSWER)]}

    def _answer(self, state: State) -> dict[str, Any]:
        outcome = f"Goal: {GOAL}\nOutcome: {ANSWER}"
        self._store.put(("project", "tasks"), str(uuid4()), {"content": outcome}, index=False)
        return {"messages": [said(ANSWER)]}


def prepare(url: str) -> None:
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
    with PostgresStore.from_conn_string(url) as store:
        store.setup()
    with psycopg.connect(url) as db:
        db.execute("CREATE TABLE fact (id integer PRIMARY KEY, content text NOT NULL)")
        db.execute("INSERT INTO fact VALUES (1, 'Deputy fact number 1')")


if __name__ == "__main__":
    serve(prepare, work=Graph)
