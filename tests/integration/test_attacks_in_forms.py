"""Forms of the admin that write a row back as it was while somebody else takes something back."""

from contextlib import closing

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from groups import changes
from groups.models import GroupMember, Project, Token
from memory import curate
from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from policy.models import CapabilityRule, Grant
from tests.acting import at_the_pages
from tests.admin_world import client_of, url
from tests.at_once import Beside, until_blocked
from tests.factories import MemberFactory, MembershipFactory, RoleFactory, permit
from tests.forms import change_form

pytestmark = pytest.mark.django_db(transaction=True)


def staff(world, *rights, **fields):
    member = MembershipFactory(organization=world.organization, user__is_staff=True, **fields)
    return permit(member.user, *rights)


def saved_beside(user, page, fields, meanwhile):
    """The user saves the form while somebody else's change has been made and is not committed yet."""
    browser = client_of(user)

    def save():
        with closing(connection):
            return browser.post(page, fields)

    with transaction.atomic():
        meanwhile()
        saving = Beside(save)
        until_blocked(saving)
    return saving.result()


def test_a_projects_administrator_saves_its_name_and_not_who_approved_what_there(world):
    user = staff(world, "groups.change_project", "groups.view_project", projects=[world.project.pk])
    mine = Project.objects.filter(pk=world.project.pk)
    mine.update(allow_self_approval=True, approval_profile="off")
    saved_beside(
        user,
        url("groups_project_change", world.project.pk),
        {"name": "New name", "slug": "atlas"},
        lambda: mine.update(allow_self_approval=False, approval_profile="careful"),
    )
    project = mine.get()
    assert (project.name, project.allow_self_approval, project.approval_profile) == (
        "New name", False, "careful",
    )  # fmt: skip


def test_what_is_revoked_stays_so(world):
    rights = ("policy.change_grant", "policy.add_grant", "policy.view_grant", "runs.decide_approval")
    user = staff(world, *rights)
    grant = Grant.objects.create(
        organization=world.organization, project=world.project, tool="send_email", any_arguments=True,
        granted_by=world.user, max_uses=9,
    )  # fmt: skip
    fields = {"reason": "mine", "max_uses": 9, "expires_at_0": "", "expires_at_1": ""}
    page = url("policy_grant_change", grant.pk)
    saved_beside(user, page, fields, lambda: changes.update(Grant.objects.all(), revoked_at=Now()))
    grant.refresh_from_db()
    assert grant.revoked_at is not None


def test_a_token_that_is_revoked_stays_so(world):
    user = staff(world, "groups.change_token", "groups.view_token", role="administrator")
    token, _ = Token.objects.issue(world.organization, user, "mine", scopes=["runs:read"])
    fields = {"name": "mine still", "scopes": ["runs:read"], "expires_at_0": "", "expires_at_1": ""}
    page = url("groups_token_change", token.pk)
    saved_beside(user, page, fields, lambda: changes.update(Token.objects.all(), revoked_at=Now()))
    token.refresh_from_db()
    assert (token.name, token.revoked_at is None) == ("mine still", False)


def test_with_a_second_person_one_takes_back_no_colleagues_deny(world):
    type(world.organization).objects.filter(pk=world.organization.pk).update(second_person=True)
    user = staff(world, "policy.change_capabilityrule", "policy.view_capabilityrule")
    rule = CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_approval", name="mail"
    )
    fields = {
        "name": "mail!", "tool": "send_email", "effect": "require_approval", "condition": "",
        "on_expiry": "fail_call", "deciders_needed": 1, "active": "on", "timeout_seconds": "", "deciders": "",
    }  # fmt: skip
    mine = CapabilityRule.objects.filter(pk=rule.pk)
    page = url("policy_capabilityrule_change", rule.pk)
    saved_beside(user, page, fields, lambda: mine.update(effect="deny"))
    assert mine.get().effect == "deny"


RULE = {
    "name": "mail!", "tool": "send_email", "effect": "allow", "condition": "",
    "on_expiry": "fail_call", "deciders_needed": 1, "active": "on", "timeout_seconds": "", "deciders": "",
}  # fmt: skip


def test_a_form_that_was_open_takes_back_no_colleagues_deny(world):
    """Nobody had meant to: the form corrected a name, and a mail left that the colleague had denied."""
    user = staff(world, "policy.change_capabilityrule", "policy.view_capabilityrule")
    rule = CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="allow", name="mail"
    )
    page, browser = url("policy_capabilityrule_change", rule.pk), client_of(user)
    opened = browser.get(page).context["opened"]
    CapabilityRule.objects.update(effect="deny")

    answer = browser.post(page, {**RULE, "opened": opened}, follow=True)
    rule.refresh_from_db()
    assert (rule.effect, rule.name) == ("deny", "mail")
    assert "nothing was saved" in answer.content.decode()

    unfit = browser.post(page, {**RULE, "condition": "no such thing", "opened": answer.context["opened"]})
    CapabilityRule.objects.update(shadow=True)
    browser.post(page, {**RULE, "effect": "deny", "opened": unfit.context["opened"]})
    rule.refresh_from_db()
    assert rule.name == "mail" and rule.shadow

    opened = browser.get(page).context["opened"]
    browser.post(page, {**RULE, "effect": "deny", "opened": opened})
    rule.refresh_from_db()
    assert (rule.effect, rule.name, rule.shadow) == ("deny", "mail!", False)
    other = url("policy_capabilityrule_delete", rule.pk)
    assert browser.post(other, {"post": "yes", "opened": opened}).status_code == 403


def test_nor_gives_it_a_seat_the_role_that_it_has_lost(world):
    rights = ("change_group", "view_group", "change_groupmember", "view_groupmember", "view_role")
    user = staff(world, *(f"groups.{name}" for name in rights))
    seat = MemberFactory(group=world.group)
    page, browser = url("groups_group_change", world.group.pk), client_of(user)
    opened = change_form(browser.get(page))
    assert opened["opened"] == change_form(browser.get(page))["opened"]
    narrower = RoleFactory(organization=world.organization, denied_tools=["send_email"])
    GroupMember.objects.filter(pk=seat.pk).update(role=narrower)

    browser.post(page, {**opened, "name": "Other"})
    seat.refresh_from_db()
    assert seat.role == narrower

    browser.post(page, {**change_form(browser.get(page)), "name": "Other"})
    world.group.refresh_from_db()
    assert world.group.name == "Other"


def test_nor_puts_back_what_a_curator_has_corrected(world):
    """The address that had stood there before was the organization's word again."""
    user = staff(world, "memory.curate_memory", "memory.view_memory")
    scope = Scope(world.organization.pk, project_id=world.project.pk)
    known = memory_write("The report for Bob goes to old@example.org", scope, type="archival")
    page, browser = url("memory_depositedknowledge_change", known.pk), client_of(user)
    opened = change_form(browser.get(page))
    curate.edit(known.pk, at_the_pages(user, world.organization.pk), content="It goes to new@example.org")

    browser.post(page, {**opened, "importance": "0.9"})
    assert Memory.objects.values_list("content", "importance").get() == ("It goes to new@example.org", 0.5)

    browser.post(page, {**change_form(browser.get(page)), "importance": "0.9"})
    assert Memory.objects.values_list("content", "importance").get() == ("It goes to new@example.org", 0.9)
