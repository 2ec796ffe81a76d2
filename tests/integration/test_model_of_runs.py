"""A model of claim, park, signal, decide, cancel and sweep, in any order, over real transactions.

Three workers and whoever is outside, each on a connection of its own. A worker keeps its run from one
step to the next, so that the run may meanwhile be taken from it, cancelled, or spoken to. After each
step every rule of tests/auditor.py holds; at the end whatever can go on goes on, and nobody is stranded.
"""

import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from common.db import execute, row
from runs.actions.decide import DecisionRefused
from runs.actions.signal import SignalRefused
from runs.execution import dispatch, executor
from runs.execution.executor import Entered, Perform, Released, Taken
from runs.log.log import AlreadyEnded, Fenced
from runs.log.next_step import Speak
from runs.models import Approval, Run, ToolCall, Wait
from runs.models.choices import ACTIVE
from runs.tools import registry
from runs.tools.base import ToolContext
from runs.workers.sweep import sweep
from tests.acting import approve, cancel, message, reject, resolve, signal, start
from tests.at_once import at_once
from tests.auditor import audit, audit_effects, unrest
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory, permit
from tests.scripted import Scripted, call, say

pytestmark = pytest.mark.django_db(transaction=True)

LANES = range(3)
MOST_ROOTS = 5
WHICH = st.integers(0, 20)  # the how-manieth of what there is, counted round and round
DOWN = ("escalate_to_group", {"goal": "deeper"})
ASK = ("ask_user", {"question": "?"})
RISKY = ("risky", {})
REPLIES = {
    "say": say("DECISION: done"),
    "escalate": call(DOWN),
    "escalate twice": call(DOWN, DOWN),
    "ask": call(ASK),
    "risky": call(RISKY),
    "effect": call(("effect", {})),
    "keyed": call(("keyed_effect", {})),
    "many": call(ASK, RISKY, ("effect", {})),
}


# What may happen next, the usual more often than the rare.
WHAT = (
    *["a_worker_goes_on"] * 12,
    *["somebody_decides", "a_person_says_something", "somebody_says_what_became_of_a_call"] * 2,
    *("somebody_asks", "a_worker_is_sent_to_a_run", "a_worker_dies", "a_lease_runs_out", "somebody_sweeps"),
    *("the_time_to_answer_is_over", "a_signal_comes", "somebody_cancels", "two_things_happen_at_once"),
)


