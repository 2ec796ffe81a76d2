"""Whoever did something, as they are today, by the door they did it at.

For what counts as long as whoever did it could still do it: decisions (runs/gate/demands.py) and standing
approvals (policy/grants.py); and for actions that have waited for their lock.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.contrib.auth import get_user_model

from common.columns import Columns
from common.db import row
from groups.actors import MEMBER, Actor, Via, member_of
from groups.scopes import reach

USER = Columns(get_user_model(), "u")
DOORS = {one.value: one for one in Via}
AT_ONCE = 0.02  # seconds in which nothing can have changed that anybody would notice


def doer(user: str, token: str, organization: str) -> tuple[str, str]:
    """What a statement selects for `taken`, and the joins it takes: given its expressions for the user, the
    token's id, which may be NULL, and the organization. It uses the aliases u, m, custom and t.

    A token has the scopes that it has today, and none once it was revoked; one that has merely expired had
    them when it was used.
    """
    scopes = (
        f"CASE WHEN {token} IS NULL THEN NULL WHEN t.id IS NULL OR t.revoked_at IS NOT NULL THEN '{{}}' "
        "ELSE t.scopes END"
    )
    joins = f"""
JOIN {get_user_model()._meta.db_table} u ON u.id = {user}
LEFT JOIN groups_membership m ON m.user_id = u.id AND m.organization_id = {organization} AND m.active
LEFT JOIN groups_customrole custom ON custom.id = m.custom_role_id
LEFT JOIN groups_token t ON t.id = {token}"""
    return f"{scopes}, {USER.sql}, {MEMBER}", joins


def taken(door: str, token_id: str | None, values: Iterator[Any], as_human: bool = False) -> Actor:
    """Who it is, of the values that `doer` had selected, which are used up. A door that this release does not
    know counts as a token's, which opens least.
    """
    scopes = next(values)
    user: Any = USER.take(values)
    membership = member_of(values)
    active = membership if user.is_active else None
    via = DOORS.get(door, Via.TOKEN)
    return Actor(user, active, via, None if scopes is None else reach(scopes), as_human, token_id)


ASKED = "(SELECT %s::int AS user_id, %s::text AS token_id, %s::text AS organization_id) asked"
STANDS, JOINED = doer("asked.user_id", "asked.token_id", "asked.organization_id")


def since(actor: Actor) -> Actor:
    """The same, as they stand now where a moment has passed since they were looked up: of an action that has
    its lock, wherever its request has waited until then. A token that was revoked meanwhile reaches nothing.
    """
    now_at = time.monotonic()
    if actor.membership is None or now_at - actor.at <= AT_ONCE:
        return actor
    asked = [actor.user_id, actor.token_id, actor.organization_id]
    found = row(f"SELECT {STANDS} FROM {ASKED} {JOINED}", asked)  # noqa: S608 - our own text
    if found is None:  # the account is gone
        return replace(actor, membership=None)
    now = taken(actor.via, actor.token_id, iter(found))
    reached = actor.scopes if now.scopes is None else now.scopes & (actor.scopes or frozenset())
    return replace(actor, membership=now.membership, scopes=reached, at=now_at)
