"""An escalation, there and back: a parent, a child of three steps in a group, the parent again.

    python -m benchmarks.escalation

No model is asked: replies come from a script, so what is measured is what Deputy adds to them. The peers
have the same five steps, and commit each before the next begins (LangGraph with `durability="sync"`): the
least that survives a crash as Deputy's runs do. All keep what the group found, and what became of the task,
where later tasks look for it: LangGraph in its store, the others in a table. Deputy alone also asks policy,
searches what is known, ranks the groups, writes prompts, records its calls, and chains its log by digests.
"""

import argparse

from benchmarks import harness, peers
from benchmarks.harness import FLOOR, OURS, Subject


def subjects(options: argparse.Namespace) -> list[Subject]:
    chosen = [Subject(FLOOR, "benchmarks.escalation_floor"), Subject(OURS, "benchmarks.escalation_ours")]
    python = None if options.no_peers else peers.python()
    if python:
        chosen.append(Subject("langgraph", "benchmarks.escalation_langgraph", python))
        chosen.append(Subject("dbos", "benchmarks.escalation_dbos", python))
    return chosen


if __name__ == "__main__":
    harness.compare("escalation", subjects, items=400)
