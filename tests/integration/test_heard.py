"""No request goes unheard: channels, turns, stand-ins, alarms, and decisions from a message."""

import base64
import hashlib
import hmac
import json
import time
from datetime import timedelta
from types import SimpleNamespace

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.contrib.admin.models import CHANGE, LogEntry
from django.core import mail, signing
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import translation

from groups import changes, readers
from groups.actors import CONFIRMED_AT
from groups.member_permissions import DECIDES, LOOKS
from groups.models import Absence, Change, CustomRole, Membership
from policy.authority import NotAllowed, about
from policy.models import Capability, CapabilityRule
from runs.actions import channels
from runs.actions.channels import ChannelRefused
from runs.actions.decide import DecisionRefused
from runs.api import slack_hook
from runs.execution import executor
from runs.gate import demands
from runs.models import Approval, ApprovalNotice, ApprovalWatch, Channel, ChatAccount, RunEvent
from runs.notices import chat, delivery, message, push, senders, slack, watch
from runs.notices.base import BadAddress, Item, Message, NotSent
from runs.observe.alarms import alarms
from runs.queue import put
from runs.workers import tasks
from tests.acting import approve, at_the_pages, by_token
from tests.admin_world import person, superuser
from tests.at_once import at_once
from tests.factories import ProjectFactory, permit
from tests.receiver import Receiver, SmtpController
from tests.scripted import call, in_order, say

from .test_decisions import decider

pytestmark = pytest.mark.django_db

MAIL = {"to": ["ann@example.com"], "subject": "Salaries", "body": "Everybody earns 1"}
SAID = Message(
    "Deputy: a test", (Item("send_email, for mia in Atlas", ("Why",), "https://deputy.example/x"),)
)


@pytest.fixture(autouse=True)
def now(monkeypatch, settings):
    """What is asked of the queue for now is done now."""
    settings.PUBLIC_URL = "https://deputy.example"

    def enqueue_task(name, *args, delay=0, **_):
        if name == "deliver" and not delay:
            tasks.deliver(*args)

    monkeypatch.setattr(put, "enqueue_task", enqueue_task)


@pytest.fixture
def receiver(settings):
    found = Receiver()
    settings.NOTIFY_ALLOW = [found.place]
    yield found
    found.close()


@pytest.fixture
def rule(world):
    capability = Capability.objects.create(organization=world.organization, name="mail")
    capability.bindings.create(organization=world.organization, pattern="send_*")
    return CapabilityRule.objects.create(
        organization=world.organization, capability=capability, effect="require_approval", name="checked"
    )


@pytest.fixture
def asked(ask, rule):
    def _asked(**fields):
        for name, value in fields.items():
            setattr(rule, name, value)
        rule.save()
        return Approval.objects.get(run=ask(in_order(call(("send_email", MAIL)), say("done"))))

    return _asked


def told():
    return sorted(address for one in mail.outbox for address in one.to)


def member_of(user):
    return Membership.objects.get(user=user)


def named(*users):
    return [f"member:{member_of(user).pk}" for user in users]


def older(approval, **ago):
    """As if it had been asked for so long ago, with the end where it was."""
    Approval.objects.filter(pk=approval.pk).update(requested_at=Now() - timedelta(**ago))


def followed_up(approval):
    events = RunEvent.objects.filter(run=approval.run_id, type="approval.followed_up").order_by("seq")
    return [event.payload["what"] for event in events]


def away(user, stand_in, **fields):
    return Absence.objects.create(
        organization=member_of(user).organization,
        membership=member_of(user),
        stand_in=member_of(stand_in),
        **{"starts_at": Now() - timedelta(days=1), "ends_at": Now() + timedelta(days=1), **fields},
    )


# Durable


def test_what_watches_an_approval_is_written_with_it(asked, world):
    decider(world, name="zoe")
    approval = asked()
    assert ApprovalWatch.objects.filter(approval=approval, alarm="").exists()
    assert mail.outbox == []

    assert watch.attend_due() == 1  # nothing but the row is left of it
    assert told() == ["zoe@example.com"]


def test_whoever_is_told_twice_over_is_told_once(asked, world):
    decider(world, name="zoe")
    approval = asked()
    for _ in range(3):
        watch.attend(approval.pk)
    assert told() == ["zoe@example.com"]


def test_a_thin_organization_says_neither_what_nor_for_whom(asked, world):
    decider(world, name="zoe")
    world.organization.thin_notices = True
    world.organization.save()
    watch.attend(asked().pk)
    text = mail.outbox[0].subject + mail.outbox[0].body
    assert "send_email" not in text and "mia" not in text and "example.com, " not in text
    assert "https://deputy.example/approvals/" in text


# Channels


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("ada@example.org", ["a…@example.org"]),
        ("a@[Approve](https://evil.example/)", []),
        ("https://[Approve](evil.example)/", []),
        ("https://a*b_.example.org/x", []),
        ("\u202eb@moc.elpmaxe", ["⟨U+202E⟩…@moc.elpmaxe"]),
        ("https://shop.example.org:8080/x", ["shop.example.org"]),
        ("https://evil.example/?to=ada@example.org", ["evil.example"]),
        ("ada@example.org, bo@evil.example", ["a…@example.org", "b…@evil.example"]),
        ('"ada@example.org" <bo@evil.example>', ["a…@example.org", "b…@evil.example"]),
        (f"https://{'example.org.' * 9}evil.example/", [f"…{('example.org.' * 9)[-67:]}evil.example"]),
        (f"ada@{'example.org.' * 9}evil.example", [f"a…@…{('example.org.' * 9)[-67:]}evil.example"]),
    ],
)
def test_where_a_call_would_go_holds_no_marks_of_a_chat(target, told):
    assert message._targets(target) == told


