"""Writes the record of changes (models/changes.py), whichever door they come by.

Every `save` and `delete` of a model named here is recorded, by Django's signals, in the same transaction.
`update` of a queryset sends none: it goes through `update` here.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, transaction
from django.db.models import Model, QuerySet
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from django.utils.translation import gettext as _

from common.canonical import digest
from groups.models import (
    Change,
    ChangeAction,
    CustomRole,
    Door,
    Membership,
    Organization,
    ProposedChange,
    Token,
)

AUDITED = (
    *("groups.Organization", "groups.Project", "groups.Membership", "groups.CustomRole", "groups.Token"),
    "groups.IdentityProvider",
    *("groups.Role", "groups.AgentInstance", "groups.Group", "groups.GroupMember"),
    *("policy.Capability", "policy.ToolBinding", "policy.ToolDeclaration", "policy.CapabilityRule"),
    "policy.OutsideEntity",
    *("policy.Grant", "runs.McpServer", "runs.McpTool", "runs.WebhookEndpoint", "runs.Schedule"),
    "runs.RemoteAgent",
    *("runs.ModelKey", "runs.ModelPrice", "runs.TriedModel", "runs.Channel", "groups.Absence"),
    *("runs.ConnectedAccount", "auth.User"),
    *("mfa.Authenticator", "account.EmailAddress", "socialaccount.SocialAccount"),
)
CONFIRMED_ALONE = {"groups.token"}  # what who asks confirms, and no second person has to
OF_ACCOUNTS = {"mfa.authenticator", "account.emailaddress", "socialaccount.socialaccount"}
SECRET = {
    *("password", "secret_hash", "sealed_headers", "sealed_secret", "sealed_previous", "sealed_key"),
    *("sealed_access", "sealed_refresh", "sealed_address", "data"),  # the latter of a second factor
    "preferences",  # of a person, whose agent alone is told them
}
IGNORED = {
    *("created_at", "catalog_version", "last_used_at", "last_login", "date_joined"),
    *("next_at", "started", "checked_at", "failing_since", "changed_at", "definition", "digest", "problem"),
    "card",
    *("told_at", "extra_data"),
}
HIDDEN, HIDDEN_ANEW = "(secret)", "(another secret)"
BEFORE = "_deputy_before"
FOLLOWS = ""  # a change from what was settled, for whoever proposed one
STANDING = "_deputy_membership"  # on a request's user: the membership, or None
# What stands in a project, or without one for all, and the lookup of that.
PLACED = {
    "groups.group": "project_id",
    "groups.groupmember": "group__project_id",
    "policy.capabilityrule": "project_id",
    "policy.grant": "project_id",
    "runs.webhookendpoint": "project_id",
}

Values = dict[str, Any]


@dataclass(frozen=True)
class By:
    """Who makes changes now, and by which door. `confirmed`: they have shown lately that it is them; of a
    browser's session, since a token is shown anew with each request. `scopes`: what the token had then.
    """

    user: Any = None
    via: Door = Door.SYSTEM
    token: str = ""
    confirmed: bool = True
    scopes: tuple[str, ...] = ()


_by: ContextVar[Callable[[], By] | None] = ContextVar("deputy_by", default=None)


def made_by(by: Callable[[], By] | None) -> None:
    """From here on, changes are made by whom this says; it is asked when something changes."""
    _by.set(by)


@contextmanager
def one_request() -> Iterator[None]:
    """Whoever is found out inside makes changes no longer than that. For doors in front of Django, which the
    middleware (groups/current.py) does not end: what is served next in the same context is not theirs.
    """
    kept = _by.get()
    try:
        yield
    finally:
        _by.set(kept)


@contextmanager
def acting(user: Any, via: Door = Door.SYSTEM, token: str = "") -> Iterator[None]:
    """Inside, changes are the user's."""
    kept = _by.set(lambda: By(user, via, token))
    try:
        yield
    finally:
        _by.reset(kept)


