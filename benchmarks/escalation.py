"""An escalation, there and back: a parent, a child of three steps in a group, the parent again.

    python -m benchmarks.escalation

No model is asked: replies come from a script, so what is measured is what Deputy adds to them. The peer's
graph has the same five steps, a node each, and writes a checkpoint before the next begins
(`durability="sync"`): the least that survives a crash as Deputy's runs do.
"""

import argparse

from benchmarks import harness, peers
from benchmarks.harness import FLOOR, OURS, Subject


def subjects(options: argparse.Namespace) -> list[Subject]:
    chosen = [Subject(FLOOR, "benchmarks.escalation_floor"), Subject(OURS, "benchmarks.escalation_ours")]
    python = None if options.no_peers else peers.python()
    if python:
        chosen.append(Subject("langgraph", "benchmarks.escalation_langgraph", python))
    return chosen


if __name__ == "__main__":
    harness.compare("escalation", subjects, items=400)
