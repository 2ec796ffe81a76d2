"""What the gate goes by when a call comes before it once more: keys, rejections, ends, and what was read."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from common.db import row
from memory.models import Memory, MemoryRevision
from policy.checker import approval_key
from policy.models import Grant
from runs.gate import approvals, deciders, provenance
from runs.models import Approval, RunEvent
from tests.acting import at_the_pages, by_token
from tests.factories import MembershipFactory
from tests.integration.test_decisions import SEND, decider
from tests.scripted import in_order, say

pytestmark = pytest.mark.django_db


def test_a_call_that_is_asked_about_again_is_counted_in_its_key():
    first = approval_key("k")
    assert [approvals.correlation_key("k", times) for times in (0, 1, 2)] == [
        first,
        f"{first}-2",
        f"{first}-3",
    ]


def earlier(number, tool="send_email", code="APPROVAL_REJECTED", arguments=None, edited=None):
    error = {"code": code, "number": number} if code else None
    return SimpleNamespace(
        call_id=f"{number}",
        tool=tool,
        error=error,
        arguments=arguments or {"to": "a"},
        effective_arguments=edited,
    )


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ([earlier(1)], 1),
        ([earlier(1, arguments={"to": "b"})], None),
        ([earlier(1, arguments={"to": "b"}, edited={"to": "a"})], 1),
        ([earlier(1, code="APPROVAL_EXPIRED")], None),
        ([earlier(1, code="")], None),
        ([earlier(1, tool="send_letter")], None),
        ([earlier(9)], None),
        ([earlier(1, arguments={"to": "b"}), earlier(2)], 2),
    ],
)
def test_only_the_same_call_that_was_rejected_is_rejected_again(calls, found):
    state = SimpleNamespace(calls={one.call_id: one for one in calls})
    said = approvals.rejected_before(state, earlier(9, code=""), {"to": "a"})
    assert (said and said["number"]) == found


def test_a_standing_approval_that_has_ended_or_was_revoked_lets_nothing_pass(world):
    (now,) = row("SELECT clock_timestamp()")
    log = SimpleNamespace(now=now, organization_id=world.organization.pk)
    maker = MembershipFactory(organization=world.organization, role="decider").user
    kept = {"organization": world.organization, "project": world.project, "granted_by": maker}
    for number, (fields, passes) in enumerate(
        (
            ({"expires_at": now - timedelta(seconds=1)}, False),
            ({"expires_at": now}, False),
            ({"expires_at": now + timedelta(hours=1)}, True),
            ({"max_uses": 1}, True),
            ({"max_uses": 1, "revoked_at": now}, False),
        )
    ):
        grant = Grant.objects.create(tool="send_email", any_arguments=True, **kept, **fields)
        admitted = SimpleNamespace(
            decision=SimpleNamespace(grant_id=grant.pk), idempotency_key=f"{number}" * 64
        )
        assert approvals.use_grant(log, admitted) is passes
        assert grant.uses.count() == int(passes)


def test_of_a_memory_that_was_edited_the_words_count_that_were_shown(ask, world):
    run = ask(in_order(say("done")))
    assert provenance.marks_of_goal(run.pk) == {}
    scope = {"organization": world.organization, "project": world.project}
    one, other = (
        Memory.objects.create(**scope, type="archival", content=f"{name} now", scope_key=f"{name}")
        for name in ("one", "other")
    )
    shown = RunEvent.objects.create(
        organization=world.organization,
        run_id=run.pk,
        seq=90,
        type="message.created",
        created_at=row("SELECT clock_timestamp()")[0],
        payload={"role": "assistant", "content": "", "memories": [{"id": one.pk}]},
    )
    shown.refresh_from_db()
    for memory, words, hours in (
        (one, "one before", 1),
        (one, "long before", -1),
        (other, "other before", 1),
    ):
        revision = MemoryRevision.objects.create(memory=memory, action="edit", before={"content": words})
        at = shown.created_at + timedelta(hours=hours)
        MemoryRevision.objects.filter(pk=revision.pk).update(created_at=at)

    found = list(provenance.memories_shown(run.pk, 0))

    assert found == [(90, one.pk, words, "organization") for words in ("one now", "one before")]
    assert list(provenance.memories_shown(run.pk, 90)) == []


def test_what_takes_a_person_waits_for_no_program(ask, world, rule):
    ask(in_order(SEND, say("done")))
    ada, pending = decider(world, name="ada"), Approval.objects.all()
    program, person = by_token(ada, world.organization.pk), at_the_pages(ada, world.organization.pk)
    assert deciders.decidable(program, pending).exists() and deciders.decidable(person, pending).exists()

    pending.update(effect="require_human")

    assert not deciders.decidable(program, pending).exists()
    assert deciders.decidable(person, pending).exists()


def test_a_rejected_call_without_arguments_is_known_again():
    before = SimpleNamespace(
        call_id="1",
        tool="restart",
        error={"code": "APPROVAL_REJECTED"},
        arguments={},
        effective_arguments=None,
    )
    state = SimpleNamespace(calls={"1": before})
    assert approvals.rejected_before(state, earlier(9, tool="restart", code=""), {}) == before.error
