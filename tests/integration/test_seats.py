"""One seat an agent in a group, and every call with the rights of the seat that asked for it."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from groups.models import GroupMember
from runs.gate import admission
from runs.models import Run, ToolCall
from tests.admin_world import client_of, person, tenant, url
from tests.factories import MemberFactory, RoleFactory, permit_all
from tests.integration.api_client import Api, permit, problem
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db

DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
MAIL = call(("send_email", {"to": ["a@example.org"], "subject": "x", "body": "x"}))


def test_an_agent_has_one_seat_in_a_group_at_every_door(world):
    seat = world.group.members.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        MemberFactory(group=world.group, agent_instance=seat.agent_instance, ordinal=9)
    with pytest.raises(ValidationError, match="sits in the group already"):
        GroupMember(
            organization=world.organization, group=world.group, role=seat.role,
            agent_instance=seat.agent_instance, ordinal=9,
        ).full_clean()  # fmt: skip
    api = Api(permit(world.user, "groups.add_groupmember"), world.organization)
    body = {"group": world.group.pk, "role": seat.role_id, "agent": seat.agent_instance_id}
    answer = api.post("groups/members/", body)
    assert problem(answer) == (422, "INVALID")
    assert "sits in the group already" in answer.content.decode()


def test_a_group_has_one_lead_and_says_so_in_words(world):
    seat = world.group.members.filter(is_lead=True).first() or world.group.members.first()
    GroupMember.objects.filter(pk=seat.pk).update(is_lead=True)
    with pytest.raises(ValidationError, match="has a lead already"):
        GroupMember(
            organization=world.organization, group=world.group, role=seat.role, ordinal=9, is_lead=True,
            agent_instance=MemberFactory().agent_instance,
        ).full_clean()  # fmt: skip


def test_the_admin_says_so_for_rows_of_one_form(db):
    made = tenant()
    browser = client_of(permit_all(person(made, "manager", is_staff=True)))
    agent, other = made.seat.agent_instance_id, RoleFactory(organization=made.organization)
    rows = {
        f"members-{row}-{name}": value
        for row, role in enumerate((made.role.pk, other.pk))
        for name, value in {"ordinal": row, "role": role, "agent_instance": agent}.items()
    }
    fields = {
        "name": "Twice", "capabilities": "", "max_rounds": 3,
        "organization": made.organization.pk, "project": made.project.pk,
        "members-TOTAL_FORMS": 2, "members-INITIAL_FORMS": 0, **rows,
    }  # fmt: skip
    page = browser.post(url("groups_group_add"), fields).content.decode()

    assert "An agent sits in a group once" in page
    assert not GroupMember.objects.filter(group__name="Twice").exists()


def twice(world):
    """The group as it could be before: one agent as a reader, who may send, and as a lead, who may not."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE groups_groupmember DROP CONSTRAINT group_member_agent")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    first, *_, last = world.group.members.order_by("ordinal")
    for seat, tools in ((first, None), (last, [])):
        seat.role.allowed_tools = tools
        seat.role.save()
    GroupMember.objects.filter(pk=last.pk).update(agent_instance=first.agent_instance)
    return first, last


def test_a_call_has_the_rights_of_the_seat_that_asks_and_records_it(ask, world):
    _first, last = twice(world)
    run = ask(
        by_role(
            Personal_agent=[DOWN, say("done")],
            researcher=[say("EVIDENCE: 1")],
            analyst=[say("PROPOSAL: 1")],
            lead=[MAIL, say("DECISION: 1")],
        )
    )
    child = Run.objects.get(parent_run=run)

    assert not ToolCall.objects.filter(run=child, status="succeeded").exists()
    made = ToolCall.objects.filter(run=child, tool="send_email").first()
    assert made is None or (made.seat, made.role_id) == (last.pk, last.role_id)
    assert "tool.blocked" in [event.type for event in child.events.all()]


def test_what_policy_says_of_an_edit_is_asked_of_the_seat(ask, world):
    first, _last = twice(world)
    run = ask(by_role(Personal_agent=[DOWN], researcher=[MAIL]))
    child = Run.objects.get(parent_run=run)
    made = ToolCall.objects.get(run=child, tool="send_email")
    assert (made.seat, made.role_id) == (first.pk, first.role_id)

    assert admission.role_of(child, made) == first.role_id
    made.role_id = ""  # as it was before seats were recorded: the log knows whose turn it was
    assert admission.role_of(child, made) == first.role_id
