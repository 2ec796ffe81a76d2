"""The admin's pages about policy: what would happen to a call, every decision, and rules that are refused."""

import csv
import io
import json

import pytest

from policy.models import CapabilityRule
from runs.models import Run
from tests.admin_world import client_of, person, superuser, tenant, url
from tests.factories import ProjectFactory, permit

pytestmark = pytest.mark.django_db

MAIL = {"to": ["ada@example.org"], "subject": "s", "body": "b"}


@pytest.fixture
def made():
    return tenant("Mail is checked")


@pytest.fixture
def other():
    return tenant("Another tenant's words", "other")


@pytest.fixture
def auditor(made):
    """A member of one project who may look at rules and events."""
    user = person(made, "auditor", "policy.view_capabilityrule", "runs.view_runevent", is_staff=True)
    return client_of(user)


@pytest.fixture
def what_if(made, auditor):
    """The page's words about a call of mia's agent."""

    def _what_if(client=auditor, **fields):
        body = {
            "user": made.user.username,
            "project": made.project.pk,
            "tool": "send_email",
            "arguments": json.dumps(MAIL),
            **fields,
        }
        response = client.post(url("runs_what_if"), body)
        assert response.status_code == 200
        return " ".join(response.content.decode().split())

    return _what_if


def test_the_page_says_what_would_happen_why_and_who_could_unlock_it(what_if, made):
    before = Run.objects.count()
    page = what_if()

    assert "Tool &#x27;send_email&#x27; requires approval: Mail is checked" in page
    assert "An approval would let it run, from one member with the right to decide approvals" in page
    assert "Today that is nobody." in page
    assert url("policy_capabilityrule_change", made.rule.pk) in page
    assert Run.objects.count() == before

    person(made, "zoe", "runs.decide_approval")
    assert "Today: zoe." in what_if()


def test_arguments_that_do_not_fit_are_told_in_words(what_if):
    assert "/to: 1 is not of type &#x27;array&#x27;" in what_if(arguments='{"to": 1}')
    assert "This is not JSON" in what_if(arguments="{")
    assert "The arguments are a JSON object" in what_if(arguments="[]")


def test_a_groups_member_and_a_stranger_are_told_apart(what_if, made, other):
    assert "Considered, in order" in what_if(group=made.group.pk, role=made.role.pk)
    assert "Nobody of this name is a member" in what_if(user=other.user.username)
    page = what_if(project=other.project.pk)
    assert 'id="answer"' not in page
    assert "Another tenant" not in page


def test_rules_of_projects_one_does_not_see_are_not_shown(what_if, made):
    elsewhere = ProjectFactory(organization=made.organization)
    CapabilityRule.objects.create(
        organization=made.organization,
        project=elsewhere,
        tool="send_email",
        effect="deny",
        name="secret plan",
    )
    limited = person(None, "limited", is_staff=True)
    limited.memberships.create(organization=made.organization, projects=[made.project.pk])
    limited = permit(limited, "policy.view_capabilityrule")

    assert "secret plan" in what_if()
    assert "secret plan" not in what_if(client_of(limited))


def test_decisions_are_listed_filtered_and_exported(made, other, auditor):
    page = auditor.get(url("runs_decisions")).content.decode()
    assert made.approval.pk in page
    assert other.run.pk not in page
    assert made.approval.pk not in auditor.get(url("runs_decisions", effect="deny")).content.decode()

    exported = auditor.get(url("runs_decisions_export", tool="send_email"))
    assert exported["Content-Type"].startswith("text/csv")
    heads, *rows = csv.reader(io.StringIO(b"".join(exported.streaming_content).decode()))
    assert {row[heads.index("tool")] for row in rows} == {"send_email"}
    assert {row[heads.index("run")] for row in rows} == {made.run.pk}


@pytest.mark.parametrize("organization", ["other", "none"])
def test_another_organizations_decisions_cannot_be_asked_for(made, other, auditor, organization):
    asked = other.organization.pk if organization == "other" else "org_none"
    page = auditor.get(url("runs_decisions", organization=asked)).content.decode()

    assert other.run.pk not in page
    assert auditor.get(url("runs_decisions_export", organization=asked)).status_code == 404


def test_odd_parameters_are_no_error_of_the_servers(auditor, made):
    for query in ({"since": "x"}, {"before": "x|y"}, {"before": "2026-01-01|r|1"}, {"user": "nobody"}):
        assert auditor.get(url("runs_decisions", **query)).status_code == 200
    assert auditor.get(url("runs_decisions", tool="\x00")).status_code == 400


def test_the_admin_refuses_a_rule_with_the_models_words(made):
    root = client_of(superuser(made))
    body = {
        "organization": made.organization.pk,
        "tool": "send_email",
        "effect": "deny",
        "condition": "recipient == 1",
        "on_expiry": "fail_call",
        "deciders_needed": 1,
    }
    page = root.post(url("policy_capabilityrule_add"), body).content.decode()
    assert "line 1, column 1: there is no argument or function “recipient”" in page

    body["condition"] = "size(to) > 9"
    assert root.post(url("policy_capabilityrule_add"), body).status_code == 302
    assert CapabilityRule.objects.filter(condition="size(to) > 9").exists()
