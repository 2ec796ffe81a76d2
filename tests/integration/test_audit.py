"""Every decision of every run in one list, and as a file a spreadsheet opens without harm."""

import csv
import io
from datetime import timedelta

import pytest
from django.utils import timezone

from policy.models import CapabilityRule
from runs.execution import executor
from runs.models import Approval, RunEvent
from runs.observe import audit
from runs.observe.audit import Asked
from tests.acting import approve, reject
from tests.factories import MembershipFactory, ProjectFactory
from tests.scripted import call, in_order, say

from .test_decisions import TO, decider

pytestmark = pytest.mark.django_db

SEARCH = call(("memory_search", {"query": "prices"}))
SEND = call(("send_email", TO))


@pytest.fixture
def rule(world):
    return CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_approval", name="mail is checked"
    )


@pytest.fixture
def history(ask, rule, world):
    """A search that was allowed, a mail that was approved, one that was rejected, one that was denied."""
    zoe = decider(world, name="zoe")
    approved = ask(in_order(SEARCH, SEND, say("done")))
    approve(Approval.objects.get(run=approved).pk, zoe)
    executor.run(approved.pk)
    rejected = ask(in_order(SEND, say("done")))
    reject(Approval.objects.get(run=rejected).pk, zoe, "no")
    executor.run(rejected.pk)
    rule.effect = "deny"
    rule.save()
    denied = ask(in_order(SEND, say("done")))
    return approved, rejected, denied


@pytest.fixture
def rows(world):
    def _rows(**fields):
        return audit.decisions(Asked(world.organization.pk, **fields))

    return _rows


def test_every_decision_is_there_the_newest_first_with_rule_policy_and_decider(history, rows, rule):
    approved, rejected, denied = history

    assert [
        (row.run, row.tool, row.effect, row.reason_code, row.rule, row.approval_status, row.decider)
        for row in rows()
    ] == [
        (denied.pk, "send_email", "deny", "rule_deny", rule.pk, None, None),
        (rejected.pk, "send_email", "require_approval", "rule_require_approval", rule.pk, "rejected", "zoe"),
        (approved.pk, "send_email", "allow", "approved", rule.pk, "approved", "zoe"),
        (approved.pk, "send_email", "require_approval", "rule_require_approval", rule.pk, "approved", "zoe"),
        (approved.pk, "memory_search", "allow", "risk_default", "", None, None),
    ]
    assert {row.user for row in rows()} == {"mia"}
    assert len({row.policy for row in rows()}) == 2  # before the rule changed, and after
    assert rows()[0].message == "Tool 'send_email' is denied by policy: mail is checked"


def test_filters_narrow_it_down(history, rows, rule, world):
    approved, _, denied = history
    other = ProjectFactory(organization=world.organization)

    def runs(**fields):
        return [row.run for row in rows(**fields)]

    assert runs(effect="deny") == [denied.pk]
    assert runs(tool="memory_search") == [approved.pk]
    assert len(runs(rule=rule.pk)) == 4
    assert len(runs(user=world.user.pk)) == len(runs(projects=[world.project.pk])) == 5
    assert runs(user=MembershipFactory().user.pk) == runs(projects=[]) == runs(projects=[other.pk]) == []
    assert runs(run=denied.pk) == [denied.pk]
    at = rows()[0].time
    assert runs(since=at) == [denied.pk]
    assert len(runs(until=at)) == 4
    assert runs(since=timezone.now() + timedelta(hours=1)) == []


def test_another_organizations_decisions_are_not_in_it(history):
    assert audit.decisions(Asked(ProjectFactory().organization_id)) == []


def test_a_page_goes_on_where_the_one_before_ended(history, rows, world, monkeypatch):
    asked, everything = Asked(world.organization.pk), rows()
    first = audit.decisions(asked, 2)

    assert first + audit.decisions(asked, 100, first[-1].position) == everything
    monkeypatch.setattr(audit, "MOST", 2)
    assert list(audit.every(asked)) == everything


def test_the_export_is_csv_with_a_line_of_heads(history, world):
    found = list(csv.reader(io.StringIO("".join(audit.as_csv(Asked(world.organization.pk))))))

    assert found[0][:4] == ["time", "run", "seq", "project"]
    assert len(found) == 6
    assert found[1][found[0].index("effect")] == "deny"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "＝"])
def test_no_cell_of_the_export_is_a_formula(history, world, start):
    evil = f'{start}HYPERLINK("http://x")'
    event = RunEvent.objects.get(type="tool.blocked")
    event.payload["error"]["message"] = evil
    event.save()

    found = list(csv.reader(io.StringIO("".join(audit.as_csv(Asked(world.organization.pk))), newline="")))
    assert found[1][found[0].index("message")] == f"'{evil}"


def test_a_shadow_rules_word_is_in_it(ask, world, rows):
    tried = CapabilityRule.objects.create(
        organization=world.organization, tool="memory_search", effect="deny", shadow=True
    )
    ask(in_order(SEARCH, say("done")))

    (row,) = rows()
    assert (row.effect, row.shadowed) == ("allow", f"{tried.pk}: deny")
