"""The groups one's agent can ask, and making one on a single page."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from groups import known
from groups.making import CannotMake, NewSeat
from groups.models import Group, GroupMember, Role
from policy.authority import NotAllowed
from runs.actions.make import make_group, may_make, may_make_roles
from runs.providers import registry
from runs.providers.base import ProviderError
from runs.web import access, doing, pages
from runs.web.access import MemberRequest, member

SEATS = 5  # offered on the page


def may_arrange(request: MemberRequest) -> bool:
    """Whether the person may add groups to one of their projects."""
    return any(_allowed(may_make, request.actor, project) for project in access.projects(request)[:1])


def may_add_roles(request: MemberRequest) -> bool:
    """Roles are the whole organization's, so whoever sees only some projects takes those that are there."""
    return _allowed(may_make_roles, request.actor)


def _allowed(check: Callable[..., None], *what: Any) -> bool:
    try:
        check(*what)
    except NotAllowed:
        return False
    return True


@require_safe
@member
def groups(request: MemberRequest) -> HttpResponse:
    seats = Prefetch("members", GroupMember.objects.select_related("role").order_by("is_lead", "ordinal"))
    places = {project.pk: place for place, project in enumerate(access.projects(request))}
    found = Group.objects.filter(project__in=places, active=True).order_by("name")
    found = found.select_related("project").prefetch_related(seats)
    context = {
        "groups": sorted(found, key=lambda group: places[group.project_id]),
        "may_arrange": may_arrange(request),
        "here": "groups",
    }
    return pages.page(request, "web/groups.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@member
def new(request: MemberRequest) -> HttpResponse:
    """Name, purpose, seats, lead; and a goal to try at once."""
    if not may_arrange(request):
        raise PermissionDenied
    if request.method != "POST":
        return _page(request)
    goal = request.POST.get("goal", "").strip()
    try:
        with transaction.atomic():  # where the goal is refused the form stays, and no group is there yet
            group = _make(request)
            run_id = goal and doing.ask(request, group.project, goal, "", doing.new_key(), group.pk)
    except (NotAllowed, CannotMake, doing.Refused) as refused:
        messages.error(request, _(str(refused)))
        return _page(request, 422)
    if run_id:
        return redirect("web:conversation", run_id)
    messages.success(request, _("The group is there: your agent can ask it from now on."))
    return redirect("web:groups")


def _page(request: MemberRequest, status: int = 200) -> HttpResponse:
    roles = Role.objects.filter(organization_id=request.membership.organization_id).order_by("name")
    said = request.POST
    context = {
        "projects": access.projects(request),
        "roles": roles,
        "models": known.models_of(request.membership.organization_id),
        "default_model": settings.DEPUTY_MODEL,
        "may_add_roles": may_add_roles(request),
        "said": said,
        "seats": [_said(said, number) for number in range(1, SEATS + 1)],
        "here": "groups",
    }
    return pages.page(request, "web/group_new.html", context, status)


def _said(said: Any, number: int) -> dict[str, Any]:
    """A seat as the form has it."""
    fields = ("role", "name", "prompt", "model")
    found: dict[str, Any] = {field: said.get(f"{field}-{number}", "").strip() for field in fields}
    return {**found, "number": number, "is_lead": said.get("lead") == str(number)}


def _make(request: MemberRequest) -> Group:
    """Raises CannotMake."""
    project = access.projects(request).filter(pk=request.POST.get("project", "")).first()
    if project is None:
        raise CannotMake("NO_PROJECT", "Choose a project.")
    seats = [_seat(request, _said(request.POST, number)) for number in range(1, SEATS + 1)]
    name, description = (request.POST.get(field, "").strip() for field in ("name", "description"))
    group = make_group(request.actor, project, name, description, [seat for seat in seats if seat])
    doing.record(request, group, ADDITION)
    return group


def _seat(request: MemberRequest, said: dict[str, Any]) -> NewSeat | None:
    """The seat, or None for one that was left empty. Raises CannotMake."""
    if said["role"]:
        role = Role.objects.filter(
            organization_id=request.membership.organization_id, pk=said["role"]
        ).first()
        if role is None:
            raise CannotMake("NO_ROLE", "This role is not there any more: choose another.")
        return NewSeat(role=role, is_lead=said["is_lead"])
    if not said["name"]:
        return None
    if not may_add_roles(request):
        raise CannotMake("NOT_ENTITLED", "You may not add roles: choose one that is there.")
    if said["model"]:
        _check_model(said["model"], request.membership.organization_id)
    return NewSeat(name=said["name"], prompt=said["prompt"], model=said["model"], is_lead=said["is_lead"])


def _check_model(model: str, organization_id: str) -> None:
    try:
        registry.check(model, organization_id)
    except (ProviderError, ValueError) as error:
        raise CannotMake("NO_MODEL", str(error)) from None