def test_a_real_mail_server_is_written_to(asked, world, settings):
    got = []

    class Handler:
        async def handle_DATA(self, server, session, envelope):
            got.append((envelope.rcpt_tos, envelope.content.decode()))
            return "250 OK"

    controller = SmtpController(Handler(), hostname="127.0.0.1", port=0)
    controller.start()
    try:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", controller.port
        decider(world, name="zoe")
        watch.attend(asked().pk)
    finally:
        controller.stop()
    assert got[0][0] == ["zoe@example.com"] and "send_email" in got[0][1]


@pytest.mark.parametrize(
    ("address", "where"),
    [("ntfy://{place}/topic", "/"), ("mmost://{place}/abcdefghijklmnopqrstuvwx", "/hooks/")],
)
def test_chats_that_the_operator_allows_get_the_message(address, where, receiver):
    senders.found("chat").send(address.format(place=receiver.place), SAID, "chn")
    path, _, body, _ = receiver.got[0]
    assert path.startswith(where)
    assert b"send_email, for mia in Atlas" in body and b"https://deputy.example/x" in body


@pytest.mark.parametrize(
    "address",
    [
        "json://127.0.0.1/x",
        "mailto://a:b@example.org",
        "file:///etc/passwd",
        "dbus://",
        "syslog://",
        "https://example.org/x",
        "ntfy://169.254.169.254/topic",
        "mmost://localhost/abcdefghijklmnopqrstuvwx",
        "ntfy://topic?template=/etc/passwd",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?template=http://127.0.0.1/",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?verify=no",
        "ntfy://t\nopic",
        "",
    ],
)
def test_addresses_that_lead_elsewhere_are_refused(address):
    with pytest.raises(BadAddress):
        chat.check(address)


def test_no_plugin_reaches_the_network_by_another_way_than_the_guard(receiver, settings, monkeypatch):
    address = f"ntfy://{receiver.place}/topic"
    chat.check(address)
    settings.NOTIFY_ALLOW = []  # what was allowed when it was entered is not any more
    with pytest.raises(NotSent, match="not one of this service's"):
        chat.send(address, SAID, "chn")
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("it went round the guard"))
    monkeypatch.setattr(chat, "fetch", lambda url, **_: asked_of.append(url) or pytest.fail(url))
    asked_of = []
    for scheme in (
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "discord://4174216298/JHMHI8qBe7bk2Zw",
    ):
        with pytest.raises(BaseException, match="https://"):
            chat.send(scheme, SAID, "chn")
    assert [url.split("/")[2] for url in asked_of] == ["hooks.slack.com", "discord.com"]


def test_a_fixed_service_at_a_private_address_is_refused(monkeypatch):
    looked_up = [(2, 1, 6, "", ("10.0.0.7", 443))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: looked_up)
    with pytest.raises(NotSent, match="ADDRESS_REFUSED"):
        chat.send("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", SAID, "chn")