class TakesSecond(Exception):
    """Nothing has changed: a second person has to confirm it. Whoever serves the request proposes it, once
    the transaction is undone (groups/second.py).
    """

    def __init__(self, proposed: ProposedChange) -> None:
        super().__init__(proposed.why)
        self.proposed = proposed


class TakesConfirmation(Exception):
    """Nothing has changed: whoever asked in a browser has to confirm first that it is them. It says what the
    change weakens.
    """


Judge = Callable[[str, Values | None, Values | None], str]
_judge: Judge | None = None
_settled: ContextVar[str | None] = ContextVar("deputy_settled", default=None)


def judged_by(judge: Judge) -> None:
    """Says of a model, and its row's columns before and after, what the change would weaken; else nothing."""
    global _judge
    _judge = judge


@contextmanager
def settled(proposer: str = FOLLOWS) -> Iterator[None]:
    """Inside, changes take no second person: one has confirmed them, or they follow from what was settled."""
    kept = _settled.set(proposer)
    try:
        yield
    finally:
        _settled.reset(kept)


def connect() -> None:
    """Listen to every audited model there is."""
    for label in AUDITED:
        model = apps.get_model(label)
        pre_save.connect(_before_save, sender=model, dispatch_uid=f"change-before-{label}")
        post_save.connect(_after_save, sender=model, dispatch_uid=f"change-after-{label}")
        pre_delete.connect(_before_delete, sender=model, dispatch_uid=f"change-going-{label}")
        post_delete.connect(_after_delete, sender=model, dispatch_uid=f"change-gone-{label}")


def update(rows: QuerySet[Any], **columns: Any) -> int:
    """`rows.update(…)`, recorded; returns how many."""
    with transaction.atomic():
        found = list(rows.select_for_update(no_key=True, of=("self",)))
        before = {row.pk: _stored(row) for row in found}
        for row in found:
            _hold(row, before[row.pk], {**(before[row.pk] or {}), **_plain(row, columns)})
        of_these = rows.model._base_manager.filter(pk__in=list(before))
        count = int(of_these.update(**columns))
        for row in of_these:
            _note_difference(row, before[row.pk], _stored(row))
    return count


def _before_save(sender: Any, instance: Model, raw: bool = False, **more: Any) -> None:
    if raw:
        return
    before = None if instance._state.adding else _stored(instance)
    setattr(instance, BEFORE, before)
    if _judge is None or _by.get() is None or _settled.get() == FOLLOWS:
        return
    saved = more.get("update_fields")
    fields = [
        field for field in _columns(instance) if saved is None or {field.name, field.attname} & {*saved}
    ]
    wanted = _plain(instance, {field.attname: getattr(instance, field.attname) for field in fields})
    _hold(instance, before, {**(before or {}), **wanted})


def _after_save(sender: Any, instance: Model, created: bool, raw: bool = False, **more: Any) -> None:
    if raw:
        return
    before, after = getattr(instance, BEFORE, None), _stored(instance)
    if after is None:
        return
    if before is None:
        _note(instance, ChangeAction.ADDED, {}, shown(after))
    else:
        _note_difference(instance, before, after)


def _before_delete(sender: Any, instance: Model, origin: Any = None, **more: Any) -> None:
    before = _stored(instance, locked=True)  # what it is now is what goes
    setattr(instance, BEFORE, before)
    if origin is instance or isinstance(origin, QuerySet):  # what goes with something else goes with it
        _hold(instance, before, None)


def _hold(instance: Model, before: Values | None, after: Values | None) -> None:
    """Raises PermissionDenied where whoever asked for it has other rights by now, and of what weakens the
    organization, TakesConfirmation where somebody else may sit at the browser, and TakesSecond where the
    organization has a second person confirm it.

    What Deputy does by itself, and what is done on its machine, is nobody's request.
    """
    source = _by.get()
    if source is None or _judge is None or _settled.get() == FOLLOWS:
        return
    by, (home, *_) = source(), _organizations(instance)
    if by.via == Door.SYSTEM or getattr(by.user, "pk", None) is None:
        return
    _within(by, instance, before, after)
    _stands(by)
    if _settled.get() is not None or not (why := _judge(instance._meta.label_lower, before, after)):
        return
    if not by.confirmed:
        raise TakesConfirmation(why)
    if instance._meta.label_lower in CONFIRMED_ALONE:
        return
    if Organization.objects.filter(pk=home, second_person=True).exists():
        raise TakesSecond(_proposed(instance, by, why, before, after))


