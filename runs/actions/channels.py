"""How people and organizations are told: channels, a message to try one, and who stands in for whom."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from common.api import throttles
from groups import member_permissions
from groups.actors import Actor
from groups.models import Absence, Membership
from groups.models.organizations import MembershipKind
from policy.authority import About, Verb, may, may_act_as_person
from runs.models import Channel, ChannelKind, Topic
from runs.notices import delivery, senders
from runs.notices.base import BadAddress, NotSent, Sender

MOST = 10  # channels of one person in an organization
TRIES, PER_SECONDS = 5, 60


class ChannelRefused(Exception):
    """It was not done, and nothing has changed; the words say why and what to do. `code` is stable."""

    def __init__(self, message: str, code: str = "REFUSED") -> None:
        super().__init__(message)
        self.code, self.message = code, message


def add_own(actor: Actor, kind: str, address: str, name: str = "", topics: Sequence[str] = ()) -> Channel:
    """Reach this person by another channel. Raises NotAllowed, ChannelRefused."""
    _may_be_told(actor)
    assert actor.membership is not None  # noqa: S101
    if kind in (ChannelKind.EMAIL, ChannelKind.SLACK):
        said = "E-mail goes to your own address; Slack with buttons is the organization's."
        raise ChannelRefused(said, "BAD_KIND")
    sender, shown = _checked(kind, address)
    with transaction.atomic():
        mine = own(actor)
        if mine.count() >= MOST:
            raise ChannelRefused(f"There are {MOST} channels already; remove one first.", "TOO_MANY_CHANNELS")
        _forget_same(mine, kind, address)
        channel = Channel(organization_id=actor.membership.organization_id, user=actor.user, kind=sender.kind)
        channel.name, channel.topics = name.strip()[:100], known_topics(topics) or Channel().topics
        channel.keep_address(address, shown)
        channel.save(force_insert=True)
    return channel


def _forget_same(mine: Any, kind: str, address: str) -> None:
    """The same address again is the same channel, anew."""
    for one in mine.filter(kind=kind):
        if one.address == address:
            one.delete()


def change_own(actor: Actor, channel_id: str, enabled: bool, topics: Sequence[str]) -> Channel:
    """Switch it on or off, and choose what it is told. Raises NotAllowed, Channel.DoesNotExist."""
    _may_be_told(actor)
    channel: Channel = own(actor).get(pk=channel_id)
    channel.enabled, channel.topics = enabled, known_topics(topics)
    if enabled:
        channel.failing_since, channel.problem = None, ""
    channel.save(update_fields=["enabled", "topics", "failing_since", "problem"])
    return channel


def remove_own(actor: Actor, channel_id: str) -> None:
    """Raises NotAllowed, Channel.DoesNotExist. One's e-mail is switched off, and not removed."""
    _may_be_told(actor)
    channel = own(actor).get(pk=channel_id)
    if channel.kind == ChannelKind.EMAIL:
        change_own(actor, channel_id, False, channel.topics)
        return
    channel.delete()


def own(actor: Actor) -> Any:
    """The person's channels in the organization at hand."""
    return Channel.objects.filter(organization_id=actor.organization_id, user=actor.user).order_by("id")


def with_email(actor: Actor) -> list[Channel]:
    """The person's channels; that of their e-mail is made where they have an address."""
    if actor.user.email and actor.organization_id:
        Channel.objects.bulk_create(
            [Channel(organization_id=actor.organization_id, user=actor.user, kind="email")],
            ignore_conflicts=True,
        )
    return list(own(actor).select_related("user"))


def try_channel(actor: Actor, channel: Channel) -> str:
    """Send a test; returns why it did not leave, empty where it did. Raises NotAllowed, ChannelRefused."""
    if channel.user_id is not None:
        _may_be_told(actor)
        may(actor, Verb.BE_TOLD, About(channel.organization_id, user_id=channel.user_id))
    else:
        may(actor, Verb.ARRANGE_CHANNELS, channel)
    for key in (f"try-channel user {actor.user_id}", f"try-channel {channel.organization_id}"):
        if wait := throttles.take(key, TRIES, PER_SECONDS):
            raise ChannelRefused(f"Too many tries: wait {int(wait) + 1} seconds.", "TOO_MANY_TRIES")
    try:
        delivery.try_out(channel)
    except NotSent as error:
        delivery.failed(channel, error)
        return error.why
    Channel.objects.filter(pk=channel.pk).update(failing_since=None, problem="", told_at=Now())
    return ""


def keep_address(channel: Channel, address: str) -> None:
    """Check and encrypt the address of an organization's channel. Raises ChannelRefused."""
    _, shown = _checked(channel.kind, address)
    channel.keep_address(address, shown)


def _checked(kind: str, address: str) -> tuple[Sender, str]:
    sender = senders.found(kind)
    if sender is None:
        there = ", ".join(sorted(senders.all_of_them()))
        raise ChannelRefused(f"There is no such kind of channel; there are: {there}.", "BAD_KIND")
    try:
        return sender, sender.check(address)
    except BadAddress as error:
        raise ChannelRefused(str(error), "BAD_ADDRESS") from None


def known_topics(topics: Sequence[str]) -> list[str]:
    return [topic for topic in Topic.values if topic in topics]


def _may_be_told(actor: Actor) -> None:
    may(actor, Verb.BE_TOLD, _self(actor))


def _self(actor: Actor) -> About:
    return About(actor.organization_id or "", user_id=actor.user_id)


# Away


def be_away(actor: Actor, stand_in_id: str, starts_at: datetime, ends_at: datetime) -> Absence:
    """Say that one is away, and who decides in one's place. It takes a lately confirmed session: what is
    handed over is what rules name this very person for. Raises NotAllowed, ChannelRefused.
    """
    may(actor, Verb.BE_AWAY, _self(actor))
    may_act_as_person(actor)
    if ends_at <= starts_at:
        raise ChannelRefused("An absence ends after it has begun.")
    stand_in = next((one for one in stand_ins(actor) if one.pk == stand_in_id), None)
    if stand_in is None:
        raise ChannelRefused("Choose somebody who may decide approvals here.")
    absence, _ = Absence.objects.update_or_create(
        membership=actor.membership,
        defaults={
            "organization_id": stand_in.organization_id,
            "stand_in": stand_in,
            "starts_at": starts_at,
            "ends_at": ends_at,
            "created_at": Now(),  # what others make of oneself afterwards gives the stand-in nothing
        },
    )
    return absence


def be_back(actor: Actor) -> None:
    """End one's absence, or take back one that is planned. Raises NotAllowed."""
    may(actor, Verb.BE_AWAY, _self(actor))
    Absence.objects.filter(membership=actor.membership).delete()


def stand_ins(actor: Actor) -> list[Membership]:
    """Those who may stand in for this person: people who may decide approvals themselves."""
    members = Membership.objects.filter(
        member_permissions.holding("runs.decide_approval"),
        organization_id=actor.organization_id,
        active=True,
        kind=MembershipKind.HUMAN,
        user__is_active=True,
    )
    others = members.exclude(user=actor.user)
    return list(others.select_related("user", "custom_role").order_by("user__username"))