def test_teams_gets_an_adaptive_card(monkeypatch):
    got = []

    def fetch(url, **options):
        got.append((url, json.loads(options["content"])))
        return SimpleNamespace(status=202, url=url, headers={}, text="")

    monkeypatch.setattr(chat, "fetch", fetch)
    chat.send("workflows://prod-1.logic.azure.com:443/643e69f83c8944/SIGNATURE0", SAID, "chn")
    url, body = got[0]
    assert url.startswith("https://prod-1.logic.azure.com")
    (attached,) = body["attachments"]
    assert body["type"] == "message"
    assert attached["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attached["content"]["type"] == "AdaptiveCard" and attached["content"]["version"]
    assert {one["type"] for one in attached["content"]["body"]} <= {
        "TextBlock",
        "Container",
        "Image",
        "ColumnSet",
    }


def test_a_chats_address_is_kept_encrypted_and_never_shown(world, client):
    world.user.email = "mia@example.com"
    world.user.save()
    actor = at_the_pages(world.user, world.organization.pk)
    channel = channels.add_own(actor, "chat", "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js")
    assert "JHMHI8" not in channel.sealed_address + channel.shown
    client.force_login(world.user)
    page = client.get(reverse("web:notices")).content.decode()
    assert "JHMHI8" not in page and "discord" in page


def test_a_test_says_whether_it_left(world, receiver):
    actor = at_the_pages(world.user, world.organization.pk)
    channel = channels.add_own(actor, "chat", f"ntfy://{receiver.place}/topic")
    assert channels.try_channel(actor, channel) == ""
    receiver.close()
    assert channels.try_channel(actor, channel) != ""
    channel.refresh_from_db()
    assert channel.failing_since is not None


def test_what_one_channel_did_not_take_is_sent_to_it_again_and_not_to_the_other(asked, world, receiver):
    zoe = decider(world, name="zoe")
    actor = at_the_pages(zoe, world.organization.pk)
    ntfy = channels.add_own(actor, "chat", f"ntfy://{receiver.place}/topic")
    receiver.answers = lambda number: 503 if number == 0 else 200
    watch.attend(asked().pk)
    assert len(receiver.got) == 1 and told() == ["zoe@example.com"]
    tasks.deliver(ntfy.pk)
    assert [status for *_, status in receiver.got] == [503, 200] and told() == ["zoe@example.com"]


def test_an_organizations_channel_is_told_of_its_project_alone(asked, world, receiver):
    decider(world, name="zoe")
    channel = Channel(organization=world.organization, kind="chat", project=world.project)
    channel.keep_address(f"ntfy://{receiver.place}/topic", "ntfy")
    channel.save()
    watch.attend(asked().pk)
    assert receiver.json()["topic"] == "topic"


def test_web_push_is_encrypted_for_the_browser_and_signed_by_the_installation(receiver):
    private, auth = ec.generate_private_key(ec.SECP256R1()), b"0123456789abcdef"
    point = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    keys = {name: base64.urlsafe_b64encode(v).decode() for name, v in (("p256dh", point), ("auth", auth))}
    address = json.dumps({"endpoint": f"http://{receiver.place}/push/1", "keys": keys})
    push.check(address)
    push.send(address, SAID, "chn")

    path, headers, body, _ = receiver.got[0]
    read = json.loads(http_ece.decrypt(body, private_key=private, auth_secret=auth, version="aes128gcm"))
    assert (path, read["title"], read["url"]) == ("/push/1", "Deputy: a test", "https://deputy.example/x")
    assert headers["authorization"].startswith("vapid t=") and push.public_key() in headers["authorization"]
    assert int(headers["ttl"]) > 0 and headers["content-encoding"] == "aes128gcm"


@pytest.mark.parametrize(
    ("place", "sub"),
    [
        ("http://127.0.0.1:8000", "mailto:deputy@localhost"),  # as `make run` has it
        ("https://intranet", "mailto:deputy@localhost"),
        ("https://deputy.example:8443", "https://deputy.example"),
    ],
)
def test_a_push_service_is_told_whom_to_turn_to(place, sub, settings):
    settings.PUBLIC_URL = place
    assert push.contact() == sub
    signed = push.key().sign({"aud": "https://push.example", "sub": push.contact()})
    assert signed["Authorization"].startswith("vapid t=")


def test_a_browser_that_has_gone_is_told_nothing_more(world, asked, receiver):
    zoe = decider(world, name="zoe")
    point = ec.generate_private_key(ec.SECP256R1()).public_key()
    bare = point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    keys = {name: base64.urlsafe_b64encode(v).decode() for name, v in (("p256dh", bare), ("auth", b"0" * 16))}
    address = json.dumps({"endpoint": f"http://{receiver.place}/push/1", "keys": keys})
    channel = channels.add_own(at_the_pages(zoe, world.organization.pk), "push", address)
    receiver.answers = lambda number: 410
    watch.attend(asked().pk)
    channel.refresh_from_db()
    assert not channel.enabled


@pytest.mark.parametrize("endpoint", ["http://10.0.0.1/x", "https://", "ftp://example.org/", "data:x", 7])
def test_a_subscription_elsewhere_is_refused(endpoint):
    keys = {"p256dh": base64.urlsafe_b64encode(b"x" * 65).decode(), "auth": "MDEyMzQ1Njc4OWFiY2RlZg"}
    with pytest.raises(BadAddress):
        push.check(json.dumps({"endpoint": endpoint, "keys": keys}))


# Turns, reminders, escalation


def test_the_named_are_told_one_after_the_other(asked, world):
    first, second = decider(world, name="ada"), decider(world, name="ben")
    approval = asked(deciders=named(first, second), in_order=True, timeout_seconds=1000)
    watch.attend(approval.pk)
    assert told() == ["ada@example.com"]

    older(approval, seconds=300)
    Approval.objects.filter(pk=approval.pk).update(expires_at=Now() + timedelta(seconds=700))
    watch.attend(approval.pk)
    assert "ben@example.com" in told()
    assert "escalated" in followed_up(approval)
    approve(approval.pk, second)  # the order says who is told, not who may


def test_where_the_first_cannot_be_reached_the_next_is_told_at_once(asked, world):
    first, second = decider(world, name="ada"), decider(world, name="ben")
    first.email = ""
    first.save()
    watch.attend(asked(deciders=named(first, second), in_order=True).pk)
    assert told() == ["ben@example.com"]


def test_reminders_come_at_a_quarter_and_three_quarters_and_administrators_hear_then(asked, world):
    decider(world, name="zoe")
    boss = decider(world, name="boss")
    permit(boss, "policy.change_capabilityrule")
    approval = asked(timeout_seconds=1000)
    watch.attend(approval.pk)
    for ago, left in ((260, 740), (760, 240)):
        older(approval, seconds=ago)
        Approval.objects.filter(pk=approval.pk).update(expires_at=Now() + timedelta(seconds=left))
        ApprovalNotice.objects.filter(sent_at__isnull=False).update(sent_at=Now() - timedelta(seconds=61))
        watch.attend(approval.pk)
        watch.attend(approval.pk)  # again changes nothing
    assert [one.to[0] for one in mail.outbox].count("zoe@example.com") == 3
    assert told().count("boss@example.com") == 1
    assert followed_up(approval) == ["reminded", "reminded", "escalated"]


# Stand-ins


def test_a_stand_in_decides_what_names_the_absent_person(asked, world):
    ada, ben = decider(world, name="ada"), decider(world, name="ben")
    approval = asked(deciders=named(ada))
    with pytest.raises(DecisionRefused, match="names who decides"):
        approve(approval.pk, ben)
    away(ada, ben)
    watch.attend(approval.pk)
    assert told() == ["ben@example.com"]
    assert approve(approval.pk, ben).status == "approved"


@pytest.mark.parametrize(
    "case", ["over", "planned", "absent left", "no decider", "chain", "own run", "service"]
)
def test_absence_gives_nobody_what_they_have_no_right_to(case, asked, world):
    ada, cyn = (decider(world, name=name) for name in ("ada", "cyn"))
    ben = decider(world, name="ben", kind="service" if case == "service" else "human")
    effect = "require_human" if case == "service" else "require_approval"
    approval = asked(deciders=named(ada), effect=effect)
    acting = ben
    if case == "over":
        away(ada, ben, ends_at=Now() - timedelta(hours=1))
    elif case == "planned":
        away(ada, ben, starts_at=Now() + timedelta(hours=1))
    elif case == "absent left":
        away(ada, ben)
        Membership.objects.filter(user=ada).update(active=False)
    elif case == "no decider":
        away(ada, ben)
        permit(ben, "view_run")
    elif case == "chain":
        away(ada, cyn)
        away(cyn, ben)
    elif case == "own run":
        acting = permit(world.user, "decide_approval")
        away(ada, acting)
    else:
        away(ada, ben)
    with pytest.raises(DecisionRefused):
        approve(approval.pk, acting)


@pytest.mark.parametrize("how", ["a role", "a member role's name", "a project", "a password"])
def test_who_gives_the_absent_a_place_does_not_decide_in_it(how, asked, world):
    """Whoever stands in could else give the absent person the role that a rule names, and decide for them."""
    ada, ben = decider(world, name="ada"), decider(world, name="ben")
    role = CustomRole.objects.create(
        organization=world.organization, name="lawyers", permissions=[*LOOKS, *DECIDES]
    )
    lawyer = member_of(ada)
    if how == "a member role's name":
        Membership.objects.filter(pk=lawyer.pk).update(custom_role=role)
    wanted = {"a project": "project.owner", "a password": f"member:{lawyer.pk}"}.get(how, "role:legal")
    absence = away(ada, ben)
    approval = asked(deciders=[wanted])
    with changes.acting(ben):
        role.name = "legal"
        role.save()
        if how == "a role":
            lawyer.custom_role = role
            lawyer.save()
        elif how == "a project":
            world.project.owner = lawyer
            world.project.save()
    if how == "a password":
        LogEntry.objects.log_actions(ben.pk, [ada], CHANGE, "Changed password.", single_object=True)
    with pytest.raises(DecisionRefused, match="names who decides"):
        approve(approval.pk, ben)
    # In a stand-in that they name afterwards they have a hand of their own, once an hour is over.
    older_by_an_hour()
    Absence.objects.filter(pk=absence.pk).update(created_at=Now())
    assert approve(approval.pk, ben).status == "approved"


def older_by_an_hour():
    Change.objects.update(created_at=Now() - timedelta(hours=1, minutes=1))
    LogEntry.objects.update(action_time=Now() - timedelta(hours=1, minutes=1))


def test_a_runs_own_user_has_nobody_confirm_it_in_their_place(asked, world):
    ben = decider(world, name="ben")
    away(world.user, ben)
    approval = asked(deciders=["run.user"])
    with pytest.raises(DecisionRefused):
        approve(approval.pk, ben)


def test_nobody_counts_for_themself_and_again_by_a_stand_in(asked, world):
    ada, ben, cyn = (decider(world, name=name) for name in ("ada", "ben", "cyn"))
    approval = asked(deciders=named(ada, cyn), deciders_needed=2)
    assert approve(approval.pk, ada).status == "pending"
    away(ada, ben)
    assert approve(approval.pk, ben).status == "pending"  # in the place of ada, who has decided
    assert approve(approval.pk, cyn).status == "approved"


def test_one_stand_in_for_two_counts_once():
    assert demands.seated([["a", "b"]]) == 1
    assert demands.seated([["a"], ["a"]]) == 1
    assert demands.seated([["a", "b"], ["a"]]) == 2


def test_a_stand_in_is_named_at_ones_own_page_with_the_password_confirmed(world):
    ada, ben = decider(world, name="ada"), decider(world, name="ben")
    mine, org = member_of(ben).pk, world.organization.pk
    from django.utils import timezone

    times = timezone.now(), timezone.now() + timedelta(days=3)
    for actor in (at_the_pages(ada, org, confirmed=False), by_token(ada, org)):
        with pytest.raises(NotAllowed):
            channels.be_away(actor, mine, *times)
    with pytest.raises(ChannelRefused, match="may decide"):
        channels.be_away(at_the_pages(ada, org), world.membership.pk, *times)
    assert channels.be_away(at_the_pages(ada, org), mine, *times).stand_in.user == ben


def test_days_and_addresses_that_cannot_be_are_refused_in_words(world, client):
    ada, ben = decider(world, name="ada"), decider(world, name="ben")
    client.force_login(ada)
    for first, last in (("2026-01-01", "9999-12-31"), ("0001-01-01", "2026-01-01")):
        said = {"first": first, "last": last, "stand_in": member_of(ben).pk}
        assert client.post(reverse("web:be_away"), said).status_code == 302
    for kind in ("push", "chat"):
        said = {"kind": kind, "address": "[" * 50_000}
        assert client.post(reverse("web:add_channel"), said).status_code == 302
    assert not Channel.objects.filter(user=ada).exclude(kind="email").exists()


def test_the_projects_owner_may_be_named(asked, world):
    ada = decider(world, name="ada")
    ben = decider(world, name="ben")
    world.project.owner = member_of(ada)
    world.project.save()
    approval = asked(deciders=["project.owner"])
    with pytest.raises(DecisionRefused):
        approve(approval.pk, ben)
    assert approve(approval.pk, ada).status == "approved"


# Alarms


@pytest.mark.parametrize(
    ("case", "alarm"),
    [("nobody", "nobody"), ("no address", "no_channel"), ("mail away", "unheard"), ("long", "overdue")],
)
def test_what_nobody_hears_of_is_an_alarm_until_somebody_does(case, alarm, asked, world, monkeypatch):
    approval = asked()
    zoe = decider(world, name="zoe") if case != "nobody" else None
    if case == "no address":
        zoe.email = ""
        zoe.save()
    elif case == "mail away":
        monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)
        watch.attend(approval.pk)
        older(approval, seconds=watch.UNHEARD_SECONDS + 1)
    elif case == "long":
        older(approval, days=2)
        watch.attend(approval.pk)
    watch.attend(approval.pk)
    assert alarms() == {alarm: 1}
    assert followed_up(approval)[-1] == "alarm"

    monkeypatch.undo()
    if case == "long":
        approve(approval.pk, zoe)
    elif case == "mail away":
        ApprovalNotice.objects.filter(approval=approval).update(status="sent", sent_at=Now())
    else:
        decider(world, name="yan")
    watch.attend(approval.pk)
    assert alarms() == {}