class Runs(RuleBasedStateMachine):
    """The house at work; `effects` are the keys under which something happened outside."""

    effects: list[str] = []

    def __init__(self):
        super().__init__()
        self.lanes = [ThreadPoolExecutor(1) for _ in LANES]
        self.held = dict.fromkeys(LANES)
        self.handoff = dict.fromkeys(LANES)
        self.effects.clear()
        project = ProjectFactory()
        self.organization = project.organization_id
        self.user = MembershipFactory(organization=project.organization).user
        self.decider = MembershipFactory(organization=project.organization).user
        permit(self.decider, "decide_approval", "resolve_review")
        MemberFactory(group=GroupFactory(project=project, max_rounds=1), is_lead=True)
        self.project = project

        self.audited = {}
        self.ask()
        self.ask()

    # who there is

    def runs(self, **which):
        return list(Run.objects.filter(organization=self.organization, **which).order_by("id"))

    def pick(self, found, which):
        return found[which % len(found)] if found else None

    def in_lane(self, lane, todo):
        """Do it on the lane's own connection."""
        return self.lanes[lane].submit(todo).result(30)

    # what a worker does

    def somebody_asks(self, *_):
        if len(self.runs(depth=0)) < MOST_ROOTS:
            self.ask()

    def ask(self):
        start(user=self.user, project=self.project, goal="Something")

    def a_worker_goes_on(self, which, reply):
        """The next thing a worker would do: answer, work, follow the handoff, or look for a run."""
        if self.at(Speak) and which % 3:
            self.a_model_replies(which, reply)
        elif self.at(Perform):
            self.a_tool_is_done(which, reply)
        elif any(self.handoff.values()):
            self.a_worker_follows_the_handoff(which)
        else:
            self.a_worker_is_sent_to_a_run(which)

    def a_worker_is_sent_to_a_run(self, which, *_):
        """Whatever its state: only a pending one is to be had."""
        lane = self.pick([lane for lane in LANES if not self.held[lane] and not self.handoff[lane]], which)
        run = self.pick(self.runs(status="pending") or self.runs(), which)
        if run is not None and lane is not None:
            self.take(lane, Taken(run.pk), expected=run.status == "pending")

    def a_worker_follows_the_handoff(self, which):
        lane = self.pick([lane for lane in LANES if self.handoff[lane]], which)
        taken, self.handoff[lane] = self.handoff[lane], None
        run = Run.objects.get(pk=taken.run_id)
        self.take(lane, taken, expected=(run.status, run.attempt) == ("running", taken.attempt))

    def take(self, lane, taken, expected):
        try:
            entered = self.in_lane(lane, lambda: executor.take(taken, True))
        except Fenced:
            entered = None
        assert (entered is not None) == expected
        if entered:
            self.keep(lane, entered)

    def keep(self, lane, entered):
        """What the worker has now; it may have gone on to the next run at once."""
        if not isinstance(entered.slow, Released):
            self.held[lane] = entered
        elif isinstance(entered.slow.then, Entered):
            self.keep(lane, entered.slow.then)
        else:
            self.handoff[lane] = entered.slow.then

    def at(self, kind):
        """The workers at this kind of slow work."""
        return [lane for lane in LANES if self.held[lane] and isinstance(self.held[lane].slow, kind)]

    def busy(self, kind, which):
        return self.pick(self.at(kind), which)

    def a_model_replies(self, which, reply):
        lane = self.busy(Speak, which)
        if lane is not None:
            self.step(lane, REPLIES[reply])

    def a_tool_is_done(self, which, reply):
        """And its worker may die before anybody hears of it."""
        lane = self.busy(Perform, which)
        if lane is None:
            return
        done = self.in_lane(lane, lambda: executor.work(self.held[lane].claimed, self.held[lane].slow))
        if reply == "effect":
            self.held[lane] = None
        else:
            self.step(lane, done)

    def step(self, lane, done):
        """One transaction of a worker: it writes if it holds the run, and nothing at all if it does not."""
        held, self.held[lane] = self.held[lane], None
        claimed = held.claimed
        before = Run.objects.get(pk=claimed.run_id)
        holds = (before.status, before.attempt) == ("running", claimed.attempt)
        try:
            slow = self.in_lane(lane, lambda: executor.transact(claimed, done, True))
        except Fenced:
            assert not holds
            after = Run.objects.get(pk=claimed.run_id)
            assert (after.last_seq, after.last_digest) == (before.last_seq, before.last_digest)
            return
        assert holds
        self.keep(lane, Entered(claimed, slow))

    def a_worker_dies(self, which, *_):
        lane = which % len(LANES)
        self.held[lane] = self.handoff[lane] = None

    # time

    def a_lease_runs_out(self, which, *_):
        run = self.pick(self.runs(status="running"), which)
        if run:
            execute("UPDATE runs_run SET lease_expires_at = now() - interval '1 s' WHERE id = %s", [run.pk])

    def the_time_to_answer_is_over(self, which, *_):
        wait = self.pick(
            list(Wait.objects.filter(organization=self.organization, resolved_at=None).order_by("id")), which
        )
        if wait is None:
            return
        long_ago = "now() - interval '1 day'"
        execute(
            f"UPDATE runs_wait SET created_at = {long_ago}, expires_at = now() WHERE id = %s",
            [wait.pk],
        )
        execute(
            "UPDATE runs_approval SET expires_at = now() WHERE run_id = %s AND correlation_key = %s",
            [wait.run_id, wait.correlation_key],
        )

    def somebody_sweeps(self, *_):
        sweep()
        (now,) = row("SELECT clock_timestamp() - interval '1 s'")
        assert not self.runs(status="running", lease_expires_at__lt=now)

    # the outside

    def a_signal_comes(self, which, reply):
        self.signal(which, early=reply == "say")

    def signal(self, which, early=False):
        run = self.pick(self.runs(), which)
        if run is None:
            return
        key = f"input-{run.last_seq + 1}.0" if early else "input-4.0"
        before = Wait.objects.filter(run=run, correlation_key=key).first()
        try:
            state = signal(run.pk, key, {"answer": "yes"}).state
        except SignalRefused as refused:
            assert refused.code in ("RUN_ENDED", "SIGNAL_DIFFERS")
            return
        if before is None:
            assert state in ("kept", "delivered", "duplicate")
        else:
            assert state in (("delivered", "duplicate") if before.resolved_at is None else ("duplicate",))

    def a_person_says_something(self, which, *_):
        self.say(which)

    def say(self, which):
        run = self.pick(self.runs(), which)
        if run is None:
            return
        with contextlib.suppress(SignalRefused):
            state = message(run.pk, "well", "mia").state
            run.refresh_from_db()
            assert state == "kept" or run.status != "waiting"

    def somebody_decides(self, which, reply):
        self.decide(which, approved=reply != "say")

    def decide(self, which, approved):
        mine = Approval.objects.filter(organization=self.organization).order_by("id")
        approval = self.pick(list(mine), which)
        if approval is None:
            return
        try:
            if approved:
                approve(approval.pk, self.decider)
            else:
                reject(approval.pk, self.decider, "no")
        except DecisionRefused as refused:
            assert refused.code in ("ALREADY_DECIDED", "EXPIRED")

    def somebody_says_what_became_of_a_call(self, which, *_):
        """An honest person: what has not happened is tried again."""
        unknown = ToolCall.objects.filter(
            organization=self.organization, status="unknown", run__status__in=ACTIVE
        )
        made = self.pick(list(unknown.order_by("id")), which)
        if made:
            outcome = "succeeded" if made.idempotency_key in self.effects else "retry"
            with contextlib.suppress(SignalRefused):
                resolve(made.run_id, made.call_id, outcome, self.decider, result="seen")

    def somebody_cancels(self, which, *_):
        run = self.pick(self.runs(), which)
        if run is None:
            return
        with contextlib.suppress(AlreadyEnded):
            cancel(run.pk, by="mia")
            below = {run.pk}
            for other in self.runs():  # ancestors come first
                if other.pk in below or other.parent_run_id in below:
                    below.add(other.pk)
                    assert other.status not in ACTIVE

    def two_things_happen_at_once(self, which, reply):
        run = self.pick(self.runs(), which)
        if run is None:
            return
        todo = [
            lambda: cancel(run.pk),
            sweep,
            lambda: self.decide(which, True),
            lambda: self.signal(which),
            lambda: self.say(which),
        ]
        number = sorted(REPLIES).index(reply)
        for told in at_once(todo[which % 5], todo[(which + 1 + number) % 5]):
            assert told is None or not isinstance(told, Exception) or isinstance(told, AlreadyEnded), told

    @rule(what=st.sampled_from(WHAT), which=WHICH, reply=st.sampled_from(sorted(REPLIES)))
    def happens(self, what, which, reply):
        getattr(self, what)(which, reply)

    # what holds

    @invariant()
    def every_rule_holds(self):
        now = {run.pk: (run.last_seq, run.status) for run in self.runs()}
        unchanged = [run for run, seen in self.audited.items() if now[run] == seen]
        assert audit(self.organization, but=unchanged) == []
        self.audited = now

    def teardown(self):
        """Every worker dies; those that come after them carry all of it to its end."""
        try:
            Scripted.play = staticmethod(lambda messages, facts: say("DECISION: done"))
            for _ in range(100):
                if not unrest(self.organization):
                    break
                running = "status = 'running' AND driver = 'internal' AND organization_id = %s"
                execute(
                    f"UPDATE runs_run SET lease_expires_at = now(), crashes = 0 WHERE {running}",
                    [self.organization],
                )
                sweep()
                for run in self.runs(status="pending"):
                    executor.run(run.pk)
            assert unrest(self.organization) == []
            assert audit(self.organization) == []
            happened = [("", "", key) for key in self.effects]
            assert audit_effects(self.organization, happened, {"keyed_effect"}) == []
        finally:
            for lane in self.lanes:
                lane.submit(lambda: connection.close()).result(30)
                lane.shutdown()


