"""Whether what was pressed in a chat counts: as long as the app there speaks for its people.

Who has entered an app's secret can press its buttons as anybody who has linked an account. So a press counts
no longer than the secret, whoever entered it and the linked account do.
"""

from common.canonical import digest
from groups.actors import Actor, Via, active_membership
from policy.authority import About, Verb, can, holds, permission_for
from runs.models import Channel, ChatAccount

NOT_VOUCHED_FOR = "the chat's app, its secret or the account that pressed there does not count any more"


def name_of(linked: ChatAccount) -> str:
    """What a decision keeps of where it was pressed: the app, its secret as entered, and the account."""
    return digest(linked.channel.pk, linked.channel.sealed_address, linked.account)


def is_vouched_for(channel: Channel) -> bool:
    """Whether whoever entered an organization's address may arrange it today."""
    user = channel.kept_by
    if user is None or not user.is_active:
        return False
    there = Actor(user, active_membership(user, channel.organization_id), Via.SESSION)
    arranges = user.is_superuser or holds(there, permission_for("change", Channel))
    return arranges and can(there, Verb.ARRANGE_CHANNELS, channel)


def counts(actor: Actor, about: About) -> bool:
    """Whether what the actor has pressed in a chat about a run counts today."""
    linked = ChatAccount.objects.filter(
        user=actor.user,
        channel__organization_id=about.organization_id,
        channel__enabled=True,
        channel__kind="slack",
    ).select_related("channel__kept_by")
    return any(
        name_of(one) == actor.chat
        and one.channel.project_id in (None, about.project_id)
        and is_vouched_for(one.channel)
        for one in linked
    )