def test_where_a_program_may_decide_it_nobody_has_to_be_reached(asked, world):
    decider(world, name="robot", kind="service")
    watch.attend(asked().pk)
    assert alarms() == {}


def test_a_digest_that_is_too_long_for_a_service_comes_in_parts(monkeypatch):
    got = []

    def fetch(url, **options):
        got.append(json.loads(options["content"]))
        return SimpleNamespace(status=204, url=url, headers={}, text="")

    monkeypatch.setattr(chat, "fetch", fetch)
    items = tuple(Item(f"send_email {n}, for mia in Atlas", ("x" * 150,), "") for n in range(20))
    chat.send("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", Message("Many", items), "chn")
    assert len(got) > 1 and all(len(one["content"]) <= 2000 for one in got)
    assert all(any(f"send_email {n}," in one["content"] for one in got) for n in range(20))


def refuse(*_):
    raise ConnectionRefusedError


def test_an_alarm_is_seen_on_the_first_page_by_probes_and_by_administrators(asked, world, client):
    boss = decider(world, name="boss")
    boss = permit(boss, "policy.change_capabilityrule", "runs.view_approval", "runs.view_run")
    boss.is_staff = True
    boss.save()
    approval = asked()
    watch.attend(approval.pk)
    assert told() == ["boss@example.com"] and "nobody hears" in mail.outbox[0].subject
    client.force_login(boss)
    assert "Nobody may decide this" in client.get(reverse("admin:index")).content.decode()
    from config.health import working

    assert working()["approvals"] == {"ok": False, "alarms": {"nobody": 1}}


