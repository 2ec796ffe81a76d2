"""Standing approvals of those who may make none any more: who has left, whose role was taken back, a token
that was stolen and revoked. They count only while whoever made them could make them, where they made them.
"""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from groups import changes
from groups.actors import Via
from groups.models import CustomRole, Membership, Organization, ProposedChange, Token
from policy.models import CapabilityRule, Grant
from runs.actions.decide import Remember
from runs.actions.second import confirm
from runs.api.tools import decided
from runs.context.working_memory import policy_notes
from runs.execution import executor
from runs.gate.admission import gate_of
from runs.gate.simulation import foreseen
from runs.log.log import read
from runs.log.state import fold
from runs.models import Approval
from tests.acting import approve, at_the_pages, by_token
from tests.admin_world import client_of, text, url
from tests.factories import MembershipFactory, permit
from tests.integration.api_client import Api
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db

MAIL = {"to": ["a@example.com"], "subject": "s", "body": "b"}
MAKES = ("policy.add_grant", "policy.change_grant", "policy.view_grant", "runs.decide_approval")
NO_MORE = "Whoever made it may make none in its project any more."
NO_TOKEN = "The token it was made with was revoked, or has the scope for it no more."


@pytest.fixture
def ada(world):
    return permit(MembershipFactory(organization=world.organization, user__username="ada").user, *MAKES)


@pytest.fixture
def over_api(world, rule, ada):
    """A standing approval that ada's program made, and the program."""
    api = Api(ada, world.organization)
    said = {"project": world.project.pk, "tool": "send_email", "any_arguments": True, "max_uses": 9}
    answer = api.post("policy/grants/", said)
    assert answer.status_code == 201, answer.content
    return Grant.objects.get(), api


@pytest.fixture
def viewer(world):
    user = MembershipFactory(organization=world.organization, role="decider").user
    return Api(user, world.organization)


def mailed():
    return in_order(call(("send_email", MAIL)), say("done"))


def leaves(ask):
    """Whether a mail leaves unasked; and whether what is said beforehand agrees with it."""
    mail.outbox.clear()
    run = ask(mailed())
    gate = gate_of(run)
    speaker = fold(read(run.pk)).speaker
    (listed,) = [tool["decision"] for tool in decided(run) if tool["name"] == "send_email"]
    said = foreseen(run.organization, run.project, run.user, "send_email")
    assert len({listed["effect"] == "allow", said, run.status == "completed", len(mail.outbox) == 1}) == 1
    assert ("send_email" in policy_notes(gate, speaker)) is not said
    return said


def shown(api, grant):
    """What the API says of it, alone and in its list; and the state in the admin agrees."""
    one = api.get(f"policy/grants/{grant.pk}/").json()["void"]
    assert [each["void"] for each in api.get("policy/grants/").json()["results"]] == [one]
    return one


def membership_over(ada):
    Membership.objects.filter(user=ada).update(active=False)


def account_closed(ada):
    type(ada).objects.filter(pk=ada.pk).update(is_active=False)


def project_taken(ada):
    Membership.objects.filter(user=ada).update(projects=[])


def role_taken(ada):
    Membership.objects.filter(user=ada).update(custom_role=None, role="member")


def may_only_decide(ada):
    CustomRole.objects.filter(memberships__user=ada).update(permissions=["runs.decide_approval"])


def may_only_grant(ada):
    CustomRole.objects.filter(memberships__user=ada).update(permissions=["policy.add_grant"])


LOST = [membership_over, account_closed, project_taken, role_taken, may_only_decide, may_only_grant]


@pytest.mark.parametrize("lost", LOST)
def test_who_may_make_none_any_more_has_none_that_counts(ask, ada, viewer, over_api, lost):
    grant, _ = over_api
    assert leaves(ask) and shown(viewer, grant) is None

    lost(ada)
    assert not leaves(ask) and shown(viewer, grant) == NO_MORE


@pytest.mark.parametrize("lost", [membership_over, project_taken, account_closed])
def test_once_they_are_back_it_counts_again(ask, ada, over_api, lost):
    lost(ada)
    assert not leaves(ask)
    Membership.objects.filter(user=ada).update(active=True, projects=None)
    type(ada).objects.filter(pk=ada.pk).update(is_active=True)
    assert leaves(ask)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"revoked_at": timezone.now()}, NO_TOKEN),
        ({"scopes": []}, NO_TOKEN),
        ({"scopes": ["approvals:decide"]}, NO_TOKEN),
        ({"expires_at": timezone.now() - timedelta(days=1)}, None),
    ],
)
def test_what_a_token_made_ends_with_the_token_and_not_with_its_time(ask, viewer, over_api, change, why):
    grant, api = over_api
    Token.objects.filter(pk=api.token.pk).update(**change)
    assert leaves(ask) is (why is None)
    assert shown(viewer, grant) == why


def test_a_token_that_is_there_no_more_counts_as_revoked(ask, over_api):
    _, api = over_api
    Token.objects.filter(pk=api.token.pk).delete()
    assert not leaves(ask)


@pytest.mark.parametrize("revoked", [False, True])
def test_so_does_what_was_made_with_a_decision(world, rule, ask, ada, revoked):
    ask(mailed())
    token, _ = Token.objects.issue(world.organization, ada, scopes=["approvals:decide", "policy:write"])
    program = by_token(ada, world.organization.pk, *token.scopes, via=Via.MCP, token_id=token.pk)
    approve(Approval.objects.get().pk, program, remember=Remember(any_arguments=True, uses=9))
    grant = Grant.objects.get()
    assert (grant.granted_by, grant.via, grant.token_id) == (ada, "mcp", token.pk)
    if revoked:
        Token.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    assert leaves(ask) is not revoked


