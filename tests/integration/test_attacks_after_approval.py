"""Whom an approved call reaches: an administrator who sends it elsewhere after the approval sends nothing."""

from types import SimpleNamespace

import pytest

from groups.models import Project
from policy.models import CapabilityRule
from runs.actions import decide, mcp
from runs.execution import executor
from runs.models import Approval, McpServer
from runs.tools import toolbox
from tests.acting import approve
from tests.factories import MembershipFactory
from tests.integration.api_client import Api, permit
from tests.integration.helpers import types
from tests.integration.test_mcp_servers import DELETE, FIND, accepted, crm, site  # noqa: F401
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db
DELETES = call(("crm.delete_customer", {"name": "Ada"}))


@pytest.fixture
def deciders(world):
    """Two who may decide."""
    made = [MembershipFactory(organization=world.organization, user__username=name) for name in ("ann", "bo")]
    return [permit(membership.user, "decide_approval") for membership in made]


@pytest.fixture
def here(world, crm, site):  # noqa: F811
    """An organization with an MCP server, whose tools are accepted."""
    accepted(crm, world.user)
    return SimpleNamespace(world=world, crm=crm, site=site, user=world.user)


@pytest.fixture
def asked(here, ask):
    """A call of a tool of high risk that waits for approval."""
    run = ask(in_order(DELETES, say("Done.")), "Delete Ada")
    here.site.behave()
    return Approval.objects.get(run=run)


def another_path(here):
    here.crm.url = f"{here.crm.url}?tenant=production"
    here.crm.save()


def another_header(here):
    here.crm.keep_headers({"X-Account": "production"})
    here.crm.save()


def other_words(here):
    tools = FIND, {**DELETE, "description": "Deletes a customer and all invoices."}
    here.site.behave(*tools)
    accepted(here.crm, here.user)
    here.site.behave(*tools)


def the_name_to_another(here):
    here.crm.name = "old"
    here.crm.save()
    other = McpServer.objects.create(
        organization=here.world.organization, name="crm", url=f"{here.crm.url}?other"
    )
    accepted(other, here.user)


def the_person_in_its_place(here):
    here.crm.as_person = True
    here.crm.save()


MOVES = [another_path, another_header, other_words, the_name_to_another, the_person_in_its_place]


def goes_on(approval):
    executor.run(approval.run_id)
    approval.run.refresh_from_db()
    return approval.run


@pytest.mark.parametrize("move", MOVES)
def test_what_was_approved_goes_nowhere_else(here, asked, deciders, move):
    approve(asked.pk, deciders[0])
    move(here)
    run = goes_on(asked)

    assert (run.status, run.waiting_reason, here.site.calls) == ("waiting", "approval", [])
    asked.refresh_from_db()
    anew = Approval.objects.exclude(pk=asked.pk).get()
    assert (asked.status, anew.status, anew.replaces_id) == ("superseded", "pending", asked.pk)
    assert anew.arguments_digest != asked.arguments_digest
    assert "whom it reaches has changed" in anew.explanation


def test_where_nothing_has_changed_it_goes(here, asked, deciders):
    here.crm.save()
    mcp.refresh(here.crm)
    approve(asked.pk, deciders[0])
    run = goes_on(asked)

    assert (run.status, [one["arguments"] for one in here.site.calls]) == ("completed", [{"name": "Ada"}])
    assert types(run).count("tool.requires_approval") == 1


@pytest.mark.parametrize("move", MOVES)
def test_who_has_seen_where_it_went_decides_nothing_about_where_it_goes(here, asked, deciders, move):
    """At the API, which names what was seen by its digest; the new one is about what is there."""
    move(here)
    api, path = Api(deciders[0], here.world.organization), f"approvals/{asked.pk}/approve/"
    for _ in range(2):
        refused = api.post(path, {"arguments_digest": asked.arguments_digest})
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/changed/")
    assert goes_on(asked).waiting_reason == "approval" and here.site.calls == []

    now = api.get(f"approvals/{asked.pk}/").json()
    assert now["arguments_digest"] != asked.arguments_digest and now["status"] == "pending"
    assert now["explanation"].endswith("Asked again: whom it reaches has changed since it was asked for.")
    assert now["explanation"].count("Asked again") == 1
    assert api.post(path, {"arguments_digest": now["arguments_digest"]}).status_code == 200


