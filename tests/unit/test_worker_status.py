"""The page that a cluster's processes share: what is read is whole, and who died is known."""

import os
import signal
import subprocess
import sys
import time

import pytest

from runs.queue import broker, worker_status
from runs.queue.worker_status import BUSY, DEATHS, IDLE, Death, WorkerStatus, is_ours

ROUNDS = 20_000
DIFFERENT = 100  # moments at least


@pytest.fixture
def page():
    page = WorkerStatus()
    page.use(0)
    page.ready()
    return page


def test_what_is_read_while_another_process_writes_is_always_of_one_moment(page):
    writer = os.fork()
    if writer == 0:
        try:
            number = 0
            while True:
                number += 1
                page.hold(f"run_{number}", number)
        finally:
            os._exit(0)
    try:
        seen, looks = set(), 0
        while looks < ROUNDS or len(seen) <= DIFFERENT:  # the writer may have got little of a busy machine
            looks += 1
            (member,) = page.workers()
            assert member.holds == (f"run_{member.attempt}" if member.attempt else "")
            assert member.takes > 0
            seen.add(member.attempt)
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)


def test_a_writer_that_was_killed_in_the_middle_leaves_what_it_wrote_before(page):
    page.begin(7)
    before = page.workers()
    newest = max((0, 1), key=lambda which: page.slots.read(which)[0])
    page.hold("run_1", 1)
    middle = page.slots.at + (1 - newest) * page.slots.size + page.slots.size // 2
    page.page[middle] ^= 0xFF

    assert page.workers() == before


def test_a_worker_says_which_message_it_is_at_and_whose_lease_it_keeps(page):
    page.begin(7)
    page.hold("run_1", 2)
    (member,) = page.workers()
    assert (member.doing, member.message, member.holds, member.attempt) == (BUSY, 7, "run_1", 2)

    page.end()
    (member,) = page.workers()
    assert (member.doing, member.message, member.holds, member.begun) == (IDLE, 0, "", 1)


def test_deaths_are_told_in_order_until_they_are_dealt_with(page):
    deaths = [Death(number, number * 10, 1, True, f"run_{number}") for number in range(1, DEATHS + 2)]
    assert [page.tell(death) for death in deaths] == [True] * DEATHS + [False]
    assert page.unsettled() == deaths[:DEATHS]

    page.settled(2)
    assert page.tell(deaths[-1])
    assert page.unsettled() == [*deaths[2:DEATHS], deaths[-1]]


def test_a_process_of_another_session_that_has_got_the_number_is_not_ours():
    # Each in a session of its own: this process's is 0 where its leader is outside the container.
    ours, stranger = (
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        for _ in range(2)
    )
    try:
        assert is_ours(stranger.pid, os.getsid(stranger.pid))
        assert not is_ours(stranger.pid, os.getsid(ours.pid))
        assert not is_ours(1, os.getsid(ours.pid))
    finally:
        for process in (ours, stranger):
            process.kill()
            process.wait()


def test_a_first_process_that_has_not_been_heard_of_in_time_is_silent(page):
    assert page.silent == 0
    page.promise(60)
    assert page.silent == 0
    page.promise(-1)
    assert page.silent >= 1


def test_slots_are_kept_for_a_process_until_it_has_been_forked(page):
    page._choose_slot()
    first = page.next_slot
    page._choose_slot()

    assert (first, page.next_slot) == (1, 2)
    assert [member.slot for member in page.members()] == [0]


def test_whatever_goes_wrong_while_messages_are_taken_the_process_goes_on(monkeypatch):
    monkeypatch.setattr(broker, "AWAY_SECONDS", 0.0)
    taking = broker.PostgresBroker("deputy")
    monkeypatch.setattr(broker.Taker, "take", lambda self: 1 / 0)

    assert taking.dequeue() is None


def test_a_lease_shows_in_the_page_while_it_is_held(page, monkeypatch):
    from runs.queue import lease

    monkeypatch.setattr(worker_status, "current", page)
    monkeypatch.setattr(lease, "_start", lambda: None)
    with lease.held("run_1", 3):
        assert [(member.holds, member.attempt) for member in page.workers()] == [("run_1", 3)]
    assert [member.holds for member in page.workers()] == [""]


class TestWatchdog:
    """What the watchdog does with a group: a process in a session of its own, that stands for it."""

    @pytest.fixture
    def group(self):
        from runs.workers.watchdog import Group

        process = subprocess.Popen(["sleep", "60"], start_new_session=True)
        group = Group(WorkerStatus(), "a group", process.pid)
        group.page.use(0)
        yield group
        group.kill()
        process.returncode = -9

    def worker(self, group, pid, **held):
        group.page._become(doing=BUSY, **held)
        member = group.page._read(0)
        group.page._put(worker_status.replace(member, pid=pid, session=group.pid))

    def test_a_worker_that_died_is_told_of_and_its_slot_is_free(self, group):
        dead = subprocess.Popen(["true"])
        dead.wait()
        self.worker(group, dead.pid, message=9, holds="run_1", attempt=4)

        assert group.complaint() is None
        assert group.deaths == [Death(dead.pid, 9, 4, True, "run_1")]
        assert not list(group.page.members())

    def test_what_was_ended_with_its_group_is_no_fault_of_its_run(self, group):
        self.worker(group, group.pid, message=9, holds="run_1", attempt=4)
        group.kill()

        assert group.deaths == [Death(group.pid, 9, 4, False, "run_1")]

    def test_no_signal_goes_to_a_process_that_is_not_of_the_group(self, group):
        stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
        try:
            group._send(signal.SIGKILL, stranger.pid)
            time.sleep(0.1)
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()

    def test_a_group_whose_first_process_has_fallen_silent_is_replaced(self, group):
        group.page.promise(-1)
        assert group.complaint() == "the group's first process has fallen silent"