def test_what_a_person_made_at_a_page_has_nothing_to_do_with_their_tokens(world, rule, ask, ada):
    ada.is_staff = True
    ada.save()
    program = Api(ada, world.organization)
    fields = {
        "organization": world.organization.pk, "project": world.project.pk, "tool": "send_email",
        "arguments": "{}", "any_arguments": "on", "max_uses": 9, "expires_at_0": "", "expires_at_1": "",
    }  # fmt: skip
    answer = client_of(ada).post(url("policy_grant_add"), fields)
    assert answer.status_code == 302, text(answer)
    Token.objects.filter(pk=program.token.pk).update(revoked_at=timezone.now())
    grant = Grant.objects.get()
    assert (grant.granted_by, grant.via, grant.token_id) == (ada, "session", None)
    assert leaves(ask)
    role_taken(ada)
    assert not leaves(ask)


def test_one_from_before_doors_were_recorded_counts_while_its_maker_may_make_any(world, rule, ask, ada):
    Grant.objects.create(
        organization=world.organization, project=world.project, tool="send_email", any_arguments=True,
        granted_by=ada, max_uses=9,
    )  # fmt: skip
    assert leaves(ask)
    membership_over(ada)
    assert not leaves(ask)


def test_another_that_counts_still_lets_it_pass(world, rule, ask, ada, over_api):
    bo = permit(MembershipFactory(organization=world.organization).user, *MAKES)
    said = {"project": world.project.pk, "tool": "send_email", "any_arguments": True, "max_uses": 9}
    Api(bo, world.organization).post("policy/grants/", said)
    membership_over(ada)
    assert leaves(ask)
    assert Grant.objects.get(granted_by=bo).uses.count() == 1
    membership_over(bo)
    assert not leaves(ask)


def test_the_list_says_why_one_does_not_count(world, ask, ada, over_api):
    grant, api = over_api
    boss = permit(world.user, "policy.view_grant", "policy.change_grant", "runs.decide_approval")
    boss.is_staff = True
    boss.save()
    pages = [url("policy_grant_changelist"), url("policy_grant_change", grant.pk)]
    assert [NO_TOKEN in text(client_of(boss).get(page)) for page in pages] == [False, False]
    Token.objects.filter(pk=api.token.pk).update(revoked_at=timezone.now())
    assert [NO_TOKEN in text(client_of(boss).get(page)) for page in pages] == [True, True]


# Who lengthens one


@pytest.fixture
def bo(world):
    made = MembershipFactory(organization=world.organization, user__username="bo", user__is_staff=True)
    return permit(made.user, *MAKES)


def lengthened(bo, grant, uses):
    fields = {"reason": "", "max_uses": uses, "expires_at_0": "", "expires_at_1": ""}
    answer = client_of(bo).post(url("policy_grant_change", grant.pk), fields)
    assert answer.status_code == 302, text(answer)
    grant.refresh_from_db()
    return grant


def test_who_gives_one_more_uses_answers_for_it_from_then_on(ask, ada, bo, over_api):
    grant, _ = over_api
    membership_over(ada)
    grant = lengthened(bo, grant, 10)
    assert (grant.granted_by, grant.via, grant.token_id) == (bo, "session", None)
    assert leaves(ask)
    membership_over(bo)
    assert not leaves(ask)


def test_who_shortens_one_brings_none_back(ask, ada, bo, over_api):
    grant, _ = over_api
    membership_over(ada)
    grant = lengthened(bo, grant, 8)
    assert (grant.granted_by, grant.via) == (ada, "token")
    assert not leaves(ask)


# With a second person


@pytest.mark.parametrize("lost", [None, role_taken, "token", "who confirmed"])
def test_what_a_second_person_confirmed_counts_while_the_first_could_make_it(world, rule, ask, ada, lost):
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    bo = MembershipFactory(organization=world.organization, role="administrator").user
    api = Api(ada, world.organization)
    said = {"project": world.project.pk, "tool": "send_email", "any_arguments": True, "max_uses": 9}
    assert api.post("policy/grants/", said).status_code == 202
    with changes.acting(bo, "admin"):
        confirm(at_the_pages(bo, world.organization.pk), ProposedChange.objects.get().pk)
    grant = Grant.objects.get()
    assert (grant.granted_by, grant.via, grant.token_id) == (ada, "token", api.token.pk)
    if lost == "token":
        Token.objects.filter(pk=api.token.pk).update(revoked_at=timezone.now())
    elif lost == "who confirmed":  # they looked at it then, as at every other change
        membership_over(bo)
    elif lost:
        lost(ada)
    assert leaves(ask) is (lost in (None, "who confirmed"))


# At the last moment


def test_a_maker_who_leaves_between_the_gate_and_the_use_is_noticed(ask, ada, over_api, monkeypatch):
    """As another process may have it: policy let the call pass, and then the maker left."""
    from runs.gate import approvals

    use = approvals.use_grant

    def later(*about, **how):
        membership_over(ada)
        return use(*about, **how)

    monkeypatch.setattr(approvals, "use_grant", later)
    mail.outbox.clear()
    assert ask(mailed()).status == "waiting" and not mail.outbox


def test_a_rule_that_is_stricter_now_still_comes_first(ask, rule, over_api):
    CapabilityRule.objects.filter(pk=rule.pk).update(effect="require_human")
    rule.refresh_from_db()
    rule.save()
    run = ask(mailed())
    executor.run(run.pk)
    assert not mail.outbox
