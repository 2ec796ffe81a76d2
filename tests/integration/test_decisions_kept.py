"""What a decision leaves behind for those who read it later, and in what words one is refused."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from policy.models import Grant
from runs.actions import decide
from runs.actions.decide import DecisionRefused, Remember
from runs.models import Approval, ApprovalDecision, ApprovalWatch, ToolCall
from tests.acting import approve, at_the_pages, by_token, reject
from tests.factories import permit as only
from tests.integration.helpers import payload
from tests.integration.test_decisions import SEND, TO, decider
from tests.scripted import in_order, say

pytestmark = pytest.mark.django_db
OTHER = {**TO, "subject": "Other"}


@pytest.fixture
def ada(world):
    return decider(world, name="ada")


@pytest.fixture
def waiting(ask, rule):
    """A run that waits for its mail to be approved, under a rule with these fields."""

    def make(**fields):
        change(rule, **fields)
        run = ask(in_order(SEND, say("done")))
        return run, Approval.objects.get(run=run, status="pending")

    return make


def change(row, **fields):
    for name, value in fields.items():
        setattr(row, name, value)
    row.save()


def refusal(act, *args, **said):
    with pytest.raises(DecisionRefused) as refused:
        act(*args, **said)
    return refused.value.code, refused.value.message


def test_what_is_refused_is_refused_in_words_that_say_what_to_do(waiting, world, ada):
    _, shown = waiting()
    seat = at_the_pages(ada, world.organization.pk)

    missing = (
        "DIGEST_MISSING",
        "Say which arguments you decide about: arguments_digest, as the approval names it.",
    )
    assert refusal(decide.approve, shown.pk, seat, None) == missing
    assert refusal(decide.reject, shown.pk, seat, "", "No.") == missing
    changed = ("CHANGED", "It has changed since you saw it: look again.")
    assert refusal(decide.approve, shown.pk, seat, "0" * 64) == changed
    no_reason = ("REASON_MISSING", "A rejection needs a reason: the agent is told it.")
    assert refusal(reject, shown.pk, ada, " \n") == no_reason
    code, message = refusal(approve, shown.pk, ada, "a\x00b")
    assert code == "REASON_INVALID" and message.startswith("The reason cannot be kept: ")
    code, message = refusal(approve, shown.pk, ada, arguments={**TO, "body": "a\x00b"})
    assert code == "INVALID_ARGUMENTS" and message.startswith("The arguments are not JSON: ")

    edited = approve(shown.pk, ada, arguments=OTHER)
    newer = f"Its arguments were changed: look at {edited.pk}, which is about the new ones."
    assert refusal(approve, shown.pk, ada) == ("CHANGED", newer)
    assert refusal(approve, shown.pk, ada, arguments=TO) == ("CHANGED", newer)
    assert refusal(reject, shown.pk, ada, "No.") == ("CHANGED", newer)
    assert approve(shown.pk, ada, arguments=OTHER).pk == edited.pk  # the same edit once more
    decided = ("ALREADY_DECIDED", "The request has already been approved by ada.")
    assert refusal(reject, edited.pk, ada, "No.") == decided
    assert refusal(approve, edited.pk, ada, arguments=TO) == decided
    assert refusal(decide.approve, edited.pk, seat, "0" * 64) == changed
    assert approve(edited.pk, ada, arguments=OTHER).status == "approved"

    _, late = waiting()
    Approval.objects.filter(pk=late.pk).update(expires_at=timezone.now())
    assert refusal(approve, late.pk, ada) == ("EXPIRED", "The time to decide is over.")
    Approval.objects.filter(pk=late.pk).update(expires_at=None)
    assert approve(late.pk, ada).status == "approved"  # one that never ends
    with pytest.raises(Approval.DoesNotExist):
        decide.approve("apr_none", seat, "0" * 64)


def test_a_refused_standing_approval_says_what_is_wrong_with_it(waiting, ada, rule):
    _, approval = waiting()
    now = timezone.now()
    both_or_none = "Say which arguments must stay the same, or that any may be used; not both."
    for remember, words in (
        (Remember(("to",)), "A standing approval needs an end: a time or a number of uses."),
        (Remember(("to",), until=now), "The time of a standing approval is over before it began."),
        (Remember(("to", "cc", "bcc"), uses=1), "The call has no argument cc, bcc."),
        (Remember(uses=1), both_or_none),
        (Remember(("to",), any_arguments=True, uses=1), both_or_none),
    ):
        assert refusal(approve, approval.pk, ada, remember=remember) == ("GRANT_REFUSED", words)
    person = "What a person has to decide cannot be allowed in advance."
    several = "What several people have to decide, one cannot allow in advance."
    for demanded, words in (
        ({"effect": "require_human"}, person),
        ({"effect": "require_approval", "deciders_needed": 2}, several),
    ):
        change(rule, **demanded)
        assert refusal(approve, approval.pk, ada, remember=Remember(("to",), uses=1)) == (
            "GRANT_REFUSED",
            words,
        )
    only(ada, "decide_approval")
    assert refusal(approve, approval.pk, ada, remember=Remember(("to",), uses=1))[0] == "NOT_ENTITLED"
    assert not Grant.objects.exists()
    approval.refresh_from_db()
    assert approval.status == "pending"


def test_a_standing_approval_covers_what_was_said_and_no_more(waiting, world, ada):
    until = timezone.now() + timedelta(days=1)
    for remember, arguments in (
        (Remember(("to",), until=until), {"to": TO["to"]}),
        (Remember(any_arguments=True, uses=3, until=until), {}),
    ):
        Grant.objects.all().delete()
        _, approval = waiting()
        approve(approval.pk, ada, "Known", remember=remember)
        grant = Grant.objects.get()
        assert (grant.organization_id, grant.project_id) == (world.organization.pk, world.project.pk)
        assert (grant.tool, grant.arguments, grant.any_arguments) == (
            "send_email",
            arguments,
            remember.any_arguments,
        )
        assert (grant.expires_at, grant.max_uses) == (until, remember.uses)
        assert (grant.reason, grant.granted_by) == ("Known", ada)
    _, approval = waiting(effect="require_human")
    decide.reject(approval.pk, at_the_pages(ada, world.organization.pk), approval.arguments_digest, "No.")
    assert Grant.objects.count() == 1


def test_an_edit_leaves_both_approvals_telling_what_happened(waiting, world, ada, rule):
    run, old = waiting(effect="require_approval", deciders_needed=2, on_expiry="cancel_run")
    new = approve(old.pk, ada, "better so", arguments=OTHER)
    assert ToolCall.objects.get(run=run).effective_arguments == OTHER
    newest = approve(new.pk, decider(world, name="bo"), arguments=TO)

    old.refresh_from_db()
    assert (old.status, old.replaced_arguments, old.decided_by) == ("superseded", TO, None)
    assert old.decided_at is not None
    new.refresh_from_db()
    assert (new.status, new.replaced_arguments) == ("superseded", OTHER)
    newest.refresh_from_db()
    assert (newest.status, newest.edited_arguments, newest.replaces_id) == ("pending", TO, new.pk)
    same = ("capability", "effect", "rule", "explanation", "correlation_key", "deciders_needed", "deciders")
    for name in (*same, "on_expiry", "organization_id", "run_id", "tool_call_id", "arguments_digest"):
        assert getattr(newest, name) == getattr(old, name)
    assert new.arguments_digest != old.arguments_digest
    assert old.requested_at <= newest.requested_at and newest.expires_at == old.expires_at
    assert ApprovalWatch.objects.filter(approval=newest).exists()
    kept = ToolCall.objects.get(run=run)
    assert (kept.arguments, kept.effective_arguments) == (TO, TO)


def test_the_time_of_an_edit_ends_when_the_rule_says_and_never_after_that_of_the_first(
    waiting, ada, world, rule
):
    _, old = waiting(deciders_needed=2)
    Approval.objects.filter(pk=old.pk).update(expires_at=None)
    new = approve(old.pk, ada, arguments=OTHER)
    assert new.expires_at - new.requested_at == timedelta(seconds=settings.APPROVAL_SECONDS)
    change(rule, timeout_seconds=60)
    newer = approve(new.pk, ada, arguments=TO)
    assert newer.expires_at - newer.requested_at == timedelta(seconds=60)
    change(rule, timeout_seconds=None)
    assert approve(newer.pk, ada, arguments=OTHER).expires_at == newer.expires_at


def test_the_log_tells_of_an_edit_and_of_the_decision(waiting, ada):
    run, old = waiting(deciders_needed=1)
    new = approve(old.pk, ada, " better so ", arguments=OTHER)

    told = payload(run, "approval.edited")
    call = ToolCall.objects.get(run=run)
    call_id = call.call_id
    assert call.effective_arguments == OTHER
    assert told == {
        "v": 1,
        "call_id": call_id,
        "tool": "send_email",
        "approval": new.pk,
        "replaces": old.pk,
        "by": "ada",
        "arguments": OTHER,
        "effect": "require_approval",
        "deciders_needed": 1,
    }
    said = payload(run, "wait.completed")["payload"]
    assert said["approval"] == new.pk and (said["by"], said["reason"]) == ("ada", "better so")
    assert (said["person"], said["arguments"]) == (True, OTHER)
    new.refresh_from_db()
    assert (new.status, new.reason, new.decided_by, new.decided_as_human) == (
        "approved",
        "better so",
        ada,
        True,
    )
    assert new.decided_at is not None
    (word,) = ApprovalDecision.objects.all()
    assert (word.approval_id, word.arguments_digest, word.user) == (new.pk, new.arguments_digest, ada)
    assert (word.approved, word.as_human, word.reason) == (True, True, "better so")
    assert (word.via, word.token_id, word.organization_id) == ("session", None, new.organization_id)


def test_a_program_is_written_down_as_one(waiting, world, ada):
    run, approval = waiting()
    reject(approval.pk, by_token(ada, world.organization.pk, token_id="tok_test"), "No.")

    word = ApprovalDecision.objects.get()
    assert (word.approved, word.as_human, word.via, word.token_id) == (False, False, "token", "tok_test")
    assert payload(run, "wait.completed")["payload"]["person"] is False
    approval.refresh_from_db()
    assert (approval.status, approval.decided_as_human) == ("rejected", False)


def test_an_approval_shows_what_is_demanded_since_somebody_last_decided(waiting, world, ada, rule):
    _, approval = waiting()
    change(rule, effect="require_approval", deciders_needed=2, name="mail takes two")
    assert approve(approval.pk, ada).status == "pending"

    approval.refresh_from_db()
    assert (approval.effect, approval.deciders_needed, approval.deciders) == ("require_approval", 2, [])
    assert approval.rule == rule.pk and "mail takes two" in approval.explanation
    change(rule, effect="deny")
    assert approve(approval.pk, ada).deciders_needed == 2  # what is denied keeps its demand; the gate says no
    approval.refresh_from_db()
    assert approval.effect == "require_approval"


def test_a_page_asks_beforehand_who_may_decide(waiting, world, ada, rule):
    _, approval = waiting(effect="require_human")
    organization = world.organization.pk
    decide.check_entitled(approval, at_the_pages(ada, organization))
    _, plain = waiting(effect="require_approval")
    decide.check_entitled(plain, by_token(ada, organization))
    assert (
        refusal(decide.check_entitled, approval, at_the_pages(ada, organization, confirmed=False))[0]
        == "CONFIRM_FIRST"
    )
    assert refusal(decide.check_entitled, approval, by_token(ada, organization))[0] == "HUMAN_ONLY"
    assert (
        refusal(decide.check_entitled, approval, at_the_pages(world.user, organization))[0] == "NOT_ENTITLED"
    )
    only(world.user, "decide_approval")
    world.user.refresh_from_db()
    assert refusal(decide.check_entitled, approval, at_the_pages(world.user, organization))[0] == "OWN_RUN"


def test_what_is_given_back_is_what_was_kept(waiting, ada):
    for reason in ("", "Known"):
        _, approval = waiting()
        given = approve(approval.pk, ada, reason) if reason else approve(approval.pk, ada)
        approval.refresh_from_db()
        assert approval.reason == reason and approval.decided_as_human and approval.decided_at is not None
        for field in Approval._meta.concrete_fields:
            assert getattr(given, field.attname) == getattr(approval, field.attname), field.attname


def test_others_are_told_of_an_edited_call_only_where_they_have_to_decide_too(
    waiting, world, ada, monkeypatch
):
    told = []
    monkeypatch.setattr("runs.queue.put.enqueue_task", lambda name, *args, **how: told.append((name, *args)))
    for fields, several in (
        ({"effect": "require_approval", "deciders_needed": 1}, False),
        ({"effect": "require_approval", "deciders_needed": 2}, True),
        ({"effect": "require_human", "deciders_needed": 1}, True),
    ):
        _, old = waiting(**fields)
        told.clear()
        new = approve(old.pk, ada, arguments=OTHER)
        assert (("notify", new.pk) in told) == several


def test_who_is_no_member_any_more_decides_nothing_although_they_were_let_in(waiting, world, ada):
    _, approval = waiting()
    seat = at_the_pages(ada, world.organization.pk)
    ada.memberships.update(active=False)

    assert refusal(decide.approve, approval.pk, seat, approval.arguments_digest)[0] == "NOT_ENTITLED"
    assert refusal(decide.reject, approval.pk, seat, approval.arguments_digest, "No.")[0] == "NOT_ENTITLED"
    ada.memberships.update(active=True)
    assert decide.approve(approval.pk, seat, approval.arguments_digest).status == "approved"


def test_what_nobody_decided_in_time_is_said_to_have_expired(waiting, ada):
    _, approval = waiting()
    Approval.objects.filter(pk=approval.pk).update(status="expired")
    assert refusal(approve, approval.pk, ada) == (
        "ALREADY_DECIDED",
        "The request has already been expired.",
    )
