"""DBOS's escalation: a workflow that starts another and waits for it, each step recorded in PostgreSQL.

As its documentation has it: workflows and steps as decorated functions, a child by `start_workflow`, its
result by the handle. Each step's result is committed before the next begins.
"""

import os
from typing import Any

import psycopg
from dbos import DBOS
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

from benchmarks.client import serve

GOAL = "Find out which supplier delivers fastest and what it costs"
ANSWER = "The second supplier delivers within two days; it costs eleven per cent more."

tool: psycopg.Connection[Any]  # of the steps that look something up or keep something


def said(content: str, *calls: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def keep(content: str) -> None:
    tool.execute("INSERT INTO memory (content) VALUES (%s)", [content])


@DBOS.step()
def decide(goal: str) -> dict[str, Any]:
    return said("This is beyond me.", "escalate")


@DBOS.step()
def look_up(fact: int) -> list[dict[str, Any]]:
    row = tool.execute("SELECT content FROM fact WHERE id = %s", [fact]).fetchone()
    assert row is not None
    return [said("Let me look that up.", "look_up"), {"role": "tool", "content": row[0]}]


@DBOS.step()
def conclude(goal: str) -> dict[str, Any]:
    keep(ANSWER)
    return said(ANSWER)


@DBOS.step()
def answer(result: dict[str, Any]) -> dict[str, Any]:
    keep(f"Goal: {GOAL}\nOutcome: {result['content']}")
    return said(result["content"])


@DBOS.workflow()
def group(goal: str) -> dict[str, Any]:
    look_up(1)
    look_up(2)
    return conclude(goal)


@DBOS.workflow()
def parent(goal: str) -> dict[str, Any]:
    decide(goal)
    return answer(DBOS.start_workflow(group, goal).get_result())


class Workflows:
    def __init__(self, url: str) -> None:
        global tool
        tool = psycopg.connect(url, autocommit=True)
        config: Any = {"name": "bench", "system_database_url": sqlalchemy_url(url), "log_level": "ERROR"}
        config["executor_id"] = str(
            os.getpid()
        )  # each client is an executor of its own: none recovers another's
        self._dbos = DBOS(config=config)
        DBOS.launch()

    def execute(self, sql: str) -> None:
        tool.execute(sql)

    def close(self) -> None:
        DBOS.destroy()
        tool.close()

    def item(self) -> None:
        assert parent(GOAL)["content"] == ANSWER


def sqlalchemy_url(url: str) -> str:
    """SQLAlchemy takes a socket's folder as a parameter, not as the host."""
    parts = conninfo_to_dict(url)
    query = {"host": str(parts["host"]), "port": str(parts.get("port") or 5432)}
    name, user = str(parts["dbname"]), str(parts["user"])
    return URL.create("postgresql", username=user, database=name, query=query).render_as_string(False)


def prepare(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("CREATE TABLE fact (id integer PRIMARY KEY, content text NOT NULL)")
        db.execute("INSERT INTO fact SELECT n, 'Deputy fact number ' || n FROM generate_series(1, 100) n")
        db.execute("CREATE TABLE memory (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, content text)")
    Workflows(url).close()  # makes DBOS's own tables


if __name__ == "__main__":
    serve(prepare, work=Workflows)
