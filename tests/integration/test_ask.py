"""`manage.py ask`: what it shows, how it ends, and what it says to what does not exist."""

import json
import os
from io import StringIO
from types import SimpleNamespace

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.management import CommandError, call_command

from groups.models import Group
from runs.demo import world
from runs.management.commands import ask as command
from runs.models import Approval, Run, RunEvent
from runs.terminal import follow
from tests.acting import approve, reject
from tests.scripted import Scripted, by_role, call, in_order, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo(settings):
    made = world.load()
    settings.DEPUTY_MODEL = "local"
    return made


def ask(goal, **options):
    """(exit status, what was printed)."""
    said = StringIO()
    try:
        call_command("ask", goal, stdout=said, inline=True, **options)
    except SystemExit as ended:
        return ended.code, said.getvalue()
    return 0, said.getvalue()


def approver():
    return get_user_model().objects.get(username="approver")


@pytest.fixture
def when_parked(monkeypatch):
    """Do something, once, when the command would sleep, as somebody else would meanwhile."""

    def plan(*actions):
        left = list(actions)

        def sleep(seconds):
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(follow, "time", SimpleNamespace(sleep=sleep, monotonic=follow.time.monotonic))

    return plan


def test_a_group_answers_and_every_speaker_is_shown(demo):
    status, said = ask("What do our competitors charge?")

    assert status == 0
    speakers = ("researcher", "analyst", "lead")
    for shown in ("passes it on to Competitor analysis", *speakers, "Borealis charges 12 euros"):
        assert shown in said
    assert Run.objects.get(kind="group").group.name == "Competitor analysis"


def test_an_approval_is_shown_with_its_link_and_waited_for(demo, settings, when_parked):
    settings.PUBLIC_URL = "https://deputy.example.com"
    when_parked(lambda: approve(Approval.objects.get().pk, approver()))
    status, said = ask("Email ann@example.com that lunch is at noon")

    assert status == 0
    assert (
        "needs an approval for send_email" in said
        and f"https://deputy.example.com/approvals/{Approval.objects.get().pk}/" in said
    )
    assert "approved by approver" in said
    assert [message.to for message in mail.outbox] == [["ann@example.com"]]


def test_a_rejection_reaches_the_answer(demo, when_parked):
    when_parked(lambda: reject(Approval.objects.get().pk, approver(), "Lunch is cancelled"))
    status, said = ask("Email ann@example.com that lunch is at noon")

    assert status == 0 and not mail.outbox
    assert "Lunch is cancelled" in said.splitlines()[-1] or "Lunch is cancelled" in said


def test_ctrl_c_leaves_a_waiting_run_waiting(demo, when_parked):
    when_parked()
    status, said = ask("Email ann@example.com that lunch is at noon")

    run = Run.objects.get()
    assert (status, run.status) == (3, "waiting")
    assert "waits for an approval" in said and run.pk in said


def test_no_wait_leaves_at_once(demo):
    status, said = ask("Email ann@example.com that lunch is at noon", wait=False)
    assert status == 3 and "waits for an approval" in said


def test_json_is_one_object(demo):
    status, said = ask("What do our competitors charge?", json=True)
    told = json.loads(said)

    run = Run.objects.get(kind="personal")
    assert status == 0
    assert told == {"run": run.pk, "status": "completed", "output": run.output, "error": None}


def test_json_with_events_has_those_of_the_whole_tree(demo):
    _, said = ask("What do our competitors charge?", json=True, events=True)
    events = json.loads(said)["events"]

    assert len(events) == RunEvent.objects.count()
    assert {event["run"] for event in events} == set(Run.objects.values_list("pk", flat=True))
    assert events[0]["type"] == "run.created" and events[-1]["type"] == "run.completed"


def test_a_group_that_is_named_gets_the_goal(demo):
    group = Group.objects.get(name="Code review")
    status, _ = ask("What do our competitors charge?", group=group.pk)

    run = Run.objects.get(kind="personal")
    created = RunEvent.objects.get(run=run, type="run.created").payload
    assert status == 0
    assert created["escalate_to"] == {"group_id": group.pk, "name": group.name}
    assert run.group is None, "a personal agent's rights and memories are not the group's"
    assert Run.objects.get(kind="group").group == group


