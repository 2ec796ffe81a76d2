"""What others have done to somebody's account.

Three records say so: Django's own history of changes, which the admin's pages and the API write; the record
of changes, which outlives whoever made them and goes along to another cell; and what second persons have
confirmed.
"""

from datetime import datetime, timedelta
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext_noop

from common.db import row
from groups import changes
from groups.models import Membership

SESSION_USER = "_auth_user_id"  # Django's key in a session
SIGNS_IN = gettext_noop("who signs in, and as what")  # what a change of an account weakens
VOID_FOR = timedelta(hours=1)  # so long an account somebody else has changed decides nothing as a person


# Whether others changed the account lately: its password or rights; its membership or a token in the
# organization at hand; or the entry of a provider that says there who it is, which may be somebody's own by
# now. What another organization makes of its own place for somebody opens nothing here, nor voids a vote.
# Asked at every decision of a person, where the ORM takes longer to write it than the server to answer.
LATELY = f"> clock_timestamp() - interval '{VOID_FOR.total_seconds():.0f} s'"
CHANGED = """(
    WITH whose (model, id) AS (
        SELECT %s, %s
        UNION ALL SELECT 'groups.membership', m.id FROM groups_membership m
        WHERE m.user_id = %s AND m.organization_id = %s
        UNION ALL SELECT 'groups.token', k.id FROM groups_token k
        WHERE k.user_id = %s AND k.organization_id = %s
        UNION ALL SELECT 'groups.identityprovider', s.provider FROM socialaccount_socialaccount s
        WHERE s.user_id = %s AND NOT EXISTS (
            SELECT FROM groups_change o WHERE o.model = 'groups.identityprovider'
            AND o.object_id = s.provider AND o.organization_id <> %s))
    SELECT EXISTS (
        SELECT FROM django_admin_log l JOIN django_content_type t ON t.id = l.content_type_id
        WHERE l.action_time {when} AND l.user_id <> %s
          AND (t.app_label || '.' || t.model, l.object_id) IN (SELECT model, id FROM whose))
    OR EXISTS (
        SELECT FROM groups_change c JOIN whose ON c.model = whose.model AND c.object_id = whose.id
        WHERE c.created_at {when} AND c.by <> '' AND c.user_id IS DISTINCT FROM %s)
    OR EXISTS (
        SELECT FROM groups_proposedchange p JOIN whose ON p.model = whose.model AND p.object_id = whose.id
        WHERE p.decided_at {when} AND p.state = 'confirmed' AND p.user_id IS DISTINCT FROM %s))"""


def _of(user: Any, organization_id: str | None) -> list[Any]:
    """The parameters of CHANGED."""
    label = get_user_model()._meta.label_lower
    return [label, str(user.pk), *[user.pk, organization_id] * 3, *[user.pk] * 3]


def is_changed_by_another(user: Any, organization_id: str) -> RawSQL:
    """The same as a condition of a query."""
    changed = CHANGED.format(when=LATELY)
    return RawSQL(changed, _of(user, organization_id), BooleanField())  # noqa: S611 - our own text


def changed_by_another(user: Any, organization_id: str | None, at: datetime | None = None) -> bool:
    """Whether somebody else changed the account, what it is in this organization, or a provider by which it
    signs in there, within the last hour, or the one before `at`.
    """
    when = f"BETWEEN '{(at - VOID_FOR).isoformat()}' AND '{at.isoformat()}'" if at else LATELY
    return _changed(user, organization_id, when)


def _changed(user: Any, organization_id: str | None, when: str) -> bool:
    return bool(row(f"SELECT {CHANGED.format(when=when)}", _of(user, organization_id))[0])


# Somebody else changed what rules mean the member by: the membership, the member role it has, or who owns
# a project.
PLACED = """EXISTS (
    SELECT FROM groups_change c
    WHERE c.created_at > least(%s::timestamptz, clock_timestamp()) - %s
      AND c.by <> '' AND c.user_id IS DISTINCT FROM %s
      AND (c.model = 'groups.membership' AND c.object_id = %s
           OR c.model = 'groups.customrole' AND c.object_id = %s
           OR c.model = 'groups.project' AND c.after ->> 'owner_id' = %s))"""


def placed_by_another(member: Membership, since: datetime | None = None) -> bool:
    """Whether somebody else has changed what rules mean the member by, its membership, the member role it has
    or which projects it owns: within the hour before `since` or afterwards. None is now.
    """
    return bool(row(f"SELECT {PLACED}", _placed(member, since))[0])


def is_placed_by_another(member: Membership) -> RawSQL:
    """The same, of now, as a condition of a query."""
    return RawSQL(PLACED, _placed(member, None), BooleanField())  # noqa: S611 - our own text


def _placed(member: Membership, since: datetime | None) -> list[Any]:
    """The parameters of PLACED."""
    return [since, VOID_FOR, member.user_id, member.pk, member.custom_role_id, member.pk]


def given_to_another(member: Membership, since: datetime) -> bool:
    """Whether since then, or within the last hour, somebody else has placed the member or changed the account
    and could sit at it.
    """
    (before,) = row("SELECT least(%s, clock_timestamp() - %s)", [since, VOID_FOR])
    changed = _changed(member.user, member.organization_id, f"> '{before.isoformat()}'")
    return changed or placed_by_another(member, since + VOID_FOR)


def remove_factors(user: Any) -> int:
    """Take away an account's authenticators, recovery codes and passkeys, and end its sessions: whoever had
    them may be signed in by them. How many there were.
    """
    found = list(Authenticator.objects.filter(user=user))
    for each in found:
        each.delete()  # one by one: each is recorded
    changes.note(user, {"second_factors": len(found)}, {"second_factors": 0})
    end_sessions(user)
    return len(found)


def end_sessions(user: Any, but: str | None = None) -> int:
    """End every browser session of the account, `but` one; how many."""
    mine = [row for row in Session.objects.iterator() if row.get_decoded().get(SESSION_USER) == str(user.pk)]
    return int(Session.objects.filter(pk__in=[row.pk for row in mine if row.pk != but]).delete()[0])