def _stands(by: By) -> None:
    """Raises PermissionDenied where somebody has other rights than when they asked: the request may have
    waited for its row. The membership and its role, or of who has none their account, stay locked, so that
    what takes rights away comes before or after.
    """
    mine: Membership | None = getattr(by.user, STANDING, None)
    if mine is None:
        _stands_alone(by)
        return
    if connection.in_atomic_block:
        hold(mine)
    now = Membership.objects.filter(pk=mine.pk).select_related("custom_role", "user").first()
    stands = now is not None and _rights(now, now.user) == _rights(mine, by.user)
    if stands and by.token:
        token = Token.objects.filter(pk=by.token, revoked_at=None).first()
        stands = token is not None and {*by.scopes} <= {*token.scopes}
    if not stands:
        raise PermissionDenied(_("Your rights have changed while this waited: ask again."))


def _stands_alone(by: By) -> None:
    """The same of a superuser who is no member, and of an account that nobody has taken in."""
    accounts = get_user_model()._default_manager.filter(pk=by.user.pk)
    rows = accounts.select_for_update(no_key=True) if connection.in_atomic_block else accounts
    now = rows.values_list("is_active", "is_superuser").first()
    if now != (by.user.is_active, by.user.is_superuser):
        raise PermissionDenied(_("Your rights have changed while this waited: ask again."))


def _within(by: By, instance: Model, before: Values | None, after: Values | None) -> None:
    """Raises PermissionDenied where a member of some projects would change what stands elsewhere: it may have
    been moved while the request waited for it. The row stays locked. On the
    pages, superusers see all projects.
    """
    if by.via == Door.ADMIN and by.user.is_superuser:
        return
    mine: Membership | None = getattr(by.user, STANDING, None)
    lookup = PLACED.get(instance._meta.label_lower)
    if mine is None or mine.projects is None or lookup is None:
        return
    places: list[Any] = []
    if before is not None:
        rows = type(instance)._base_manager.filter(pk=instance.pk)
        list(rows.select_for_update(no_key=True, of=("self",)).values_list("pk"))
        places += rows.values_list(lookup, flat=True)
    if after is not None and lookup in after:
        places.append(after[lookup])
    if not {*places} <= {*mine.projects}:
        raise PermissionDenied(_("This is not in your projects: members of all of them arrange it."))


def hold(mine: Membership) -> None:
    """Keep the membership and its role as they are until the transaction's end."""
    for model, pk in ((Membership, mine.pk), (CustomRole, mine.custom_role_id)):
        list(model.objects.select_for_update(no_key=True).filter(pk=pk).values_list("pk"))


def _rights(one: Membership, user: Any) -> tuple[Any, ...]:
    custom = sorted(one.custom_role.permissions) if one.custom_role else None
    place = None if one.projects is None else sorted(one.projects)
    return (one.active, one.kind, one.role, custom, place, user.is_active, user.is_superuser)


def confirmed_first(why: str) -> None:
    """Raises TakesConfirmation where somebody else may sit at the browser. For a page whose changes no judge
    weighs.
    """
    source = _by.get()
    if source is not None and not source().confirmed:
        raise TakesConfirmation(why)


def _proposed(
    instance: Model, by: By, why: str, before: Values | None, after: Values | None
) -> ProposedChange:
    (home, *_) = _organizations(instance)
    assert home is not None  # noqa: S101 - nothing is judged that belongs to no organization
    action, row = ChangeAction.CHANGED, row_digest(before, instance)
    if before is None:
        action = ChangeAction.ADDED
    elif after is None:
        action = ChangeAction.REMOVED
    else:
        differ = [name for name in after if before.get(name) != after[name]]
        before, after = {name: before.get(name) for name in differ}, {name: after[name] for name in differ}
    return ProposedChange(
        organization_id=home, user=by.user, by=by.user.get_username(), via=by.via, token=by.token,
        action=action, model=instance._meta.label_lower, object_id=str(instance.pk),
        label=str(instance)[:200], why=why[:300], before=before or {}, after=after or {},
        row_digest=row,
    )  # fmt: skip