@pytest.mark.parametrize("move", MOVES)
def test_of_two_votes_both_are_about_the_same_server(here, ask, deciders, move):
    CapabilityRule.objects.create(
        organization=here.world.organization,
        tool="crm.delete_customer",
        effect="require_approval",
        deciders_needed=2,
        name="two delete",
    )
    run = ask(in_order(DELETES, say("Done.")), "Delete Ada")
    here.site.behave()
    approval = Approval.objects.get(run=run)
    ann, bo = deciders
    assert approve(approval.pk, ann).status == "pending"
    move(here)

    with pytest.raises(decide.DecisionRefused) as refused:
        approve(approval.pk, bo)
    assert refused.value.code == "CHANGED"
    assert approve(approval.pk, bo).status == "pending"  # Ann's was about another
    assert goes_on(approval).waiting_reason == "approval" and here.site.calls == []
    assert approve(approval.pk, ann).status == "approved"


@pytest.mark.parametrize("move", [move for move in MOVES if move is not the_name_to_another])
def test_what_passed_the_gate_before_it_moved_is_not_sent(here, asked, move):
    """In the moment between the gate and the call; of one whose name changes it is the approved one still."""
    tool = toolbox.current(here.world.organization.pk)["crm.delete_customer"]
    move(here)
    known = {"organization_id": here.world.organization.pk, "user_id": here.user.pk, "filled": None}
    known |= {"run_id": asked.run_id, "call_id": "1.0", "idempotency_key": "k"}
    context = type("Context", (), known)

    with pytest.raises(Exception, match="has just changed") as refused:
        tool.function(context, name="Ada")
    assert (refused.value.code, here.site.calls) == ("TOOL_SUSPENDED", [])


@pytest.mark.parametrize("name", ["careful", "balanced"])
@pytest.mark.parametrize("move", MOVES)
def test_nor_does_the_same_call_go_there_because_it_was_approved_before(here, ask, deciders, move, name):
    """An approval is for the one call, and the next one would go to somebody else."""
    Project.objects.filter(pk=here.world.project.pk).update(approval_profile=name)
    play, asked_before = in_order(DELETES, DELETES, say("Done.")), []

    def moved(*request):
        asked_before.append(request)
        if len(asked_before) == 2:
            move(here)
        return play(*request)

    run = ask(moved, "Any news?")
    here.site.behave()
    first = run.approvals.get()
    approve(first.pk, deciders[0])
    run = goes_on(first)
    assert (run.waiting_reason, run.approvals.count()) == ("approval", 2)
    assert types(run).count("tool.completed") == 1


def test_changed_arguments_are_bound_to_whom_they_reach_as_well(here, asked, deciders):
    new = approve(asked.pk, deciders[0], arguments={"name": "Bob"})
    another_path(here)
    run = goes_on(new)

    assert (run.waiting_reason, here.site.calls) == ("approval", [])
    again = Approval.objects.get(run=run, status="pending")
    assert approve(again.pk, deciders[0]).status == "approved"
    assert goes_on(again).status == "completed"
    assert [one["arguments"] for one in here.site.calls] == [{"name": "Bob"}]


def test_deciders_see_where_it_goes_and_no_more_of_the_address(here, asked, deciders, client):
    client.force_login(deciders[0])
    McpServer.objects.filter(pk=here.crm.pk).update(url="https://crm.example/s/hush-hush/mcp?key=hush-hush")
    shown = client.get(f"/approvals/{asked.pk}/").content.decode()
    assert "It goes to crm.example<" in shown and "hush-hush" not in shown