@pytest.fixture(autouse=True)
def tools():
    """Tools that reach outside; one of them waits for an approval."""
    before = dict(registry.all_tools())

    def happen(run: ToolContext) -> str:
        Runs.effects.append(run.idempotency_key)
        return "done"

    registry.tool(name="effect", description="for a test", mutating=True)(happen)
    registry.tool(name="keyed_effect", description="for a test", mutating=True, idempotent=True)(happen)
    registry.tool(name="risky", description="for a test", mutating=True, risk_level="high")(happen)
    yield
    registry._tools.clear()
    registry._tools.update(before)


COMMON = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@pytest.fixture
def seen(monkeypatch):
    """What has happened to the model's runs, counted."""
    found, teardown, evidence = Counter(), Runs.teardown, dispatch.leave_evidence

    def counted(self):
        for run in self.runs():
            found.update([run.status, "again"] if run.attempt > 1 else [run.status])
            found.update(run.events.values_list("type", flat=True))
        teardown(self)

    def fenced(done):
        found["fenced"] += 1
        evidence(done)

    monkeypatch.setattr(Runs, "teardown", counted)
    monkeypatch.setattr(dispatch, "leave_evidence", fenced)
    return found


REACHED = (
    "run.waiting wait.completed tool.requires_approval tool.approved tool.called child.created run.cancelled "
    "fenced again"
)


def test_whatever_happens_in_whatever_order_every_rule_holds(seen):
    run_state_machine_as_test(
        Runs, settings=settings(max_examples=8, stateful_step_count=40, derandomize=True, **COMMON)
    )
    missed = [word for word in REACHED.split() if not seen[word]]
    assert not missed, f"the model proves nothing about {missed}: {seen}"


@pytest.mark.slow
@pytest.mark.parametrize("half", [1, 2])  # side by side, where there are several processes
def test_whatever_happens_in_whatever_order_every_rule_holds_for_long(half):
    run_state_machine_as_test(
        Runs, settings=settings(max_examples=50, stateful_step_count=50, print_blob=True, **COMMON)
    )