def _plain(instance: Model, columns: Values) -> Values:
    """The values as the database would have them; without those that it computes itself."""
    known = {name: field for field in _columns(instance) for name in (field.name, field.attname)}
    return {
        known[name].attname: known[name].to_python(value.pk if isinstance(value, Model) else value)
        for name, value in columns.items()
        if name in known and not hasattr(value, "resolve_expression")
    }


def _columns(instance: Model) -> list[Any]:
    return [field for field in instance._meta.concrete_fields if field.name not in IGNORED]


def _after_delete(sender: Any, instance: Model, **more: Any) -> None:
    _note(instance, ChangeAction.REMOVED, shown(getattr(instance, BEFORE, None) or {}), {})


def _note_difference(instance: Model, before: Values | None, after: Values | None) -> None:
    before, after = before or {}, after or {}
    differ = [name for name in after if before.get(name) != after[name]]
    if differ:
        was = {name: _shown_one(name, before.get(name)) for name in differ}
        now = {name: HIDDEN_ANEW if name in SECRET else after[name] for name in differ}
        _note(instance, ChangeAction.CHANGED, was, now)


def note(instance: Model, before: Values, after: Values) -> None:
    """Record a change of the thing that shows in none of its columns."""
    _note(instance, ChangeAction.CHANGED, before, after)


def _note(instance: Model, action: ChangeAction, before: Values, after: Values) -> None:
    source = _by.get()
    by = source() if source else By()
    user = by.user if getattr(by.user, "pk", None) else None
    proposer = _settled.get()
    about = {
        "user": user,
        "by": user.get_username() if user else "",
        "via": by.via,
        "token": by.token,
        "action": action,
        "model": instance._meta.label_lower,
        "object_id": str(instance.pk),
        "label": (f"{instance}, proposed by {proposer}" if proposer else str(instance))[:200],
        "before": before,
        "after": after,
    }
    Change.objects.bulk_create([Change(organization_id=home, **about) for home in _organizations(instance)])


def _organizations(instance: Model) -> list[str | None]:
    """Where the change is to be seen; an account's, in each organization it belongs to."""
    label = instance._meta.label_lower
    if label == "groups.organization":
        return [str(instance.pk)]
    if label == "auth.user" or label in OF_ACCOUNTS:
        user_id = instance.pk if label == "auth.user" else instance.user_id  # type: ignore[attr-defined]
        found = Membership.objects.filter(user_id=user_id).values_list("organization_id", flat=True)
        return [*found] or [None]
    return [getattr(instance, "organization_id", None)]


def _stored(instance: Model, locked: bool = False) -> Values | None:
    """The row's columns as the database has them now."""
    names = [field.attname for field in _columns(instance)]
    mine = type(instance)._base_manager.filter(pk=instance.pk)
    rows = mine.select_for_update(of=("self",)) if locked else mine
    found: Values | None = rows.values(*names).first()
    return found


def shown(values: Values) -> Values:
    """The values as they may be looked at."""
    return {name: _shown_one(name, value) for name, value in values.items()}


def row_of(instance: Model) -> str:
    """The digest of the row as the database has it now."""
    return row_digest(_stored(instance), instance)


def row_digest(values: Values | None, instance: Any) -> str:
    """SHA-256 of a row's columns, and of what a model says is looked at with them; empty where there is no
    row.
    """
    if not values:
        return ""
    beside = instance.looked_at_with() if hasattr(instance, "looked_at_with") else {}
    return digest(json.loads(json.dumps({**values, **beside}, cls=DjangoJSONEncoder)))


def _shown_one(name: str, value: Any) -> Any:
    return HIDDEN if name in SECRET and value else value
