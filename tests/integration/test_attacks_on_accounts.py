# ruff: noqa: F811
"""Colleagues' votes, cast by whoever has changed their accounts or the provider that says who they are."""

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models.functions import Now

from groups import accounts, changes
from groups.models import Change, IdentityProvider, Organization, Token
from policy.models import CapabilityRule
from tests.factories import MembershipFactory, UserFactory
from tests.integration.test_cells import empty_cell, here, moved, there  # noqa: F401 - fixtures
from tests.integration.test_second_person import administrator, asked, confirmed, refused

ELSEWHERE = "https://id.elsewhere.example"


@pytest.fixture
def home(world):
    """A colleague signs in by the organization's provider."""
    colleague = MembershipFactory(organization=world.organization, role="decider").user
    provider = IdentityProvider.objects.create(
        organization=world.organization, name="Company", issuer="https://id.example.org", client_id="deputy"
    )
    SocialAccount.objects.create(provider=provider.pk, uid="s-1", user=colleague)
    provider.colleague = colleague
    return provider


def changed(user, home):
    return accounts.changed_by_another(user, home.organization_id)


def given_a_password(user, by):
    """At the admin's pages."""
    user.set_password("another")
    with changes.acting(by, "admin"):
        user.save()
    LogEntry.objects.log_actions(by.pk, [user], CHANGE, "Changed password.", single_object=True)


def asked_of_two(world):
    """A rule that two decide, which somebody would have nobody decide."""
    return CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_approval", deciders_needed=2
    )


@pytest.mark.django_db
def test_who_has_changed_an_account_does_not_undo_it_by_removing_their_own(world, home):
    root = UserFactory(username="root", is_superuser=True, is_staff=True)
    given_a_password(home.colleague, root)
    assert changed(home.colleague, home)
    root.delete()
    assert changed(home.colleague, home)


@pytest.mark.django_db
def test_nor_that_they_have_removed_its_second_factor(home):
    root = UserFactory(username="root", is_superuser=True, is_staff=True)
    with changes.acting(root, "admin"):
        accounts.remove_factors(home.colleague)
    root.delete()
    assert changed(home.colleague, home)


@pytest.fixture
def two(world):
    """An organization whose second person is asked, and its two administrators."""
    ada, bo = (administrator(world, name) for name in ("ada", "bo"))
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    return ada, bo


@pytest.mark.django_db
def test_nobody_proposes_as_a_colleague_what_they_then_confirm(world, two):
    """Who gives a colleague's account a new password could sit at it."""
    ada, bo = two
    rule = asked_of_two(world)
    given_a_password(ada, bo)
    proposal = asked(ada, world, rule, effect="allow")
    assert "changed" in refused(bo, proposal, "NOT_ENTITLED")
    LogEntry.objects.update(action_time=Now() - accounts.VOID_FOR)
    Change.objects.update(created_at=Now() - accounts.VOID_FOR)
    assert confirmed(bo, proposal).state == "confirmed"


@pytest.mark.django_db
def test_nor_as_a_service_account_whose_token_they_may_hold(world, two):
    _, bo = two
    robot = administrator(world, "robot", kind="service")
    proposal = asked(robot, world, asked_of_two(world), effect="allow")
    assert "service account" in refused(bo, proposal, "NOT_ENTITLED")


@pytest.mark.django_db
def test_what_people_change_of_their_own_account_takes_nothing_away(home):
    given_a_password(home.colleague, home.colleague)
    assert not changed(home.colleague, home)


@pytest.mark.django_db
def test_a_provider_that_two_have_changed_casts_nobodys_vote_for_an_hour(world, home):
    """Nor that of the second person, who has confirmed it in good faith."""
    ada, bo = (administrator(world, name) for name in ("ada", "bo"))
    SocialAccount.objects.create(provider=home.pk, uid="s-2", user=bo)
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    home.issuer = ELSEWHERE
    with changes.acting(ada, "admin"), pytest.raises(changes.TakesSecond) as held:
        home.save()
    held.value.proposed.save()
    assert not changed(home.colleague, home)

    with changes.acting(bo, "admin"):
        confirmed(bo, held.value.proposed)

    assert IdentityProvider.objects.get(pk=home.pk).issuer == ELSEWHERE
    assert changed(home.colleague, home)
    assert changed(bo, home)


@pytest.mark.django_db
def test_nor_does_what_another_organization_makes_of_its_own_place_for_them(world, home):
    """Its administrators would keep a colleague from deciding here, hour after hour."""
    theirs = MembershipFactory(user=home.colleague, role="viewer")
    root = MembershipFactory(organization=theirs.organization, role="administrator").user
    with changes.acting(root, "admin"):
        provider = IdentityProvider.objects.create(
            organization=theirs.organization, name="Others", issuer=ELSEWHERE, client_id="deputy"
        )
        theirs.role = "member"
        theirs.save()
        Token.objects.issue(theirs.organization, home.colleague, scopes=["runs:read"])
    SocialAccount.objects.create(provider=provider.pk, uid="s-2", user=home.colleague)
    LogEntry.objects.log_actions(root.pk, [theirs, provider], CHANGE, "Changed.")
    assert not changed(home.colleague, home)
    assert accounts.changed_by_another(home.colleague, theirs.organization_id)

    with changes.acting(root, "admin"):
        provider.delete()
    assert not changed(home.colleague, home)


@pytest.mark.django_db(transaction=True)
def test_a_move_to_another_cell_gives_no_account_its_votes_back(world, there):
    ada = administrator(world, "ada")
    colleague = MembershipFactory(organization=world.organization, role="decider").user
    given_a_password(colleague, ada)
    assert accounts.changed_by_another(colleague, world.organization.pk)

    moved(world.organization, there)

    changed = accounts.CHANGED.format(when=accounts.LATELY)
    asked = there.execute(f"SELECT {changed}", accounts._of(colleague, world.organization.pk))
    assert asked.fetchone()[0]
