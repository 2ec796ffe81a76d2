"""Writes the record of changes (models/changes.py), whichever door they come by.

Every `save` and `delete` of a model named here is recorded, by Django's signals, in the same transaction.
`update` of a queryset sends none: it goes through `update` here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model, QuerySet
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save

from groups.models import Change, ChangeAction, Door, Membership

AUDITED = (
    *("groups.Organization", "groups.Project", "groups.Membership", "groups.CustomRole", "groups.Token"),
    "groups.IdentityProvider",
    *("groups.Role", "groups.AgentInstance", "groups.Group", "groups.GroupMember"),
    *("policy.Capability", "policy.ToolBinding", "policy.ToolDeclaration", "policy.CapabilityRule"),
    "policy.OutsideEntity",
    *("policy.Grant", "runs.McpServer", "runs.McpTool", "runs.WebhookEndpoint", "runs.Schedule"),
    *("runs.ModelKey", "runs.ModelPrice", "runs.TriedModel", "runs.Channel", "groups.Absence"),
    "auth.User",
    *("mfa.Authenticator", "account.EmailAddress", "socialaccount.SocialAccount"),
)
OF_ACCOUNTS = {"mfa.authenticator", "account.emailaddress", "socialaccount.socialaccount"}
SECRET = {
    *("password", "secret_hash", "sealed_headers", "sealed_secret", "sealed_previous", "sealed_key"),
    *("sealed_address", "data"),  # the latter of a second factor
    "preferences",  # of a person, whose agent alone is told them
}
IGNORED = {
    *("created_at", "catalog_version", "last_used_at", "last_login", "date_joined"),
    *("next_at", "started", "checked_at", "failing_since", "changed_at", "definition", "digest", "problem"),
    *("told_at", "extra_data"),
}
HIDDEN, HIDDEN_ANEW = "(secret)", "(another secret)"
BEFORE = "_deputy_before"

Values = dict[str, Any]


@dataclass(frozen=True)
class By:
    """Who makes changes now, and by which door."""

    user: Any = None
    via: Door = Door.SYSTEM
    token: str = ""


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
        of_these = rows.model._base_manager.filter(pk__in=list(before))
        count = int(of_these.update(**columns))
        for row in of_these:
            _note_difference(row, before[row.pk], _stored(row))
    return count


def _before_save(sender: Any, instance: Model, raw: bool = False, **more: Any) -> None:
    if not raw:
        setattr(instance, BEFORE, None if instance._state.adding else _stored(instance))


def _after_save(sender: Any, instance: Model, created: bool, raw: bool = False, **more: Any) -> None:
    if raw:
        return
    before, after = getattr(instance, BEFORE, None), _stored(instance)
    if after is None:
        return
    if before is None:
        _note(instance, ChangeAction.ADDED, {}, _shown(after))
    else:
        _note_difference(instance, before, after)


def _before_delete(sender: Any, instance: Model, **more: Any) -> None:
    setattr(instance, BEFORE, _stored(instance))


def _after_delete(sender: Any, instance: Model, **more: Any) -> None:
    _note(instance, ChangeAction.REMOVED, _shown(getattr(instance, BEFORE, None) or {}), {})


def _note_difference(instance: Model, before: Values | None, after: Values | None) -> None:
    before, after = before or {}, after or {}
    differ = [name for name in after if before.get(name) != after[name]]
    if differ:
        was = {name: _shown_one(name, before.get(name)) for name in differ}
        now = {name: HIDDEN_ANEW if name in SECRET else after[name] for name in differ}
        _note(instance, ChangeAction.CHANGED, was, now)


def _note(instance: Model, action: ChangeAction, before: Values, after: Values) -> None:
    source = _by.get()
    by = source() if source else By()
    user = by.user if getattr(by.user, "pk", None) else None
    about = {
        "user": user,
        "by": user.get_username() if user else "",
        "via": by.via,
        "token": by.token,
        "action": action,
        "model": instance._meta.label_lower,
        "object_id": str(instance.pk),
        "label": str(instance)[:200],
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


def _stored(instance: Model) -> Values | None:
    """The row's columns as the database has them now."""
    names = [field.attname for field in instance._meta.concrete_fields if field.name not in IGNORED]
    found: Values | None = type(instance)._base_manager.filter(pk=instance.pk).values(*names).first()
    return found


def _shown(values: Values) -> Values:
    return {name: _shown_one(name, value) for name, value in values.items()}


def _shown_one(name: str, value: Any) -> Any:
    return HIDDEN if name in SECRET and value else value