def test_a_chat_model_is_told_which_group_is_wanted(demo, settings):
    settings.DEPUTY_MODEL = "scripted"
    Scripted.asked = []
    Scripted.play = staticmethod(in_order(say("Fine.")))
    group = Group.objects.get(name="Operations")
    ask("Hello", group=group.name)

    prompt, _ = Scripted.asked[0]
    assert f"**Operations** ({group.pk})" in prompt[0].content.split("## Requested group")[1]


def test_a_failed_run_ends_with_1(demo, settings):
    settings.DEPUTY_MODEL = "scripted"
    Scripted.play = staticmethod(lambda messages, facts: call(("list_available_groups", {})))
    status, said = ask("Go round in circles")
    assert status == 1 and "REPEATED_CALLS" in said


def test_a_cancelled_run_ends_with_1(demo, when_parked):
    from tests.acting import cancel

    when_parked(lambda: cancel(Run.objects.get().pk, by="member"))
    status, said = ask("Email ann@example.com that lunch is at noon")
    assert status == 1 and "Cancelled by member" in said


def test_a_timer_is_swept_without_a_cluster(demo, settings, when_parked):
    from common.db import execute
    from runs.providers.base import ProviderError

    settings.DEPUTY_MODEL = "scripted"
    busy = ProviderError("MODEL_RATE_LIMITED", "busy", retryable=True, retry_after=60)
    Scripted.play = staticmethod(in_order(busy, say("Here.")))
    past = "UPDATE runs_wait SET expires_at = clock_timestamp() - interval '1 second'"
    when_parked(lambda: execute(past))
    follower_sweeps = follow.SWEEP
    follow.SWEEP = -1.0
    try:
        status, said = ask("Hello")
    finally:
        follow.SWEEP = follower_sweeps
    assert status == 0 and "asking again in 60" in said and said.strip().endswith("Here.")


def test_a_session_goes_on(demo, settings):
    settings.DEPUTY_MODEL = "scripted"
    Scripted.asked = []
    Scripted.play = staticmethod(in_order(say("Blue."), say("Still blue.")))
    ask("Which colour?", session="s1")
    ask("And now?", session="s1")
    prompt, _ = Scripted.asked[-1]
    assert [m.content for m in prompt if m.role != "system"] == ["Which colour?", "Blue.", "And now?"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"user": "nobody"}, ["'nobody'", "admin, approver, member, robot"]),
        ({"project": "zeus"}, ["'zeus'", "atlas"]),
        ({"group": "grp_x"}, ["'grp_x'", "Competitor analysis", "Code review", "Operations"]),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(demo, options, words):
    with pytest.raises(CommandError) as refused:
        ask("Hello", **options)
    assert "\n" not in str(refused.value)
    assert all(word in str(refused.value) for word in words)
    assert not Run.objects.exists()


def test_without_the_demo_it_says_how_to_get_it(db):
    with pytest.raises(CommandError, match=r"manage\.py demo"):
        ask("Hello")


def test_an_empty_goal_is_refused_in_words(demo):
    with pytest.raises(CommandError, match="goal is empty"):
        ask("  ")


def test_what_agents_say_cannot_steer_the_terminal(demo, settings):
    settings.DEPUTY_MODEL = "scripted"
    Scripted.play = staticmethod(
        by_role(
            Personal_agent=[
                call(("list_available_groups", {}), content="[bold]look\x1b[2J here"),
                say("[red]done\x1b]0;title\x07[/red]"),
            ]
        )
    )
    _, said = ask("Hello")
    assert "[bold]look[2J here" in said and "[red]done]0;title[/red]" in said
    assert not any(ord(character) < 32 and character != "\n" for character in said)


def test_chinese_is_understood_whatever_the_locale(monkeypatch):
    typed = "分析竞品".encode()
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    assert command.given(typed.decode("ascii", "surrogateescape")) == "分析竞品"
    assert command.given("分析竞品") == "分析竞品", "as call_command passes it"