# The run's person


def test_the_runs_person_hears_of_wait_decision_and_end_where_they_want_to(asked, world, receiver):

    zoe = decider(world, name="zoe")
    actor = at_the_pages(world.user, world.organization.pk)
    address = f"ntfy://{receiver.place}/mine"
    channels.add_own(actor, "chat", address, topics=["own"])
    approval = asked()
    watch.attend(approval.pk)
    assert "waits for a decision" in receiver.json()["title"]
    approve(approval.pk, zoe)
    executor.run(approval.run_id)
    kinds = ApprovalNotice.objects.filter(channel__user=world.user).values_list("kind", flat=True)
    assert sorted(kinds) == ["decided", "ended", "waiting"]


def test_each_is_written_to_in_the_language_they_read_in(asked, world, receiver, in_slack, client):
    zoe = decider(world, name="zoe")
    channels.add_own(at_the_pages(zoe, world.organization.pk), "chat", f"ntfy://{receiver.place}/zoe")
    client.force_login(zoe)
    client.post(reverse("set_language"), {"language": "zh-hans", "next": "/settings/"})
    assert readers.language_of(zoe.pk) == "zh-hans" and readers.language_of(world.user.pk) == "en"
    client.post(reverse("set_language"), {"language": "tlh"})
    assert readers.language_of(zoe.pk) == "zh-hans"

    watch.attend(asked().pk)

    told = {path: json.loads(body) for path, _, body, _ in receiver.got}
    mine, theirs = told["/"], told["/services/x"]
    with translation.override("zh-hans"):
        expected = f"Deputy: {translation.gettext('{tool} waits for your decision')}"
    assert mine["title"] == expected.format(tool="send_email")
    assert theirs["text"] == "Deputy: send_email waits for your decision"  # a room has its own language
    Channel.objects.filter(pk=in_slack.pk).update(language="zh-hans")
    in_slack.refresh_from_db()
    delivery.try_out(in_slack)
    assert receiver.json()["text"] != "Deputy: a test"


def test_signing_in_says_in_which_language_somebody_reads(world, client):
    client.cookies["django_language"] = "zh-hans"
    world.user.set_password("long enough for anybody")
    world.user.save()
    client.post("/sign-in/", {"login": world.user.get_username(), "password": "long enough for anybody"})
    assert readers.language_of(world.user.pk) == "zh-hans"


# Decided from the message


SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def in_slack(world, receiver):
    channel = Channel(organization=world.organization, kind="slack", name="#approvals", kept_by=superuser())
    address = {"webhook": f"http://{receiver.place}/services/x", "signing_secret": SECRET}
    channel.keep_address(json.dumps(address), "Slack")
    channel.save()
    return channel


def slack_posts(channel, body, secret=SECRET, at=None):
    from urllib.parse import urlencode

    data, stamp = urlencode(body), str(int(at or time.time()))
    made = hmac.new(secret.encode(), f"v0:{stamp}:{data}".encode(), hashlib.sha256).hexdigest()
    return Client(enforce_csrf_checks=True).post(
        reverse("slack_hook", args=[channel.pk]),
        data,
        content_type="application/x-www-form-urlencoded",
        headers={"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={made}"},
    )


