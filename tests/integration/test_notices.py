"""Those who may decide are written to: who, how often, and what is never in the mail."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.signing import SignedPackage

from policy.models import Capability, CapabilityRule
from runs.models import Approval, ApprovalNotice, Channel, QueueMessage
from runs.notices import delivery, message
from runs.queue import put
from runs.workers import tasks
from tests.acting import approve
from tests.factories import MembershipFactory
from tests.integration.api_client import permit
from tests.scripted import call, in_order, say

from .test_decisions import decider

pytestmark = pytest.mark.django_db

SECRET = {"to": ["secret@example.com"], "subject": "Salaries", "body": "Everybody earns 1"}


@pytest.fixture(autouse=True)
def queued(monkeypatch, settings):
    """What is asked of the queue, in order: (task, arguments, delay)."""
    settings.PUBLIC_URL = "https://deputy.example"
    found = []

    def enqueue_task(name, *args, delay=0, turn=None):
        if name == "deliver" and not delay:  # what is for now is done now
            tasks.deliver(*args)
        else:
            found.append((name, args, delay))

    monkeypatch.setattr(put, "enqueue_task", enqueue_task)
    return found


@pytest.fixture
def rule(world):
    capability = Capability.objects.create(organization=world.organization, name="mail")
    capability.bindings.create(organization=world.organization, pattern="send_*")
    return CapabilityRule.objects.create(
        organization=world.organization,
        capability=capability,
        effect="require_approval",
        name="mail is checked",
    )


@pytest.fixture
def asked(ask, rule):
    """A run that asks to send a mail; returns its approval."""

    def _asked(**fields):
        for name, value in fields.items():
            setattr(rule, name, value)
        rule.save()
        run = ask(in_order(call(("send_email", SECRET)), say("done")))
        return Approval.objects.get(run=run)

    return _asked


def addresses():
    return sorted(address for message in mail.outbox for address in message.to)


def mail_of(user):
    return Channel.objects.get(user=user, kind="email")


def earlier(seconds):
    ApprovalNotice.objects.filter(sent_at__isnull=False).update(
        sent_at=timezone.now() - timedelta(seconds=seconds)
    )


def test_asking_for_an_approval_queues_the_notice_and_sends_nothing_in_the_step(asked, queued, world):
    decider(world, name="zoe")
    approval = asked()

    assert queued == [("notify", (approval.pk,), 0)]
    assert mail.outbox == []


def test_the_mail_says_tool_capability_for_whom_why_and_where_but_no_argument(asked, world):
    decider(world, name="zoe")
    approval = asked()
    tasks.notify(approval.pk)

    (message,) = mail.outbox
    assert message.to == ["zoe@example.com"]
    assert message.subject == "Deputy: send_email waits for your decision"
    for words in (
        "send_email (mail), for mia in Atlas",
        "Tool 'send_email' requires approval: mail is checked",
        f"https://deputy.example/approvals/{approval.pk}/",
    ):
        assert words in message.body
    assert "To s…@example.com" in message.body
    for word in ("secret", "Salaries", "earns"):
        assert word not in message.subject + message.body


def test_only_people_with_an_address_who_see_the_project_and_may_decide_are_written_to(asked, world):
    decider(world, name="zoe")
    decider(world, name="robot", kind="service")
    decider(world, name="gone", active=False)
    decider(world, name="elsewhere", projects=[])
    silent = decider(world, name="silent")
    silent.email = ""
    silent.save()
    MembershipFactory(organization=world.organization, user__username="plain", user__email="p@example.com")
    tasks.notify(asked().pk)

    assert addresses() == ["zoe@example.com"]


@pytest.mark.parametrize(
    ("effect", "self_approval", "told"),
    [
        ("require_approval", False, True),
        ("require_human", False, False),
        ("require_human", True, True),
    ],
)
def test_the_runs_own_user_is_told_only_where_they_may_decide(asked, world, effect, self_approval, told):
    mia = world.user
    mia.email = "mia@example.com"
    mia.save()
    decider(world, name="zoe")
    permit(mia, "decide_approval")
    world.project.allow_self_approval = self_approval
    world.project.save()
    tasks.notify(asked(effect=effect).pk)

    assert addresses() == (["mia@example.com"] if told else []) + ["zoe@example.com"]


def test_later_approvals_are_gathered_in_one_mail(asked, world, queued):
    zoe = decider(world, name="zoe")
    tasks.notify(asked().pk)
    later = [asked(), asked()]
    queued.clear()
    for approval in later:
        tasks.notify(approval.pk)

    assert len(mail.outbox) == 1
    assert [(name, args) for name, args, _ in queued] == [
        ("deliver", (mail_of(zoe).pk,))  # one message that takes both along
    ]
    assert 0 < queued[0][2] <= 30

    earlier(61)
    tasks.deliver(*queued[0][1])
    assert [message.subject for message in mail.outbox[1:]] == ["Deputy: 2 calls wait for your decision"]
    assert all(approval.pk in mail.outbox[1].body for approval in later)


def test_what_was_decided_meanwhile_is_left_out(asked, world):
    zoe = decider(world, name="zoe")
    tasks.notify(asked().pk)
    decided, still_open = asked(), asked()
    tasks.notify(decided.pk)
    tasks.notify(still_open.pk)
    approve(decided.pk, zoe)
    earlier(61)
    tasks.deliver(mail_of(zoe).pk)

    assert still_open.pk in mail.outbox[1].body
    assert decided.pk not in mail.outbox[1].body


def test_the_same_message_again_sends_nothing_again(asked, world):
    decider(world, name="zoe")
    approval = asked()
    tasks.notify(approval.pk)
    earlier(61)
    tasks.notify(approval.pk)

    assert len(mail.outbox) == 1


@pytest.mark.parametrize("status", ["approved", "expired"])
def test_an_approval_that_no_longer_waits_is_not_announced(asked, world, status):
    decider(world, name="zoe")
    approval = asked()
    if status == "approved":
        Approval.objects.filter(pk=approval.pk).update(status=status)
    else:
        Approval.objects.filter(pk=approval.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    tasks.notify(approval.pk)
    tasks.notify("apr_gone")

    assert mail.outbox == []


def test_mail_that_could_not_be_sent_is_tried_again_later(asked, world, queued, monkeypatch):
    zoe = decider(world, name="zoe")
    approval = asked()
    queued.clear()

    def refuse(*_):
        raise ConnectionRefusedError

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)
    tasks.notify(approval.pk)
    assert queued == [("deliver", (mail_of(zoe).pk, "1"), delivery.RETRY_SECONDS[0])]

    monkeypatch.undo()
    tasks.deliver(mail_of(zoe).pk)
    assert addresses() == ["zoe@example.com"]


def test_a_channel_that_fails_is_tried_again_once_however_many_notices_it_is_asked_for(
    asked, world, queued, monkeypatch
):
    zoe = decider(world, name="zoe")
    sent = []

    def refuse(*_):
        sent.append(1)
        raise ConnectionRefusedError

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)
    for approval in [asked() for _ in range(5)]:
        tasks.notify(approval.pk)
    for _ in range(4):
        waiting, sent[:] = [each for each in queued if each[0] == "deliver"], []
        queued.clear()
        for _, arguments, _ in waiting:
            tasks.deliver(*arguments)
        waiting_still = [each for each in queued if each[0] == "deliver"]
        assert len(sent) == len(waiting_still) == 1
        assert waiting_still[0][1][0] == mail_of(zoe).pk


def test_a_mail_about_very_many_names_some_and_counts_the_rest(asked, world, monkeypatch):
    monkeypatch.setattr(message, "MOST_SHOWN", 1)
    decider(world, name="zoe")
    tasks.notify(asked().pk)
    approvals = [asked(), asked(), asked()]
    for approval in approvals:
        tasks.notify(approval.pk)
    earlier(61)
    tasks.deliver(Channel.objects.get().pk)

    body = mail.outbox[1].body
    assert approvals[0].pk in body
    assert approvals[1].pk not in body
    assert "… and 2 more: https://deputy.example/waiting/" in body


def test_the_queue_takes_a_notice_and_its_delay(db, settings, monkeypatch):
    monkeypatch.undo()  # the real queue
    settings.QUEUE_ENABLED = True
    before = timezone.now()
    put.enqueue_task("deliver", "chn_1", delay=45)

    message = QueueMessage.objects.get()
    task = SignedPackage.loads(message.payload)
    assert import_string(task["func"]) is tasks.deliver
    assert (task["args"], message.run_id) == (("chn_1",), None)
    assert timedelta(seconds=44) < message.due_at - before < timedelta(seconds=60)
