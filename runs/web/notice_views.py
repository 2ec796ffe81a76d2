"""How one is told of what waits: channels, a test of each, and who stands in while one is away."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

from django.contrib import messages
from django.core import signing
from django.db.models.functions import Now
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from groups.models import Absence
from policy.authority import NotAllowed
from runs.actions import channels
from runs.actions.channels import ChannelRefused
from runs.api.slack_hook import code
from runs.models import ApprovalNotice, Channel, Topic
from runs.notices import chat, push, senders
from runs.notices.message import SALT
from runs.web import access, pages
from runs.web.access import MemberRequest, member

LINK_SECONDS = 7 * 24 * 3600
OURS = ("email", "slack", "push")  # which are not typed in here


@require_safe
@member
def notices(request: MemberRequest) -> HttpResponse:
    """The person's channels and their absence. Whoever has the code of a chat decides there in their name
    from then on, and so it is shown to somebody who has confirmed lately that it is them.
    """
    context = {
        "channels": channels.with_email(request.actor),
        "topics": [(value, _(label)) for value, label in Topic.choices],
        "kinds": [one for kind, one in senders.all_of_them().items() if kind not in OURS],
        "services": chat.LISTED,
        "push_key": push.public_key(),
        "absence": Absence.objects.filter(membership=request.membership)
        .select_related("stand_in__user")
        .first(),
        "stand_ins": channels.stand_ins(request.actor),
        "stands_in_for": list(
            Absence.objects.filter(stand_in=request.membership, ends_at__gt=Now()).select_related(
                "membership__user"
            )
        ),
        "linkable": [
            {"channel": one, "code": code(one, request.user) if request.actor.interactive else ""}
            for one in access.channels(request).filter(kind="slack")
        ],
        "here": "settings",
    }
    return pages.page(request, "web/notices.html", context)


def _done(request: MemberRequest, do: Callable[[], Any], said: str) -> HttpResponse:
    """Do it, say so or why not, and show the page again."""
    try:
        do()
    except NotAllowed as refused:
        if refused.code == "CONFIRM_FIRST":
            return redirect(f"{reverse('web:confirm')}?next={reverse('web:notices')}")
        messages.error(request, _(refused.message))
    except ChannelRefused as refused:
        messages.error(request, _(str(refused)))
    except Channel.DoesNotExist:
        raise Http404 from None
    else:
        messages.success(request, said)
    return redirect("web:notices")


@require_POST
@member
def add_channel(request: MemberRequest) -> HttpResponse:
    kind, address = request.POST.get("kind", ""), request.POST.get("address", "").strip()
    name, topics = request.POST.get("name", ""), request.POST.getlist("topics")

    def add() -> None:
        channels.add_own(request.actor, kind, address, name, topics)

    return _done(request, add, _("Added. Send a test to see that messages arrive."))


@require_POST
@member
def change_channel(request: MemberRequest, channel_id: str) -> HttpResponse:
    enabled, topics = "enabled" in request.POST, request.POST.getlist("topics")
    return _done(
        request, lambda: channels.change_own(request.actor, channel_id, enabled, topics), _("Saved.")
    )


@require_POST
@member
def remove_channel(request: MemberRequest, channel_id: str) -> HttpResponse:
    return _done(request, lambda: channels.remove_own(request.actor, channel_id), _("Removed."))


@require_POST
@member
def try_channel(request: MemberRequest, channel_id: str) -> HttpResponse:
    def attempt() -> None:
        if why := channels.try_channel(request.actor, channels.own(request.actor).get(pk=channel_id)):
            raise ChannelRefused(_("The test did not arrive: {why}").format(why=why))

    return _done(request, attempt, _("The test has left; look whether it arrives."))


@require_POST
@member
def be_away(request: MemberRequest) -> HttpResponse:
    """From the beginning of one day to the end of another, in the reader's time zone."""
    try:
        first, last = (date.fromisoformat(request.POST.get(name, "")) for name in ("first", "last"))
        starts, ends = _midnight(first), _midnight(last + timedelta(days=1))
    except (ValueError, OverflowError):
        messages.error(request, _("Say from which day to which you are away."))
        return redirect("web:notices")
    stand_in = request.POST.get("stand_in", "")
    return _done(request, lambda: channels.be_away(request.actor, stand_in, starts, ends), _("Saved."))


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))


@require_POST
@member
def be_back(request: MemberRequest) -> HttpResponse:
    return _done(request, lambda: channels.be_back(request.actor), _("You are not away any more."))


@require_safe
@member
def prepared(request: MemberRequest, token: str) -> HttpResponse:
    """A link of a mail: after the sign-in of the person it was sent to, and once, it opens the approval with
    the decision prepared. It decides nothing.
    """
    try:
        notice_id, what = signing.loads(token, salt=SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        messages.error(request, _("This link is not valid, or too old."))
        return redirect("web:waiting")
    notice = ApprovalNotice.objects.filter(pk=notice_id, user=request.user).first()
    if notice is None or notice.approval_id is None:
        messages.error(request, _("This link was sent to somebody else."))
        return redirect("web:waiting")
    address = reverse("web:approval", args=[notice.approval_id])
    unused = ApprovalNotice.objects.filter(pk=notice_id, link_used_at=None)
    if not unused.update(link_used_at=Now()):
        messages.warning(request, _("This link was used already: look, and decide here."))
        return redirect(address)
    said = _("You came to approve this: look at it and press Approve.")
    if what == "reject":
        said = _("You came to reject this: look at it, give a reason and press Reject.")
    messages.info(request, said)
    return redirect(f"{address}?prepared={what}")
