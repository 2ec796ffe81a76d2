"""A call is compared with what matters: approved calls to the same place, of this project or person."""

from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import pytest
from django.urls import reverse

from common.whom import host_of
from policy.models import CapabilityRule
from runs.deciding import compare, preview, view, words
from runs.execution import executor
from runs.models import Approval, ToolCall
from runs.tools import registry
from runs.tools.base import Tool
from runs.tools.previews import BadPreview, Preview
from tests.acting import approve
from tests.admin_world import APPROVER, client_of, drive, person, tenant, text, url
from tests.factories import MembershipFactory, ProjectFactory
from tests.scripted import by_role, call

pytestmark = pytest.mark.django_db

ADA, BO = "ada@example.org", "bo@example.org"
SPELLED = {code: f"⟨U+{code:04X}⟩" for code in (0x202E, 0x202C, 0x200B)}
FRONT = "bank.example.with.a.long.way.to.go.before"


@pytest.fixture
def made():
    made = tenant()
    made.ines = person(made, "ines", *APPROVER, is_staff=True)
    return made


def asked(made, to, subject="Prices", who=None, project=None):
    letter = {"to": to, "subject": subject, "body": "x"}
    place = SimpleNamespace(user=who or made.user, project=project or made.project)
    return Approval.objects.get(
        run=drive(place, "Write", by_role(Personal_agent=[call(("send_email", letter))]))
    )


def shown(approval, seen=None):
    (found,) = view.shown([approval], Approval.objects.all() if seen is None else seen)
    return found


def test_the_call_before_is_the_last_approved_one_to_the_same_recipient(made):
    to_ada, to_bo = asked(made, [ADA], "First"), asked(made, [BO], "Second")
    for one in (to_ada, to_bo):
        approve(one.pk, made.ines)

    found = shown(asked(made, [ADA.upper()], "Third"))

    assert found.before.pk == to_ada.pk
    assert {line.name: line.mark for line in found.arguments}["subject"] == "changed"
    assert found.callouts == ()


@pytest.mark.parametrize("scheme", ["a@", "https://"])
def test_two_domains_that_differ_in_a_letter_are_two(scheme):
    """straße.example is another than strasse.example, and the button names the one that is reached."""
    known, other = f"{scheme}strasse.example", f"{scheme}straße.example"
    assert compare.key_of(known) != compare.key_of(other)
    assert host_of(other) == "straße.example" == host_of(other.upper().replace("SS", "ß"))
    mail = Tool(
        name="post",
        description="",
        parameters={},
        function=print,
        preview=Preview("mail", {"to": "to", "subject": "subject", "body": "body"}),
    )
    said = preview.effect("post", mail, {"to": [known, other], "subject": "x", "body": "y"})
    assert said.heading == "send a mail to 2 people"


def test_a_strangers_call_is_never_compared_with(made):
    elsewhere = ProjectFactory(organization=made.organization)
    stranger = MembershipFactory(organization=made.organization).user
    theirs = asked(made, [ADA], who=stranger, project=elsewhere)
    Approval.objects.filter(pk=theirs.pk).update(status="approved")
    mine = asked(made, [ADA])

    alone = shown(mine)
    Approval.objects.filter(pk=theirs.pk).update(status="approved")
    theirs.run.__class__.objects.filter(pk=theirs.run_id).update(user=made.user)

    assert alone.before is None and "No call of send_email was approved before" in alone.callouts[0]
    assert shown(mine).before.pk == theirs.pk  # the same person's, of another project that the reader sees
    assert shown(mine, Approval.objects.filter(run__project=made.project)).before is None


def test_what_is_new_is_called_out(made):
    approve(asked(made, [ADA, BO]).pk, made.ines)

    many = shown(asked(made, [ADA, "eve@examp1e.org", "joe@firm.example"]))

    said = " ".join(many.callouts)
    assert "2 of 3 are new, with no approved call before: eve@examp1e.org, joe@firm.example" in said
    assert "2 new domains" in said
    assert "examp1e.org looks like example.org" in said
    (to,) = [line for line in many.arguments if line.name == "to"]
    assert to.summary == "3 recipients in 3 domains, 2 never approved before"
    assert [(item.text, item.new) for item in to.items][2] == (ADA, False)  # the new ones stand first


def test_a_recipient_that_a_decider_has_replaced_is_new_although_the_call_was_denied_then(made):
    to_bo = asked(made, [BO])
    approve(to_bo.pk, made.ines, arguments={"to": [ADA], "subject": "Prices", "body": "x"})
    rule = CapabilityRule.objects.create(organization=made.organization, tool="send_email", effect="deny")
    executor.run(to_bo.run_id)
    rule.delete()

    call_row = ToolCall.objects.get(run=to_bo.run_id)
    assert (call_row.status, call_row.effective_arguments["to"]) == ("denied", [ADA])
    to_bo_again = shown(asked(made, [BO], "Second"))
    assert to_bo_again.before is None and BO in " ".join(to_bo_again.callouts)


