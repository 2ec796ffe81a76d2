"""A model of who decides what: people vote, edit and reject, and whoever arranges things changes rules,
rights, roles and accounts, in any order. Whenever a mail has left, what these tests know of the rules says
whether it might have: policy/ and runs/gate are not asked.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core import mail
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from common.canonical import canonical
from groups.actors import Actor, Via
from groups.models import Absence, Membership, Project, Role, Token
from groups.scopes import SCOPES
from policy.authority import NotAllowed
from policy.models import CapabilityRule, Grant
from runs.actions.cancel import AlreadyEnded
from runs.actions.decide import DecisionRefused
from runs.actions.start import CannotStart
from runs.execution import executor
from runs.models import Approval, Run, ToolCall
from runs.models.choices import ACTIVE
from tests.acting import approve, at_the_pages, by_token, cancel, fork, reject, start
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory
from tests.scripted import Scripted, call, say

pytestmark = pytest.mark.django_db

User = get_user_model()
TOOL = "send_email"
MAIL = {"to": ["a@example.com"], "subject": "s", "body": "b"}
EFFECTS = ("allow", "deny", *["require_approval"] * 5, *["require_human"] * 4)
STRICT = ("allow", "require_approval", "require_human")
DECIDES = {"decider", "administrator"}  # member roles that carry runs.decide_approval
DOORS = ("page", "page", "page, not confirmed", "token", "mcp", "mail")
TAKEN = ("approvals:decide", "policy:write")  # a scope that a token may lose
MOST_RUNS, MOST_AT_WORK = 25, 3
ALONE = "by yourself"

# What may happen next, the usual more often than the rare.
CHANGES = (
    *["a_rule_is_changed", "a_members_place_is_changed"] * 4,
    *["an_agents_role_is_changed", "a_projects_rule_is_changed"] * 3,
    *["somebody_is_away", "an_account_is_changed", "the_project_is_changed"] * 2,
    *("a_token_is_revoked", "a_standing_approval_is_made", "a_standing_approval_ends"),
)
WHAT = (
    *CHANGES,
    *["somebody_asks"] * 16,
    *["somebody_approves"] * 8,
    *["something_changes_before_it_leaves", "all_approve"] * 5,
    *["work_goes_on"] * 4,
    *["somebody_approves_something_else"] * 2,
    *["those_who_are_asked_approve"] * 3,
    *["somebody_rejects"] * 3,
    *("somebody_cancels", "a_run_is_made_again", "somebody_waits_for_nobody"),
)


class Vote(NamedTuple):
    """An approval that was taken as said: of which call with which arguments, by whom, and where. `by_hand`:
    at a page, lately confirmed, by an account that nobody else had changed.
    """

    call: str
    arguments: str
    user: int
    door: str
    by_hand: bool


def play(messages: Any, facts: Any) -> Any:
    """The goal says who sends the mail; a result, whatever it is, ends it."""
    if any(message.role == "tool" for message in messages):
        return say("DECISION: done")
    if facts["role"] == "Personal agent" and ALONE not in str(messages):
        return call(("escalate_to_group", {"goal": "mail it"}))
    return call((TOOL, MAIL))


class Rights(RuleBasedStateMachine):
    """An organization, a person whose agent mails, and those who decide about it."""

    seen: Counter[str] = Counter()

    def __init__(self) -> None:
        super().__init__()
        Scripted.play = staticmethod(play)
        mail.outbox.clear()
        self.project = ProjectFactory()
        self.organization = self.project.organization
        make = {"organization": self.organization}
        self.mia = MembershipFactory(**make, role="decider").user
        self.people = [self.mia, *(MembershipFactory(**make, role="decider").user for _ in range(3))]
        self.robot = MembershipFactory(**make, role="decider", kind="service").user
        self.tokens = {
            user.pk: Token.objects.create(
                organization=self.organization,
                user=user,
                prefix="dpt_",
                secret_hash=f"{user.pk}",
                scopes=list(SCOPES),
            )
            for user in (*self.people, self.robot)
        }
        self.rule = CapabilityRule.objects.create(**make, tool=TOOL, effect="require_approval")
        self.own = CapabilityRule.objects.create(
            **make, project=self.project, tool=TOOL, effect="require_approval", active=False
        )
        group = GroupFactory(project=self.project, max_rounds=1)
        MemberFactory(group=group, role__name="clerk", is_lead=True)
        self.votes: list[Vote] = []
        self.trail: list[tuple[str, int, int]] = []
        self.rejected: set[tuple[str, str]] = set()
        self.cancelled: set[str] = set()
        self.touched: set[int] = set()
        self.sent: Counter[str] = Counter()
        for number in range(MOST_AT_WORK):
            self.somebody_asks(number, 0)

    # who there is

    def pick(self, found: Any, number: int) -> Any:
        found = list(found)
        return found[number % len(found)] if found else None

    def roles(self) -> Any:
        return Role.objects.filter(organization=self.organization).order_by("id")

    def runs(self, **which: Any) -> Any:
        return Run.objects.filter(organization=self.organization, **which).order_by("id")

    def open(self) -> Any:
        mine = Approval.objects.filter(organization=self.organization)
        return (mine.filter(status="pending") or mine).order_by("id")

    def place(self, user: Any) -> Membership:
        return Membership.objects.select_related("user").get(organization=self.organization, user=user)

    def actor(self, user: Any, door: str) -> Actor:
        if door.startswith("page"):
            return at_the_pages(user, self.organization.pk, confirmed=door == "page")
        token = self.tokens[user.pk]
        found = by_token(user, self.organization.pk, via=Via(door if door != "mail" else "mail_link"))
        return Actor(user, found.membership, found.via, found.scopes, token_id=token.pk)

    # what happens

    def somebody_asks(self, number: int, other: int) -> None:
        at_work = self.runs(depth=0, status__in=ACTIVE).count()
        if at_work >= MOST_AT_WORK or self.runs(depth=0).count() >= MOST_RUNS:
            return
        try:
            run = start(user=self.mia, project=self.project, goal=f"mail {ALONE}" if number % 2 else "mail")
        except (CannotStart, NotAllowed):
            return
        executor.run(run)
        self.look()

    def work_goes_on(self, number: int, other: int) -> None:
        """Of whoever can go on; a run that waits for something stays where it is."""
        for run in self.runs(status__in=["pending", "running"]).values_list("pk", flat=True):
            executor.run(run)
        self.look()

    def somebody_approves(self, number: int, other: int, arguments: Any = None) -> None:
        approval = self.pick(self.open(), number // 7)
        if approval is None:
            return
        user = self.pick((*self.people, *self.people[1:], self.robot), number)
        door = DOORS[other % len(DOORS)]
        if user == self.robot and door.startswith("page"):
            door = "token"
        about = canonical(arguments or approval.tool_call.effective_arguments)
        try:
            approve(approval.pk, self.actor(user, door), arguments=arguments)
        except (DecisionRefused, NotAllowed):
            self.seen["refused"] += 1
            return
        self.seen["approved"] += 1
        by_hand = door == "page" and user.pk not in self.touched
        self.votes.append(Vote(approval.tool_call_id, about, user.pk, door, by_hand))

    def all_approve(self, number: int, other: int) -> None:
        """One after the other at the pages, as far as they may."""
        for user in range(len(self.people)):
            self.somebody_approves(number - number % 7 + user, 0)

    def something_changes_before_it_leaves(self, number: int, other: int) -> None:
        """What has been approved has not begun yet."""
        self.all_approve(number, other)
        getattr(self, CHANGES[number % len(CHANGES)])(number // 7, other)
        self.work_goes_on(number, other)

    def somebody_approves_something_else(self, number: int, other: int) -> None:
        self.somebody_approves(number, other, MAIL | {"body": f"other {other % 2}"})

    def somebody_rejects(self, number: int, other: int) -> None:
        self.somebody_asks(number, other)
        approval, user = self.pick(self.open(), other), self.pick(self.people, number)
        if approval is None:
            return
        try:
            reject(approval.pk, self.actor(user, "page"), "no")
        except (DecisionRefused, NotAllowed):
            return
        self.seen["rejected"] += 1
        self.rejected.add((approval.run_id, approval.tool_call.call_id))

    def somebody_cancels(self, number: int, other: int) -> None:
        run = self.pick(self.runs(), number)
        if run is None:
            return
        try:
            cancel(run.pk)
        except AlreadyEnded:
            return
        self.cancelled.add(run.pk)

    def a_run_is_made_again(self, number: int, other: int) -> None:
        run = self.pick(self.runs(), number)
        if run is None or self.runs(status__in=ACTIVE).count() >= 2 * MOST_AT_WORK:
            return
        try:
            new = fork(run.pk, other % (run.last_seq + 1), at_the_pages(self.mia, self.organization.pk))
        except (CannotStart, NotAllowed):
            return
        self.seen["made again"] += 1
        executor.run(new)
        self.look()

    def a_rule_is_changed(self, number: int, other: int) -> None:
        self.change(self.rule, number, other)

    def a_projects_rule_is_changed(self, number: int, other: int) -> None:
        self.change(self.own, number, other, limited=bool(other % 2))

    def change(self, which: CapabilityRule, number: int, other: int, **fields: Any) -> None:
        which.effect = EFFECTS[number % len(EFFECTS)]
        which.deciders_needed = 1 + (other % 3 == 0)
        second = self.place(self.people[2])
        named = ([], [], [f"member:{second.pk}"], ["role:decider"], ["run.user", "role:administrator"])
        which.deciders = named[other % len(named)] if number % 2 else []
        which.active, which.shadow = number % 7 != 0, number % 11 == 0
        for name, value in fields.items():
            setattr(which, name, value)
        which.save()

    def a_members_place_is_changed(self, number: int, other: int) -> None:
        user = self.pick((*self.people, self.robot), number)
        place = self.place(user)
        if other % 3:  # most come back
            place.active, place.denied_tools, place.projects = True, [], None
            user.is_active = True
            user.save()
        elif user == self.mia and other % 4 == 1:
            place.denied_tools = [TOOL]
        elif other % 4 == 0:
            place.active = False
        elif other % 4 == 1:
            place.role = {"decider": "member", "member": "administrator"}.get(place.role, "decider")
        elif other % 4 == 2:
            place.projects = []
        else:
            user.is_active = False
            user.save()
        place.save()

    def an_agents_role_is_changed(self, number: int, other: int) -> None:
        role = self.pick(self.roles(), number)
        if other % 4:
            role.denied_tools = [] if role.denied_tools or other % 3 else [TOOL]
        elif role.name == "clerk":
            role.allowed_tools = (None, [TOOL], ["memory_search"])[number % 3]
        role.save()

    def a_token_is_revoked(self, number: int, other: int) -> None:
        user = self.pick((*self.people, self.robot), number)
        self.tokens[user.pk].revoked_at = timezone.now() if other % 2 else None
        self.tokens[user.pk].scopes = [scope for scope in SCOPES if other % 3 or scope != TAKEN[number % 2]]
        self.tokens[user.pk].save()

    def an_account_is_changed(self, number: int, other: int) -> None:
        """An administrator gives somebody another password; or an hour goes by."""
        user = self.pick(self.people, number)
        if other % 3 == 0:
            LogEntry.objects.all().delete()
            self.touched.clear()
            return
        kind = ContentType.objects.get_for_model(user)
        by = self.robot.pk
        LogEntry.objects.create(user_id=by, content_type=kind, object_id=str(user.pk), action_flag=CHANGE)
        self.touched.add(user.pk)

    def a_standing_approval_is_made(self, number: int, other: int) -> None:
        fixed = {"any_arguments": True} if number % 2 else {"arguments": {"body": "b"}}
        user = self.pick((*self.people, self.robot), other)
        by = {"via": "token", "token_id": self.tokens[user.pk].pk} if number % 3 else {"via": "session"}
        Grant.objects.create(
            organization=self.organization, project=self.project, tool=TOOL, granted_by=user,
            max_uses=1, **by, **fixed,
        )  # fmt: skip

    def a_standing_approval_ends(self, number: int, other: int) -> None:
        Grant.objects.filter(organization=self.organization).update(revoked_at=timezone.now())

    def the_project_is_changed(self, number: int, other: int) -> None:
        Project.objects.filter(pk=self.project.pk).update(allow_self_approval=bool(other % 2))

    def somebody_is_away(self, number: int, other: int) -> None:
        """And another stands in; or is back."""
        absent = self.people[2] if number % 2 else self.pick(self.people, number)  # the one whom rules name
        stand_in = self.pick(self.people, other)
        Absence.objects.filter(membership=self.place(absent)).delete()
        if absent != stand_in and other % 5:
            now = timezone.now()
            Absence.objects.create(
                organization=self.organization, membership=self.place(absent), stand_in=self.place(stand_in),
                starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1),
            )  # fmt: skip

    def those_who_are_asked_approve(self, number: int, other: int) -> None:
        """The rule asks two; or one whom it names and who is away, so that another decides in their place."""
        two = number % 2 == 0
        self.rule.effect, self.rule.deciders_needed = EFFECTS[2 + number % 9], 1 + two
        self.rule.deciders = [] if two else [f"member:{self.place(self.people[2]).pk}"]
        self.rule.active, self.rule.shadow = True, False
        self.rule.save()
        self.somebody_is_away(1, 1 + 2 * (other % 2))
        self.somebody_asks(number // 2, other)
        for user, of_those_that_wait in product((1, 3), range(MOST_AT_WORK)):
            self.somebody_approves(user + 56 * of_those_that_wait, other)
        self.work_goes_on(number, other)

    def somebody_waits_for_nobody(self, number: int, other: int) -> None:
        """The time to decide is over."""
        approval = self.pick(self.open(), number)
        if approval is not None and other % 4 == 0:
            Approval.objects.filter(pk=approval.pk, status="pending").update(expires_at=timezone.now())

    @rule(chance=st.randoms(use_true_random=True))  # even: integers of its own are mostly small ones
    def happens(self, chance: Random) -> None:
        what, number, other = chance.choice(WHAT), chance.randrange(5_040), chance.randrange(5_040)
        self.trail.append((what, number, other))
        getattr(self, what)(number, other)

    # what holds

    def look(self) -> None:
        """Every mail that has left since the last look."""
        for letter in mail.outbox:
            key = letter.extra_headers["Message-ID"].strip("<>").split("@")[0]
            made = ToolCall.objects.select_related("run").get(idempotency_key__startswith=key)
            self.sent[made.pk] += 1
            self.seen["mails"] += 1
            sent = canonical({"to": letter.to, "subject": letter.subject, "body": letter.body})
            assert sent == canonical(made.effective_arguments)
            assert self.sent[made.pk] == 1, "it was sent twice"
            assert (made.run_id, made.call_id) not in self.rejected, "it was rejected"
            assert made.run_id not in self.cancelled, "its run was cancelled"
            problem = self.forbidden(made, sent)
            assert not problem, f"{problem}\n{self.told(made)}"
        mail.outbox.clear()

    def told(self, made: ToolCall) -> str:
        rules = [vars(each) for each in CapabilityRule.objects.filter(organization=self.organization)]
        return f"{made.pk} {made.effective_arguments}\n{self.votes}\n{rules}\n{self.trail}"

    def forbidden(self, made: ToolCall, sent: str) -> str:
        """Why the mail might not leave as things are; empty where it might."""
        mine = self.place(self.mia)
        if not self.there(mine) or TOOL in mine.denied_tools:
            return "its person may not mail"
        roles = [Role.objects.get(pk=made.role_id)]
        parent = made.run.parent_run
        roles += [parent.role] if parent is not None else []
        if any(TOOL in role.denied_tools for role in roles):
            return "a role may not mail"
        if roles[0].allowed_tools is not None and TOOL not in roles[0].allowed_tools:
            return "the role's list does not have it"
        whole, own = (CapabilityRule.objects.get(pk=each.pk) for each in (self.rule, self.own))
        applied = [each for each in (own, whole) if each.active and not each.shadow]
        if any(each.effect == "deny" for each in applied):
            return "a rule denies it"
        speak = applied if own in applied and own.limited else applied[:1]
        if not speak:  # high risk; a list vouches for what nobody passed on
            listed = roles[0].allowed_tools is not None and parent is None
            return "" if listed else self.undecided(made, sent, "require_approval", 1, [])
        effect = max((each.effect for each in speak), key=STRICT.index)
        needed = max(each.deciders_needed for each in speak if each.effect != "allow" or effect == "allow")
        lists = [each.deciders for each in speak if each.deciders and each.effect != "allow"]
        return "" if effect == "allow" else self.undecided(made, sent, effect, needed, lists)

    def undecided(self, made: ToolCall, sent: str, effect: str, needed: int, lists: list[list[str]]) -> str:
        """Why too few have approved it; empty where enough have, or one did in advance."""
        mine = [vote for vote in self.votes if (vote.call, vote.arguments) == (made.pk, sent)]
        places = [sorted(self.places(vote, effect, needed, lists)) for vote in mine]
        sitting = max((len(set(each)) for each in product(*filter(None, places))), default=0)
        if sitting >= needed:
            self.seen["by one" if needed == 1 else "by two"] += 1
            self.seen["in a group"] += made.run.parent_run_id is not None
            self.seen["of other arguments"] += made.arguments != made.effective_arguments
            self.seen["by a stand-in"] += any(
                vote.user not in each for vote, each in zip(mine, places, strict=True) if each
            )
            return ""
        if effect == "require_approval" and needed == 1 and not lists and self.granted(made):
            self.seen["granted"] += 1
            return ""
        return f"{effect} by {needed} of {lists}: only {sitting} count"

    def places(self, vote: Vote, effect: str, needed: int, lists: list[list[str]]) -> set[int]:
        """Whose decision the vote may count as today: the voter's own, or an absent member's."""
        place = self.place(User.objects.get(pk=vote.user))
        own = vote.user == self.mia.pk
        asked = own and bool(lists) and all("run.user" in each for each in lists)
        strict = effect == "require_human" or needed > 1
        if not (self.there(place) and (asked or place.role in DECIDES)):
            return set()
        if not vote.by_hand and effect == "require_human":
            return set()
        if not vote.door.startswith("page") and not self.holds_token(vote.user, "approvals:decide"):
            return set()
        named = {f"member:{place.pk}", f"role:{place.role}", *(["run.user"] if own else [])}
        if (
            place.kind != "human"
            and strict
            and not all(f"member:{place.pk}" in each for each in lists or [[]])
        ):
            return set()
        if own and strict and not asked and not Project.objects.get(pk=self.project.pk).allow_self_approval:
            return set()
        if all(named & set(each) for each in lists):
            return {vote.user}
        absent = Absence.objects.filter(organization=self.organization, stand_in=place)
        return {
            each.user_id
            for each in (self.place(one.membership.user) for one in absent)
            if not own and each.user_id != self.mia.pk and self.there(each) and each.role in DECIDES
            and all({f"member:{each.pk}", f"role:{each.role}"} & set(names) for names in lists)
        }  # fmt: skip

    def there(self, place: Membership) -> bool:
        return place.active and place.user.is_active and self.sees(place)

    def sees(self, place: Membership) -> bool:
        return place.projects is None or self.project.pk in place.projects

    def holds_token(self, user: int, scope: str) -> bool:
        mine = Token.objects.filter(pk=self.tokens[user].pk, revoked_at=None)
        return mine.filter(scopes__contains=[scope]).exists()

    def granted(self, made: ToolCall) -> bool:
        """Whether a standing approval was used for it that has not been revoked, and that whoever made it
        could make today, where they made it.
        """
        used = Grant.objects.filter(
            organization=self.organization, uses__idempotency_key=made.idempotency_key, revoked_at=None
        )
        return any(self.still_makes(each) for each in used.select_related("granted_by"))

    def still_makes(self, grant: Grant) -> bool:
        place = self.place(grant.granted_by)
        by_token = grant.via == "token"
        held = not by_token or all(self.holds_token(grant.granted_by_id, scope) for scope in TAKEN)
        return self.there(place) and place.role in DECIDES and held


COMMON = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
USUAL = ("refused", "rejected", "in a group", "by one", "by two", "by a stand-in")
RARE = ("granted", "of other arguments", "made again")


def holds(reached: Iterable[str], **how: Any) -> None:
    Rights.seen.clear()
    run_state_machine_as_test(Rights, settings=settings(**how, **COMMON))
    missed = [word for word in reached if not Rights.seen[word]]
    assert not missed, f"the model proves nothing about {missed}: {Rights.seen}"


def test_whatever_is_decided_and_arranged_in_whatever_order_no_mail_leaves_against_the_rules():
    holds(USUAL, max_examples=12, stateful_step_count=40, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", [1, 2])  # side by side, where there are several processes
def test_nor_in_any_other_order(part):
    holds((*USUAL, *RARE), max_examples=300, stateful_step_count=50, print_blob=True)
