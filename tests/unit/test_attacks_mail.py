"""Ways to have a mail say, or go, more than its decider saw; and a page come from another host."""

from types import SimpleNamespace

import pytest
from django.core import mail

from common.outbound import Fetched
from runs.tools import registry
from runs.tools.base import ToolError
from runs.tools.builtin import web

PAGE = Fetched("https://example.org/", 200, {}, "Hello.", 6, False, ())

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # for the standard library's header


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_header_is_ended_by_an_argument(end):
    send = registry.all_tools()["send_email"].function
    run = SimpleNamespace(idempotency_key="0" * 64)
    for to, subject in (
        ("ada@example.org", f"Release{end}{end}Another text."),
        ("ada@example.org", f"Release{end}"),
        (f'"ada{end}b"@example.org', "Release"),
    ):
        with pytest.raises(ToolError):
            send(run, to=[to], subject=subject, body="Friday it is.")
    assert mail.outbox == []


@pytest.mark.parametrize(
    "to",
    [
        "=?utf-8?q?ceo?=@example.org",  # a mail server is told ceo@example.org
        "=?utf-8?q?ceo=40evil.example=3E?=@example.org",
        '"=?utf-8?q?ceo?="@example.org',
        '"ceo"@example.org',
        '"c\\eo"@example.org',
        '"ada,mallory@evil.example"@example.org',
        "ceo@ｅｘａｍｐｌｅ.org",
        "ceo@exam\u00adple.org",
        "ceo%evil.example@example.org",  # Postfix sends it on to ceo@evil.example, and so
        "evil.example!ceo@example.org",  # this one: as it comes, for those whose mail it relays
        "ceo@[93.184.216.34]",  # a host that a rule names by its name
        "ceo@[IPv6:2606:2800:220::1]",
    ],
)
def test_an_address_is_written_as_it_is_sent(to):
    """Else a rule about an address, and who decides, see another than the one the mail goes to."""
    send = registry.all_tools()["send_email"].function
    with pytest.raises(ToolError) as refused:
        send(SimpleNamespace(idempotency_key="0" * 64), to=[to], subject="Release", body="Friday it is.")
    assert (refused.value.code, mail.outbox) == ("INVALID_ADDRESS", [])


def test_nor_is_a_subject_read_as_another():
    send = registry.all_tools()["send_email"].function
    subject = "=?utf-8?b?UGF5IE1hbGxvcnk=?="  # shown as: Pay Mallory
    with pytest.raises(ToolError) as refused:
        send(SimpleNamespace(idempotency_key="0" * 64), to=["ada@example.org"], subject=subject, body="x")
    assert (refused.value.code, mail.outbox) == ("INVALID_SUBJECT", [])


@pytest.mark.parametrize(
    "to",
    [
        "ada@example.org",
        "Ada.B+x=y?@EXAMPLE.org",
        "ada@bücher.example",
        "ada@Bücher.example",
        "ada@例子.中国",
    ],
)
def test_plain_addresses_are_sent(to):
    send = registry.all_tools()["send_email"].function
    send(SimpleNamespace(idempotency_key="0" * 64), to=[to], subject="Is 1 = ?", body="Friday it is.")
    assert [one.to for one in mail.outbox] == [[to]]


@pytest.mark.parametrize(
    "url",
    [
        "https://evil。example/",  # asked as evil.example, of which a rule may speak
        "https://evil｡example:8443/",
        "https://evil.example./",
        "https://@evil.example/",
        "https://evil.example:443/",
        "http://evil.example:080/",
        "http://1572395042/",  # 93.184.216.34, of which a rule may speak
        "http://0x5db8d822/",
        "http://93.12113954/",
        "http://0x5d.0xb8.0xd8.0x22/",
        "http://[::ffff:93.184.216.34]/",
        "http://[::FFFF:5db8:d822]/",
        "http://[2606:4700:0:0:0:0:0:1]/",
        "https://evil.example/admin/.",
        "https://evil.example/x/%2E./admin?x=1",
        "https://evil.example/a b",
    ],
)
def test_a_host_is_written_as_it_is_asked(url):
    read = registry.all_tools()["http_get"].function
    with pytest.raises(ToolError, match="written otherwise"):
        read(SimpleNamespace(), url=url)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example",
        "HTTPS://Evil.example:8443?a@b",
        "http://bücher.example/",
        "http://[2606:4700::1]:81/",
        "http://[2606:4700::ABCD]/",
        "http://93.184.216.34/",
        "http://localhost:8000/",
    ],
)
def test_plain_hosts_are_asked(url, monkeypatch):
    asked = []
    monkeypatch.setattr(web, "fetch", lambda url, **_: asked.append(url) or PAGE)
    registry.all_tools()["http_get"].function(SimpleNamespace(), url=url)
    assert asked == [url]