def press(channel, receiver, account="U1", action=slack.APPROVE, **how):
    button = next(
        one
        for block in receiver.json()["blocks"]
        if block["type"] == "actions"
        for one in block["elements"]
        if one["action_id"] == action
    )
    payload = {"type": "block_actions", "user": {"id": account}, "actions": [button]}
    return slack_posts(channel, {"payload": json.dumps(payload)}, **how)


def test_slacks_message_is_block_kit_as_slack_documents_it(asked, world, receiver, in_slack):
    decider(world, name="zoe")
    watch.attend(asked().pk)
    said = receiver.json()
    assert said["text"] and 0 < len(said["blocks"]) <= 50
    for block in said["blocks"]:
        if block["type"] == "header":
            assert block["text"]["type"] == "plain_text" and len(block["text"]["text"]) <= 150
        elif block["type"] == "section":
            assert block["text"]["type"] == "mrkdwn" and len(block["text"]["text"]) <= 3000
        else:
            assert block["type"] == "actions" and len(block["elements"]) <= 25
            for one in block["elements"]:
                assert one["type"] == "button" and len(one["text"]["text"]) <= 75
                assert len(one.get("value", "")) <= 2000 and one.get("style", "primary") in (
                    "primary",
                    "danger",
                )


def test_nobody_links_an_account_of_theirs_to_a_person_whose_browser_they_find_open(world, in_slack, client):
    client.force_login(decider(world, name="ada"))

    def page(confirmed_at):
        session = client.session
        session[CONFIRMED_AT] = int(confirmed_at)
        session.save()
        return client.get(reverse("web:notices")).content.decode()

    now = time.time()
    assert "/deputy " in page(now)
    old = page(now - 10_000)
    assert "/deputy " not in old and reverse("web:confirm") in old


@pytest.mark.parametrize("mine", [True, False])
def test_the_chat_of_a_project_is_shown_to_its_members_alone(world, in_slack, client, mine):
    ada, other = decider(world, name="ada"), ProjectFactory(organization=world.organization)
    Channel.objects.filter(pk=in_slack.pk).update(project=world.project if mine else other)
    Membership.objects.filter(user=ada).update(projects=[world.project.pk])
    client.force_login(ada)
    assert (f"<h2>{in_slack}</h2>" in client.get(reverse("web:notices")).content.decode()) is mine


def test_a_linked_account_decides_by_a_button(asked, world, receiver, in_slack):
    zoe = decider(world, name="zoe")
    approval = asked()
    watch.attend(approval.pk)
    press(in_slack, receiver)
    assert Approval.objects.get(pk=approval.pk).status == "pending"  # nobody's account

    said = slack_posts(
        in_slack, {"command": "/deputy", "user_id": "U1", "text": slack_hook.code(in_slack, zoe)}
    )
    assert "linked" in said.json()["text"]
    assert press(in_slack, receiver).status_code == 200
    approval.refresh_from_db()
    assert (approval.status, approval.decided_by) == ("approved", zoe)
    assert approval.decisions.get().via == "chat"
    readers.note(zoe, "zh-hans")
    again = slack_hook.pressed(in_slack, "U1", True, {"approval": approval.pk, "digest": "other"})
    with translation.override("zh-hans"):  # in the language of whoever pressed
        assert again == translation.gettext("It has changed since you saw it: look again.")
    assert again != "It has changed since you saw it: look again."


@pytest.mark.parametrize(
    "then",
    [
        "nothing",
        "keeper",
        "their right",
        "off",
        "removed",
        "secret",
        "unlinked",
        "another account",
        "project",
    ],
)
def test_what_was_pressed_counts_as_long_as_the_app_does(then, asked, world, receiver, in_slack):
    """Who has entered an app's secret can press its buttons as anybody who has linked an account."""
    zoe = decider(world, name="zoe")
    linked = ChatAccount.objects.create(channel=in_slack, user=zoe, account="U1")
    approval = asked()
    slack_hook.pressed(in_slack, "U1", True, {"approval": approval.pk, "digest": approval.arguments_digest})
    if then == "keeper":
        type(in_slack.kept_by).objects.filter(pk=in_slack.kept_by_id).update(is_active=False)
    elif then == "their right":
        Channel.objects.filter(pk=in_slack.pk).update(kept_by=decider(world, name="yan"))
    elif then == "off":
        Channel.objects.filter(pk=in_slack.pk).update(enabled=False)
    elif then == "removed":
        in_slack.delete()
    elif then == "secret":
        address = {"webhook": f"http://{receiver.place}/services/x", "signing_secret": "f" * 32}
        in_slack.keep_address(json.dumps(address), "Slack")
        in_slack.save()
    elif then == "unlinked":
        linked.delete()
    elif then == "another account":
        ChatAccount.objects.update(account="U2")
    elif then == "project":
        Channel.objects.update(project=ProjectFactory(organization=world.organization))
    demand = demands.of_approval(approval, False)
    counted = demands.counted(approval.pk, approval.arguments_digest, demand, about(approval))
    assert counted.enough is (then == "nothing")
    assert ("the chat's app" in counted.why) is (then != "nothing")


@pytest.mark.parametrize("how", [{"secret": "f" * 32}, {"at": 1_000_000}])
def test_what_slack_did_not_sign_lately_is_nothing(how, asked, world, receiver, in_slack):
    zoe = decider(world, name="zoe")
    ChatAccount.objects.create(channel=in_slack, user=zoe, account="U1")
    approval = asked()
    watch.attend(approval.pk)
    assert press(in_slack, receiver, **how).status_code == 404
    assert Approval.objects.get(pk=approval.pk).status == "pending"


