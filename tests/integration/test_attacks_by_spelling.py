"""A recipient whose address the rule's condition does not recognize: another spelling of the same mailbox, or
a rule that is spelled otherwise.
"""

import pytest
from django.core import mail

from policy.models import Capability, CapabilityRule
from runs.models import Approval
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("condition", "to"),
    [
        ('to.exists(a, a.endsWith("Bank.example"))', "eve@Bank.example"),
        ('to.exists(a, a.endsWith("Bank.example"))', "eve@bank.example"),
        ('to.exists(a, a.contains("BANK"))', "eve@BANK.example"),
        ('to.exists(a, a.startsWith("CEO"))', "CEO@bank.example"),
        ('to.exists(a, a.matches(".*@(Bank|Post)[.]example"))', "eve@Bank.example"),
        ('to.exists(a, a.endsWith("@bücher.example"))', "eve@xn--bcher-kva.example"),
        ('to.exists(a, a.endsWith("@xn--bcher-kva.example"))', "eve@bücher.example"),
        ('to.exists(a, a.endsWith("@xn--bcher-kva.example"))', "eve@XN--Bcher-KVA.example"),
        ('to.exists(a, a.contains("@xn--"))', "eve@xn--bcher-kva.example"),
        (r'to.exists(a, a.matches("^\\S+@bank\\.example$"))', "eve@bank.example"),
        (r'to.exists(a, a.matches(r"^[^\W]+@Bank\.example$"))', "eve@BANK.example"),
        ("""to.exists(a, a == "o'brien@bank.example")""", "O'Brien@bank.example"),
        ('to.exists(a, a.startsWith("ceo+"))', f"CEO+{'x' * 70}@bank.example"),
        ('to.exists(a, a.contains("@xn--"))', "eve@bücher.example"),
        ('to.exists(a, a.contains("@xn--") && a.endsWith(".xn--p1ai"))', "eve@xn--80ak6aa92e.xn--p1ai"),
        ('to.exists(a, a.contains("@xn--") && a.startsWith("CEO"))', "ceo@xn--bcher-kva.example"),
        ('to.exists(a, a.endsWith("@bu\u0308cher.example"))', "eve@bücher.example"),
    ],
)
def test_whom_a_rule_names_it_names_however_either_is_spelled(world, ask, condition, to):
    CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="allow")
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_human", condition=condition
    )
    run = ask(in_order(call(("send_email", {"to": [to], "subject": "s", "body": "b"})), say("done")))
    assert (run.status, mail.outbox) == ("waiting", [])


@pytest.mark.parametrize("to", ["eve@Rival.example", "eve@rival.example", "eve@xn--rvl-fla2d.example"])
def test_nor_does_it_allow_what_it_excepts(world, ask, to):
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="allow",
        condition='!to.exists(a, a.endsWith("Rival.example") || a.endsWith("Rívál.example"))',
    )  # fmt: skip
    run = ask(in_order(call(("send_email", {"to": [to], "subject": "s", "body": "b"})), say("done")))
    assert (run.status, mail.outbox) == ("waiting", [])


@pytest.mark.parametrize("to", ["eve@Rival.example", "eve@rival.example", "eve@RIVAL.example"])
def test_nor_does_it_ask_for_less_about_what_it_excepts(world, ask, to):
    """A rule that asks for one decider, of a tool, stands in the place of one for two, of all tools."""
    organization = world.organization
    mails, _ = Capability.objects.get_or_create(organization=organization, name="send_email")
    CapabilityRule.objects.create(
        organization=organization, capability=mails, effect="require_human", deciders_needed=2
    )
    CapabilityRule.objects.create(
        organization=organization, tool="send_email", effect="require_approval",
        condition='!to.exists(a, a.endsWith("Rival.example"))',
    )  # fmt: skip
    ask(in_order(call(("send_email", {"to": [to], "subject": "s", "body": "b"})), say("done")))
    found = Approval.objects.get()
    assert (found.effect, found.deciders_needed) == ("require_human", 2)
