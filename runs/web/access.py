"""Who asks, in which organization, and what is theirs: every view of these pages starts here."""

import zoneinfo
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Case, Q, QuerySet, When
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache

from common import cron
from groups import cells, current
from groups.actors import Actor
from groups.api import access as organization
from groups.models import Membership, Project
from memory.models import Memory, MemoryStatus
from runs.api import access
from runs.deciding.queue import in_order
from runs.gate.deciders import decidable
from runs.models import Approval, Channel, Run, Schedule, Wait
from runs.models.choices import ApprovalStatus, WaitKind

View = Callable[..., HttpResponseBase]

TIME_ZONE = "time_zone"  # the cookie
MOST_QUEUED = 500  # of which a page knows the next one
MOST_ASKED = 50  # pending approvals of which it is asked whether this person may decide them


class MemberRequest(HttpRequest):
    """A request of somebody who has a membership."""

    user: Any  # Django's, signed in
    membership: Membership
    memberships: list[Membership]
    actor: Actor  # in the organization at hand


def member(view: View) -> View:
    """A view for members: after sign-in, in one organization, in the reader's time zone, never cached."""

    @wraps(view)
    def guarded(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        request.memberships = current.memberships_of(request.user)
        if not request.memberships:
            return nobody_here(request)
        enter(request, current.membership_of(request.user) or request.memberships[0])
        with timezone.override(time_zone(request)):
            return view(request, *args, **kwargs)

    signed_in = login_required(guarded)

    @wraps(view)
    def asked(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.headers.get("HX-Request") and not request.user.is_authenticated:
            return HttpResponse(status=401)  # a script's request would put the door into the page
        return signed_in(request, *args, **kwargs)

    return never_cache(asked)


def nobody_here(request: HttpRequest) -> HttpResponseBase:
    """For somebody who is in none of this cell's organizations: to their cell, if it is one."""
    elsewhere = cells.organizations_elsewhere(request.user)
    addresses = {address for _, _, address in elsewhere}
    if len(addresses) == 1 and request.method == "GET":
        return redirect(addresses.pop() + request.get_full_path())
    return render(request, "web/no_membership.html", {"elsewhere": elsewhere}, status=403)


def enter(request: Any, membership: Membership) -> None:
    """From here on the request is in this organization."""
    request.membership = membership
    request.actor = Actor.of_session(request, request.user, membership)


def time_zone(request: HttpRequest) -> zoneinfo.ZoneInfo | None:
    """The reader's, from their cookie; None for the installation's."""
    name = request.COOKIES.get(TIME_ZONE, "")
    return zoneinfo.ZoneInfo(name) if name in cron.zones() else None


def schedules(request: MemberRequest) -> QuerySet[Schedule]:
    """The person's own, in the projects they see."""
    return access.schedules(request.actor)


def projects(request: MemberRequest) -> QuerySet[Project]:
    """Those the person sees, the ones in their language first, and of the rest those of no language."""
    mine = When(language=get_language() or "", then=0)
    place = Case(mine, When(language="", then=1), default=2)
    return organization.projects(request.membership).order_by(place, "name", "id")


def own_runs(request: MemberRequest) -> QuerySet[Run]:
    """The runs that work for this person in the projects they see, those of their groups included."""
    return access.runs(request.membership).filter(user=request.user)


def own_root(request: MemberRequest, run_id: str) -> Run:
    """One of the person's conversations' turns. Raises Http404, also for somebody else's."""
    run = own_runs(request).select_related("project", "rating").filter(pk=run_id, depth=0).first()
    if run is None:
        raise Http404
    return run


def own_waits(request: MemberRequest) -> QuerySet[Wait]:
    """The open questions of the person's runs, the oldest first."""
    waits = Wait.objects.filter(
        organization_id=request.membership.organization_id,
        run__in=own_runs(request),
        kind=WaitKind.INPUT,
        resolved_at=None,
    )
    return waits.select_related("run__root").order_by("id")


def memories(request: MemberRequest) -> QuerySet[Memory]:
    """What counts of the organization's and the projects' memories, and of the person's own."""
    shown = Memory.objects.filter(status__in=(MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED))
    mine = shown.filter(Q(user=None) | Q(user=request.user.pk))
    return organization.shared(mine, request.membership)


def channels(request: MemberRequest) -> QuerySet[Channel]:
    """The channels of the organization and of the person's projects that are on."""
    return organization.shared(Channel.objects.filter(user=None, enabled=True), request.membership)


def approvals(request: MemberRequest) -> QuerySet[Approval]:
    """Those of one's own runs, and for deciders those of their projects."""
    found = access.approvals(request.actor)
    return found.select_related("tool_call", "run__user", "run__project", "run__group", "run__root")


def approval_or_404(request: MemberRequest, approval_id: str) -> Approval:
    """The approval; its page is also reached by links, so it opens in whichever organization it is."""
    found = look_up(request, approval_id)
    current.stand(request.user, request.membership)
    return found


def look_up(request: MemberRequest, approval_id: str) -> Approval:
    """The approval, in whichever of the person's organizations it is; the request is in that one then."""
    here = request.membership
    for membership in (here, *(one for one in request.memberships if one != here)):
        enter(request, membership)
        found = approvals(request).filter(pk=approval_id).first()
        if found is not None:
            return found
    raise Http404


def waiting(request: MemberRequest) -> QuerySet[Approval]:
    """The pending approvals that wait for this person, in the order of the queue."""
    mine = access.visible_approvals(request.actor)
    return in_order(decidable(request.actor, mine))


def to_decide(request: MemberRequest) -> list[Approval]:
    """The first of the pending approvals that wait for this person, with what lists show of them."""
    found = waiting(request)[:MOST_ASKED].values("pk")
    return list(in_order(approvals(request).filter(pk__in=list(found.values_list("pk", flat=True)))))


def queue(request: MemberRequest) -> list[str]:
    """The ids of those that wait for this person."""
    return list(waiting(request).values_list("pk", flat=True)[:MOST_QUEUED])


def count_to_decide(request: MemberRequest) -> int:
    """How many wait for this person, at most MOST_ASKED: one query, and one for those with named deciders."""
    return waiting(request).order_by()[:MOST_ASKED].count()


def own_pending(request: MemberRequest) -> list[Approval]:
    """The pending approvals of the person's own runs, the oldest first."""
    mine = approvals(request).filter(status=ApprovalStatus.PENDING, run__user=request.user)
    return list(mine.select_related("watch").order_by("id")[:MOST_ASKED])