def test_what_takes_a_person_has_no_button_and_is_refused_without_one(asked, world, receiver, in_slack):
    zoe = decider(world, name="zoe")
    ChatAccount.objects.create(channel=in_slack, user=zoe, account="U1")
    approval = asked(effect="require_human")
    watch.attend(approval.pk)
    actions = [one for block in receiver.json()["blocks"] for one in block.get("elements", ())]
    assert [one["action_id"] for one in actions] == ["open"]
    value = {"approval": approval.pk, "digest": approval.arguments_digest}
    assert "person" in slack_hook.pressed(in_slack, "U1", True, value)
    Approval.objects.filter(pk=approval.pk).update(
        effect="require_approval"
    )  # as it was asked; the rule stands
    assert "person" in slack_hook.pressed(in_slack, "U1", True, value)
    assert Approval.objects.get(pk=approval.pk).status == "pending"


def test_what_several_or_certain_people_decide_no_chat_decides(asked, world, receiver, in_slack):
    """Who entered the app's secret can press its buttons as anybody who has linked their account."""
    zoe, yan = decider(world, name="zoe"), decider(world, name="yan")
    ChatAccount.objects.create(channel=in_slack, user=zoe, account="U1")
    for demand in ({"deciders_needed": 2}, {"deciders_needed": 1, "deciders": named(zoe)}):
        approval = asked(**demand)
        value = {"approval": approval.pk, "digest": approval.arguments_digest}
        watch.attend(approval.pk)
        actions = [one for block in receiver.json()["blocks"] for one in block.get("elements", ())]
        assert [one["action_id"] for one in actions] == ["open"]
        assert "no chat decides" in slack_hook.pressed(in_slack, "U1", True, value)
        if "deciders" not in demand:
            assert approve(approval.pk, yan).status == "pending"
        assert "no chat decides" in slack_hook.pressed(in_slack, "U1", True, value)
        assert Approval.objects.get(pk=approval.pk).status == "pending"


def test_nor_does_it_when_more_came_to_be_demanded_before_the_call_left(asked, world, in_slack, rule):
    zoe, yan = decider(world, name="zoe"), decider(world, name="yan")
    ChatAccount.objects.create(channel=in_slack, user=zoe, account="U1")
    approval = asked()
    value = {"approval": approval.pk, "digest": approval.arguments_digest}
    assert "Approved by zoe" in slack_hook.pressed(in_slack, "U1", True, value)
    rule.deciders = named(zoe, yan)
    rule.save()
    executor.run(approval.run_id)
    again = Approval.objects.get(run=approval.run_id, status="pending")
    assert "no chat decides" in again.explanation
    assert not [one for one in mail.outbox if one.subject == MAIL["subject"]]


def test_who_knows_the_secret_decides_no_longer_than_they_may_arrange_it(asked, world, in_slack):
    zoe, pia = decider(world, name="zoe"), decider(world, name="pia")
    ChatAccount.objects.create(channel=in_slack, user=zoe, account="U1")
    approval = asked()
    value = {"approval": approval.pk, "digest": approval.arguments_digest}
    Channel.objects.filter(pk=in_slack.pk).update(kept_by=pia)
    Membership.objects.filter(user=pia).update(active=False)
    for keeper in (pia, None):
        Channel.objects.filter(pk=in_slack.pk).update(kept_by=keeper)
        in_slack.refresh_from_db()
        assert "entered this app's secret" in slack_hook.pressed(in_slack, "U1", True, value)
        assert Approval.objects.get(pk=approval.pk).status == "pending"
    client = Client()
    client.force_login(superuser(username="ops"))
    form = {"kind": "slack", "name": "#approvals", "topics": ["approvals"], "enabled": "on", "project": ""}
    secret = json.dumps({"webhook": f"https://{slack.HOST}/services/x", "signing_secret": SECRET})
    page = reverse("admin:runs_channel_change", args=[in_slack.pk])
    assert client.post(page, {**form, "address": ""}).status_code == 302
    assert Channel.objects.get(pk=in_slack.pk).kept_by is None
    assert client.post(page, {**form, "address": secret}).status_code == 302
    assert Channel.objects.get(pk=in_slack.pk).kept_by.username == "ops"


def test_what_no_database_keeps_is_nobodys_button(asked, world, in_slack):
    approval = asked()
    value = {"approval": approval.pk, "digest": approval.arguments_digest}
    for account, said in (
        ("U\0", value),
        ("\ud800", value),
        ("U1", {**value, "approval": "\0"}),
        ("U1", {**value, "digest": "\ud800"}),
    ):
        button = {"action_id": slack.APPROVE, "value": json.dumps(said)}
        pressed = {"payload": json.dumps({"user": {"id": account}, "actions": [button]})}
        assert slack_posts(in_slack, pressed).status_code == 200
    assert Approval.objects.get(pk=approval.pk).status == "pending"


@pytest.mark.parametrize("account", ["", "U" * 101])
def test_what_is_no_account_of_a_chat_is_not_linked(account, world, in_slack):
    code = slack_hook.code(in_slack, decider(world, name="zoe"))
    said = slack_posts(in_slack, {"command": "/deputy", "user_id": account, "text": code})
    assert said.status_code == 200 and "linked" not in said.json()["text"]
    assert not ChatAccount.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_account_that_several_link_at_once_is_one_persons(world, in_slack):
    codes = [slack_hook.code(in_slack, decider(world, name=name)) for name in ("zoe", "ben", "ada", "eve")]

    def linking(code):
        return lambda: slack_posts(in_slack, {"command": "/deputy", "user_id": "U1", "text": code})

    for said in at_once(*map(linking, codes)):
        assert said.status_code == 200 and "linked" in said.json()["text"]
    assert ChatAccount.objects.get().account == "U1"


