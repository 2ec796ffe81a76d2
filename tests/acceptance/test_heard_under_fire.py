"""200 approvals while all that tells of them is killed or refuses: each is heard of, or is an alarm."""

import os
import random
import re
import threading
import time
from collections import Counter

import pytest
from django.db import connection
from django.test import override_settings

from policy.models import Capability, CapabilityRule
from runs.models import Approval, ApprovalNotice, Channel, RunEvent
from tests.acceptance.house import MODEL, until
from tests.acting import start
from tests.factories import MembershipFactory
from tests.receiver import Receiver, SmtpController

pytestmark = pytest.mark.slow

APPROVALS = int(os.environ.get("DEPUTY_APPROVALS", "200"))
WITHIN = 60.0  # seconds from the request to the first word, or the alarm
SEED = int(os.environ.get("DEPUTY_SEED", "20"))
LINK = re.compile(r"/approvals/(apr_\w+)/\s")
MORE = re.compile(r"… and (\d+) more")


class Mail:
    """An SMTP server that refuses some of what it is sent, and hangs up on some."""

    def __init__(self, chance: random.Random) -> None:
        self.got: list[str] = []
        self.refused = 0
        mail = self

        class Handler:
            async def handle_DATA(self, server, session, envelope):
                if chance.random() < 0.4:
                    mail.refused += 1
                    return "451 Not now"
                mail.got.append(envelope.content.decode())
                return "250 OK"

        self.controller = SmtpController(Handler(), hostname="127.0.0.1", port=0)
        self.controller.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.controller.server.sockets[0].getsockname()[1]}"


@pytest.fixture
def chance():
    return random.Random(SEED)


@pytest.fixture
def mail(chance):
    made = Mail(chance)
    yield made
    made.controller.stop()


@pytest.fixture
def chat(chance):
    made = Receiver(lambda number: chance.choice([200, 200, 200, 503, 429, None]))
    yield made
    made.close()


@pytest.fixture
def deciders(world, chat):
    """One who is written to, one who has a chat as well, and a chat of the organization."""
    organization = world.project.organization
    capability = Capability.objects.create(organization=organization, name="mail")
    capability.bindings.create(organization=organization, pattern="send_*")
    CapabilityRule.objects.create(organization=organization, capability=capability, effect="require_approval")
    people = [
        MembershipFactory(organization=organization, user__email=f"{name}@example.org", role="decider").user
        for name in ("ada", "ben")
    ]
    for user, path in ((people[0], "ntfy://{}/ada"), (None, "mmost://{}/abcdefghijklmnopqrstuvwx")):
        channel = Channel(organization=organization, user=user, kind="chat")
        channel.keep_address(path.format(chat.place), "chat")
        channel.save()
    return people


class Fire(threading.Thread):
    """Kills a carrier or a worker of the cluster every now and then, until it is put out."""

    def __init__(self, cluster, chance) -> None:
        super().__init__(daemon=True)
        self.cluster, self.chance, self.out, self.killed = cluster, chance, threading.Event(), Counter()

    def run(self) -> None:
        while not self.out.wait(self.chance.uniform(4.0, 12.0)):
            kind = self.chance.choice(["carrier", "worker"])
            found = self.cluster.carriers() if kind == "carrier" else self.cluster.workers()
            if found:
                try:
                    self.cluster.kill(self.chance.choice(found))
                    self.killed[kind] += 1
                except ProcessLookupError:
                    continue


def said_in(body: bytes) -> str:
    """A chat's message: JSON writes line ends and dots otherwise."""
    return body.decode().replace("\\n", "\n").replace("\\u2026", "…")


def told_in(text: str) -> Counter:
    return Counter(LINK.findall(text + "\n"))


def latency(approval, alarms) -> float:
    """Seconds until somebody was told, or the alarm was raised."""
    first = ApprovalNotice.objects.filter(approval=approval, kind="asked", sent_at__isnull=False)
    moments = [*first.values_list("sent_at", flat=True), *alarms.get(approval.pk, ())]
    return min(((at - approval.requested_at).total_seconds() for at in moments), default=float("inf"))


def test_every_approval_is_heard_of_or_raises_an_alarm(house, world, deciders, mail, chat, chance):
    cluster = house.cluster(
        DEPUTY_SMTP=mail.address, NOTIFY_ALLOW=chat.place, NOTIFY_SECONDS="5", OPEN_APPROVALS_PERSON="1000"
    )
    fire = Fire(cluster, chance)
    fire.start()
    for _ in range(APPROVALS):
        with override_settings(DEPUTY_MODEL=MODEL):
            start(user=world.user, project=world.project, goal="letter 0", context=world.group.pk)
        time.sleep(0.1)
    asked = Approval.objects.filter(organization=world.project.organization)
    until(lambda: asked.count() == APPROVALS, 300, said=cluster.said)
    time.sleep(WITHIN)  # whoever is heard of by then counts, and nobody else
    fire.out.set()
    fire.join()
    connection.ensure_connection()

    alarms: dict[str, list] = {}
    for event in RunEvent.objects.filter(type="approval.followed_up", payload__what="alarm"):
        alarms.setdefault(event.payload["approval"], []).append(event.created_at)
    waited = sorted(latency(approval, alarms) for approval in asked)
    texts = mail.got + [said_in(body) for *_, body, status in chat.got if status == 200]
    middle, late = waited[len(waited) // 2], waited[int(len(waited) * 0.95)]
    print(
        f"first word: median {middle:.1f} s, 95 % {late:.1f} s, longest {waited[-1]:.1f} s; "
        f"killed {dict(fire.killed)}; mail took {len(mail.got)}, refused {mail.refused}; "
        f"chat answered {dict(Counter(status for *_, status in chat.got))}; alarms for {len(alarms)}"
    )
    assert waited[-1] <= WITHIN, cluster.said()[-6000:]
    assert sum(fire.killed.values()) >= 5 and mail.refused
    assert texts and all(max(told_in(text).values(), default=0) <= 1 for text in texts)
    shown = {approval for text in texts for approval in told_in(text)}
    assert shown <= set(asked.values_list("pk", flat=True))
    assert len(shown) + sum(int(count) for text in texts for count in MORE.findall(text)) >= APPROVALS
