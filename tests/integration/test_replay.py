"""A run is its event log: reading it again asks no model and runs no tool."""

import pytest

from runs.log.next_step import Over, next_step, output
from runs.models import Run
from tests.scripted import Scripted, by_role, call, say

from .helpers import chain_holds, state_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree(ask):
    ask(
        by_role(
            Personal_agent=[
                call(("memory_search", {"query": "price"}), ("list_available_groups", {})),
                call(("escalate_to_group", {"goal": "Compare"})),
                say("5"),
            ],
            researcher=[call(("blackboard_write", {"content": "Rival A: 5"})), say("EVIDENCE: 5")],
            analyst=[say("PROPOSAL: match")],
            lead=[say("DECISION: 5")],
        )
    )
    return list(Run.objects.all())


def test_the_folded_log_says_what_the_row_says(tree):
    def fail(*_):
        raise AssertionError("a replay asks nobody")

    Scripted.play = staticmethod(fail)
    for run in tree:
        state = state_of(run)
        assert state.ended == f"run.{run.status}"
        assert output(state) == run.output
        assert next_step(state) == Over()
        assert state.seq == run.last_seq
        assert state.steps == run.usage["steps"]


def test_the_chain_holds_and_a_changed_event_breaks_it(tree):
    assert all(chain_holds(run) for run in tree)

    event = tree[0].events.get(seq=2)
    event.payload["content"] = "something else"
    event.save()
    assert not chain_holds(tree[0])


def test_replaying_twice_gives_the_same_state(tree):
    for run in tree:
        assert state_of(run) == state_of(run)