def test_who_may_not_decide_arranges_no_channel(world, in_slack):
    names = ("runs.add_channel", "runs.change_channel", "runs.delete_channel", "runs.view_channel")
    olga = person(world, "olga", *names, is_staff=True)
    client = Client()
    client.force_login(olga)
    pages = (reverse("admin:runs_channel_add"), reverse("admin:runs_channel_delete", args=[in_slack.pk]))
    assert [client.get(page).status_code for page in pages] == [403, 403]
    changed = reverse("admin:runs_channel_change", args=[in_slack.pk])
    assert client.post(changed, {"name": "mine"}).status_code == 403
    permit(olga, *names, "runs.decide_approval")
    assert client.get(pages[0]).status_code == 200


@pytest.mark.parametrize("case", ["plain member", "gone", "another's organization", "changed"])
def test_a_button_gives_no_right(case, asked, world, receiver, in_slack):
    zoe = decider(world, name="zoe")
    account = world.user if case == "plain member" else zoe
    ChatAccount.objects.create(channel=in_slack, user=account, account="U1")
    approval = asked(deciders=named(zoe) if case == "plain member" else [])
    value = {"approval": approval.pk, "digest": approval.arguments_digest}
    if case == "gone":
        Membership.objects.filter(user=zoe).update(active=False)
    elif case == "another's organization":
        from tests.factories import OrganizationFactory

        Channel.objects.filter(pk=in_slack.pk).update(organization=OrganizationFactory())
        in_slack.refresh_from_db()
    elif case == "changed":
        value["digest"] = "0" * 64
    slack_hook.pressed(in_slack, "U1", True, value)
    assert Approval.objects.get(pk=approval.pk).status == "pending"


def prepared_link():
    (line,) = [line for line in mail.outbox[0].body.splitlines() if line.startswith("Approve: ")]
    return line.removeprefix("Approve: https://deputy.example")


def test_a_mails_link_asks_for_sign_in_prepares_the_decision_and_works_once(asked, world, client):
    zoe = decider(world, name="zoe")
    approval = asked()
    watch.attend(approval.pk)
    address = prepared_link()
    assert client.get(address)["Location"].startswith("/sign-in/?next=/decide/")
    client.force_login(zoe)
    assert client.get(address)["Location"] == f"/approvals/{approval.pk}/?prepared=approve"
    assert client.get(address)["Location"] == f"/approvals/{approval.pk}/"
    assert Approval.objects.get(pk=approval.pk).status == "pending"


def test_somebody_elses_link_and_a_forged_one_open_nothing(asked, world, client):
    decider(world, name="zoe")
    watch.attend(asked().pk)
    client.force_login(decider(world, name="ben"))
    assert client.get(prepared_link())["Location"] == "/waiting/"
    forged = signing.dumps([ApprovalNotice.objects.get().pk, "approve"], key="other", salt=message.SALT)
    assert client.get(reverse("web:prepared", args=[forged]))["Location"] == "/waiting/"


def test_a_lost_message_of_the_queue_is_made_up_for(asked, world, monkeypatch):
    decider(world, name="zoe")
    monkeypatch.setattr(put, "enqueue_task", lambda *_, **__: None)
    watch.attend(asked().pk)
    assert mail.outbox == []
    found = []
    monkeypatch.setattr(put, "enqueue_task", lambda name, *args, **_: found.append((name, args)))
    ApprovalNotice.objects.update(due_at=Now() - timedelta(seconds=30))
    assert delivery.send_due() == 1
    assert found == [("deliver", (Channel.objects.get().pk,))]


def test_a_package_brings_a_notifier_by_its_entry_point(monkeypatch, world):
    from common.extensions import Extension

    got = []
    pager = SimpleNamespace(
        label="Pager", check=lambda address: address[:3], send=lambda *said: got.append(said)
    )
    brought = [Extension("pager", "the package deputy-pager", "deputy_pager:pager")]
    monkeypatch.setattr("common.extensions.brought", lambda kind: brought if kind == "notifiers" else [])
    monkeypatch.setattr(Extension, "load", lambda self: pager)
    senders.all_of_them.cache_clear()
    try:
        actor = at_the_pages(world.user, world.organization.pk)
        channel = channels.add_own(actor, "pager", "number 7")
        assert channels.try_channel(actor, channel) == ""
    finally:
        senders.all_of_them.cache_clear()
    assert [(address, said.subject) for address, said in got] == [("number 7", "Deputy: a test")]


def test_a_stand_ins_decision_says_for_whom(asked, world):
    ada, ben = decider(world, name="ada"), decider(world, name="ben")
    approval = asked(deciders=named(ada))
    away(ada, ben)
    approve(approval.pk, ben)
    event = RunEvent.objects.get(run=approval.run_id, type="wait.completed")
    assert event.payload["payload"]["by"] == "ben, for ada"


def test_the_service_worker_is_at_the_root_and_for_everybody(client):
    answer = client.get("/sw.js")
    assert answer["Content-Type"].startswith("text/javascript") and b"showNotification" in answer.content


def test_a_form_with_files_is_nobodys_button(in_slack):
    """Such a form is read piece by piece, so that there is no body whose signature could be looked at."""
    sent = Client().post(
        reverse("slack_hook", args=[in_slack.pk]), {"payload": SimpleUploadedFile("a", b"{}")}
    )
    assert sent.status_code == 404
