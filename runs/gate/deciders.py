"""Who may decide an approval. The same question as actions.decide.entitled answers for one person."""

from typing import Any

from django.contrib.auth import get_user_model

from groups.member_permissions import holding
from groups.models import Membership, Project
from groups.models.organizations import MembershipKind
from runs.models.choices import ApprovalEffect

PERMISSION = "runs.decide_approval"


def own_run_excluded(allow_self_approval: bool, effect: str, deciders_needed: int) -> bool:
    """Whether the run's own user may not decide: what people decide, or several do, unless its project
    allows it.
    """
    strict = effect == ApprovalEffect.REQUIRE_HUMAN or deciders_needed > 1
    return strict and not allow_self_approval


def who_may_decide(
    project: Project, user_id: int, effect: str, deciders_needed: int = 1, people_only: bool = False
) -> list[Any]:
    """The active users who may decide an approval of this user's run, by name."""
    memberships = Membership.objects.filter(
        holding(PERMISSION), organization_id=project.organization_id, active=True
    )
    if people_only or effect == ApprovalEffect.REQUIRE_HUMAN:
        memberships = memberships.filter(kind=MembershipKind.HUMAN)
    seeing = [m.user_id for m in memberships if m.sees_project(project.pk)]
    able = get_user_model().objects.filter(pk__in=seeing, is_active=True)
    if own_run_excluded(project.allow_self_approval, effect, deciders_needed):
        able = able.exclude(pk=user_id)
    return list(able.order_by(get_user_model().USERNAME_FIELD))
