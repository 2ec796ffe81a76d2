"""What a member may see: their organization, and in it their projects. Every query of the API starts here."""

from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from common.api.errors import Problem
from groups.models import Membership, Project

M = TypeVar("M", bound=Model)


def visible(queryset: QuerySet[M], membership: Membership, project: str = "project_id") -> QuerySet[M]:
    """The rows of the member's organization and projects. `project` names the column that holds theirs."""
    found = queryset.filter(organization_id=membership.organization_id)
    if membership.projects is None:
        return found
    return found.filter(**{f"{project}__in": membership.projects})


def shared(queryset: QuerySet[M], membership: Membership) -> QuerySet[M]:
    """The same with the rows of no project, which are the whole organization's."""
    found = queryset.filter(organization_id=membership.organization_id)
    if membership.projects is None:
        return found
    return found.filter(Q(project=None) | Q(project__in=membership.projects))


def projects(membership: Membership) -> QuerySet[Project]:
    return visible(Project.objects.all(), membership, project="id")


def require_whole(membership: Membership, why: str) -> None:
    """What holds for the whole organization is arranged by those who see all of it. Raises Problem."""
    if membership.projects is not None:
        raise Problem(403, "NOT_ENTITLED", why)


def find_project(membership: Membership, name: Any) -> Project | None:
    """A visible project by id or by slug."""
    found = list(projects(membership).filter(id=name)) or list(projects(membership).filter(slug=name))
    return found[0] if found else None
