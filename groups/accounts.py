"""What others have done to somebody's account.

The record is Django's own history of changes, which the admin's pages and the API write.
"""

from datetime import timedelta
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from groups.models import Membership, Token

SESSION_USER = "_auth_user_id"  # Django's key in a session
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


def remove_factors(user: Any) -> int:
    """Take away an account's authenticators, recovery codes and passkeys, and end its sessions: whoever had
    them may be signed in by them. How many there were.
    """
    found = list(Authenticator.objects.filter(user=user))
    for each in found:
        each.delete()  # one by one: each is recorded
    end_sessions(user)
    return len(found)


def end_sessions(user: Any, but: str | None = None) -> int:
    """End every browser session of the account, `but` one; how many."""
    mine = [row for row in Session.objects.iterator() if row.get_decoded().get(SESSION_USER) == str(user.pk)]
    return int(Session.objects.filter(pk__in=[row.pk for row in mine if row.pk != but]).delete()[0])
