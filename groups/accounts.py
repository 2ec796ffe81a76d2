"""What others have done to somebody's account.

The record is Django's own history of changes, which the admin's pages and the API write.
"""

from datetime import timedelta
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from groups.models import Membership, Token

VOID_FOR = timedelta(hours=1)  # so long an account somebody else has changed decides nothing as a person


def changes_by_others(user: Any) -> QuerySet[LogEntry]:
    """What others changed of the account lately: its password or rights, a membership, a token."""
    of = ContentType.objects.get_for_model
    theirs = Q(content_type=of(get_user_model()), object_id=str(user.pk))
    for model in (Membership, Token):
        theirs |= Q(content_type=of(model), object_id__in=model.objects.filter(user=user).values("pk"))
    lately = LogEntry.objects.filter(theirs, action_time__gt=Now() - VOID_FOR)
    return lately.exclude(user_id=user.pk).order_by()


def changed_by_another(user: Any) -> bool:
    """Whether somebody else changed the account within the last hour."""
    return changes_by_others(user).exists()
