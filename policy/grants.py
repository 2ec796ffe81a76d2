"""Which standing approvals count: those that hold, and that whoever made them could still make.

Asked anew at every use. That one holds stands in its own row; whether its maker could make it, by the door
they made it at, says `may`, as of anybody who makes one now.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from common.canonical import canonical, digest
from common.columns import Columns
from common.db import execute, rows
from groups import today
from groups.actors import Actor, Via
from policy.authority import About, NotAllowed, Verb, may
from policy.models import Grant
from policy.provenance.terms import says
from policy.terms import GrantView

HOLDS = "g.revoked_at IS NULL AND (g.expires_at IS NULL OR g.expires_at > clock_timestamp())"
HAS_USES = """(g.max_uses IS NULL
    OR g.max_uses > (SELECT count(*) FROM policy_grantuse used WHERE used.grant_id = g.id))"""
GRANT = Columns(Grant, "g")
MAKER, JOINS = today.doer("g.granted_by_id", "g.token_id", "g.organization_id")
HERE = f"g.organization_id = %s AND g.project_id = %s AND {HOLDS} AND {HAS_USES}"
OF_TOOL = f"{HERE} AND g.tool = %s"
OF_ANY_TOOL = f"{HERE} AND g.any_arguments"
USED = (
    f"{HOLDS} AND g.id IN (SELECT used.grant_id FROM policy_grantuse used "  # noqa: S608
    "WHERE used.organization_id = %s AND used.idempotency_key = %s)"
)
THESE = "g.id = ANY(%s)"
NO_MORE_ITS_OWN = """
UPDATE policy_grantuse SET idempotency_key = %s WHERE organization_id = %s AND idempotency_key = %s
"""

NO_MORE = gettext_noop("Whoever made it may make none in its project any more.")
NO_TOKEN = gettext_noop("The token it was made with was revoked, or has the scope for it no more.")
WHY = {"NOT_ENTITLED": NO_MORE, "SCOPE_MISSING": NO_TOKEN}


def of_call(
    organization_id: str, project_id: str, tool: str, arguments: dict[str, Any], named: Collection[str]
) -> tuple[GrantView, ...]:
    """Those that count and have uses left for a call with these arguments. `named`: what the tool's schema
    calls its own.
    """
    found = _counting(OF_TOOL, [organization_id, project_id, tool])
    return tuple(
        GrantView(id=grant.id, tool=grant.tool, project=grant.project_id)
        for grant in found
        if grant.any_arguments or matches(grant.arguments, grant.free, arguments, named)
    )


def matches(
    pattern: dict[str, Any], free: list[str] | None, arguments: dict[str, Any], named: Collection[str]
) -> bool:
    """Every argument the pattern names is there with exactly that value, and no other but those `free` and
    those `named` that say nothing: where a tool takes others as well, their names say something.
    """
    beside = said(arguments) | (arguments.keys() - {*named})
    if free is not None and not beside <= {*pattern, *free}:
        return False
    return all(
        name in arguments and canonical(arguments[name]) == canonical(value)
        for name, value in pattern.items()
    )


def said(arguments: dict[str, Any]) -> set[str]:
    """The names of the arguments that say something: a list of no recipients names none."""
    return {name for name, value in arguments.items() if says(value)}


def whatever_arguments(organization_id: str, project_id: str) -> frozenset[str]:
    """The tools that one lets pass now whatever their arguments are."""
    return frozenset(grant.tool for grant in _counting(OF_ANY_TOOL, [organization_id, project_id]))


def used_by(organization_id: str, idempotency_key: str) -> bool:
    """Whether one that counts has been used for this call. Its last use may have been this one."""
    return bool(_counting(USED, [organization_id, idempotency_key]))


def part_from(organization_id: str, idempotency_key: str, attempt: int) -> None:
    """The call was interrupted in this attempt and is to be made again: what it has used stays used, and lets
    no second attempt pass.
    """
    execute(NO_MORE_ITS_OWN, [digest(idempotency_key, attempt), organization_id, idempotency_key])


def void(grants: Iterable[Grant]) -> dict[str, str]:
    """Why those of them do not count that their makers could not make now, by id. One query."""
    asked = [grant.pk for grant in grants]
    judged = ((grant.pk, why) for grant, why in _judged(THESE, [asked])) if asked else ()
    return {pk: why for pk, why in judged if why}


def _counting(which: str, parameters: Sequence[Any]) -> list[Grant]:
    return [grant for grant, why in _judged(which, parameters) if not why]


def _judged(which: str, parameters: Sequence[Any]) -> list[tuple[Grant, str]]:
    """Each, and why its maker could not make it now; empty where they could."""
    found = []
    sql = f"SELECT {GRANT.sql}, {MAKER} FROM policy_grant g {JOINS} WHERE {which} ORDER BY g.id"  # noqa: S608
    for one in rows(sql, parameters):
        values = iter(one)
        grant = GRANT.take(values)
        assert grant is not None  # noqa: S101 - the row that was selected
        # Of one from before doors were recorded no token is known: its maker's own rights are asked alone.
        maker = today.taken(grant.via or Via.SESSION, grant.token_id, values)
        found.append((grant, _why(maker, grant)))
    return found


def _why(maker: Actor, grant: Grant) -> str:
    try:
        may(maker, Verb.GRANT, About(grant.organization_id, grant.project_id))
    except NotAllowed as refused:
        return WHY.get(refused.code, refused.message)
    return ""