def test_a_larger_amount_and_an_agent_that_is_new_to_the_tool_are_called_out(made, monkeypatch):
    tool = registry.get("send_email")
    parts = Preview("payment", {"amount": "subject", "to": "to"})
    monkeypatch.setitem(registry.all_tools(), "send_email", replace(tool, preview=parts))
    first = asked(made, [ADA], "900")
    approve(first.pk, made.ines)
    colleague = MembershipFactory(organization=made.organization).user

    found = shown(asked(made, [ADA], "1200", who=colleague))

    said = " ".join(found.callouts)
    assert "larger than ever before: 1200; the largest approved was 900" in said
    assert "for the first time" in said
    assert found.effect.button == "Approve and pay 1200 to ada@example.org"


def tool(parts, **properties):
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in properties}}
    return Tool("try_it", "Try it.", schema, len, preview=parts)


@pytest.mark.parametrize(
    ("parts", "arguments", "said"),
    [
        (
            Preview("mail", {"to": "to", "cc": "cc"}),
            {"to": [ADA], "cc": [BO, ADA]},
            "Approve and send to 2 people",
        ),
        (Preview("mail", {"to": "to"}), {"to": ADA}, f"Approve and send to {ADA}"),
        (Preview("mail", {"to": "to"}), {"to": f"{ADA}, {BO}"}, "Approve and send to 2 people"),
        (Preview("mail", {"to": "to"}), {"to": f"{'a' * 40}@evil.org"}, f"send to {'a' * 30}…@evil.org"),
        (Preview("http", {"url": "u"}), {"u": f"https://{FRONT}.evil.org/a"}, "before.evil.org"),
        (Preview("payment", {"to": "to", "amount": "a"}), {"to": [ADA, BO], "a": 5}, "pay 5 to 2 recipients"),
        (
            Preview("http", {"url": "u", "method": "m"}),
            {"u": "https://x.org/a", "m": "post"},
            "send POST to x.org",
        ),
        (Preview("http", {"url": "u"}, {"method": "GET"}), {"u": "https://x.org/a"}, "fetch from x.org"),
        (Preview("file", {"path": "p"}), {"p": "/etc/passwd\u202e"}, "Approve and write /etc/passwd⟨U+202E⟩"),
        (Preview("sql", {"statement": "s"}), {"s": "DROP TABLE x"}, "Approve and run this statement"),
        (Preview("generic", does="book the room"), {"x": "1"}, "Approve and book the room"),
        (Preview("generic"), {"x": "1"}, "Approve try_it"),
        (None, {"x": "1"}, "Approve try_it"),
    ],
)
def test_the_button_says_the_effect(parts, arguments, said):
    assert said in preview.effect("try_it", tool(parts, **arguments), arguments).button


def test_a_preview_hides_nothing():
    parts = Preview("sql", {"statement": "q"}, {"database": "crm"})
    arguments = {"hidden": "x", "q": "SELECT 1"}

    lines = preview.arranged(words.readable(arguments, {}), parts)

    assert [(line.part, line.text) for line in lines] == [
        ("database", "crm"), ("statement", "SELECT 1"), ("", "x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        Preview("film"),
        Preview("mail", {"path": "x"}),
        Preview("mail", {"to": "nobody"}),
        Preview("sql", {}, {"to": "x"}),
    ],
)
def test_a_preview_that_does_not_fit_its_tool_is_refused(wrong):
    with pytest.raises(BadPreview):
        wrong.check({"properties": {"x": {}}})


def test_a_call_of_thousands_of_arguments_is_compared_too(made):
    """Each was a column of its own, of which a statement has 1,664: no decider could open the page."""
    before = asked(made, [ADA])
    approve(before.pk, made.ines)
    many = {f"k{number}": "v" for number in range(2_000)} | {"to": [ADA]}
    anything = Tool(name="post", description="", parameters={}, function=print)

    found = compare.compared(asked(made, [BO]), many, anything, Approval.objects.all())
    assert found.before == before and found.new == {"v"}


def test_nothing_is_compared_for_a_tool_that_is_gone(made):
    approval = asked(made, [ADA])

    assert compare.compared(approval, {}, None, Approval.objects.all()) == compare.Compared()


def test_a_page_shows_each_recipient_and_each_character_that_is_sent(made):
    people = [f"p{number}@example{number % 7}.org" for number in range(50)]
    body = "Pay \u202e0001 EUR\u202c now\u200b. " + "x" * 5_000 + " And\u00a0the end."
    letter = {"to": people, "subject": "A\u2066b", "body": body}
    run = drive(made, "Write", by_role(Personal_agent=[call(("send_email", letter))]))
    approval = Approval.objects.get(run=run)
    assert approval.arguments == letter

    for page in (
        client_of(made.ines).get(url("runs_approval_change", approval.pk)),
        client_of(made.ines).get(reverse("web:approval", args=[approval.pk])),
    ):
        said = unescape(text(page))
        assert [one for one in people if f">{one} <" not in said and f">{one}<" not in said] == []
        assert "50 recipients in 7 domains" in said and "Approve and send to 50 people" in said
        assert body.translate(SPELLED) in said and "A⟨U+2066⟩b" in said
