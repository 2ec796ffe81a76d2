"""Whose a token is: read at every request of a program, so in one statement and not by the ORM, which takes
longer to write it than the server to answer.
"""

from django.contrib.auth import get_user_model

from common.columns import Columns
from common.db import row
from groups.actors import MEMBER, member_of
from groups.cells import ELSEWHERE
from groups.models import Membership, Organization, Token
from groups.models.tokens import hash_secret

TOKEN, USER = Columns(Token, "t"), Columns(get_user_model(), "u")
ORGANIZATION = Columns(Organization, "o")
HOLDER = f"""
SELECT {TOKEN.sql}, {USER.sql}, {ORGANIZATION.sql}, {MEMBER}
FROM groups_token t JOIN {get_user_model()._meta.db_table} u ON u.id = t.user_id
JOIN groups_organization o ON o.id = t.organization_id
LEFT JOIN groups_membership m ON m.organization_id = t.organization_id AND m.user_id = t.user_id AND m.active
LEFT JOIN groups_customrole custom ON custom.id = m.custom_role_id
WHERE t.secret_hash = %s AND t.revoked_at IS NULL AND u.is_active
  AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
  AND NOT {ELSEWHERE.format("o.id")}
"""  # noqa: S608 - the names of our own columns


def live(secret: str) -> tuple[Token, Membership | None] | None:
    """The usable token for this secret, with its user and organization, and the user's active membership
    there; None where no such token is.
    """
    found = row(HOLDER, [hash_secret(secret)])
    if found is None:
        return None
    values = iter(found)
    token, user, organization = TOKEN.take(values), USER.take(values), ORGANIZATION.take(values)
    membership = member_of(values)
    assert token is not None and user is not None and organization is not None  # noqa: S101 - joined
    token.user, token.organization = user, organization
    if membership is not None:
        membership.user, membership.organization = user, organization
    return token, membership
