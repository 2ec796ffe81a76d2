"""Arranging things over the API: the permissions, the checks and the record are those of the admin."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.db.models import Model, ProtectedError, QuerySet, RestrictedError
from drf_spectacular.utils import OpenApiExample, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.fields import get_error_detail
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common.api.errors import Problem, invalid
from common.api.idempotency import KEYED, REUSED, once
from common.api.schema import documented
from common.api.views import ApiView, accepted

MOST_NAMED = 5  # of what needs a thing that cannot go
Refusals = dict[int, dict[str, str]]

NOT_ENTITLED = {403: {"NOT_ENTITLED": "You do not hold the permission this takes."}}
CONFLICT = {409: {"CONFLICT": "It collides with what somebody else has just done."}}
IN_USE = {409: {"IN_USE": "Other things need it; they go first."}}


class Arranged(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    """List, look, add. `accepts` is the body of an addition."""

    accepts: ClassVar[type[serializers.Serializer]]
    whole: ClassVar[bool] = False  # whether these hold for the whole organization

    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    def create(self, request: Any) -> Response:
        require_permission(request, "add", self._model)
        self.check_reach()
        asked = accepted(self.accepts, request)

        def act() -> Response:
            with transaction.atomic():
                thing = self.add(asked)
                note(request, thing, ADDITION)
            location = reverse(f"{self.basename}-detail", [thing.pk], request=request)
            return Response(self._shown(thing.pk), status=201, headers={"Location": location})

        return once(request, act)

    def add(self, asked: dict[str, Any]) -> Model:
        """A new row of what was asked for, saved."""
        thing = self._model(organization=self.request.organization, **self.resolved(asked))
        self.keep(thing)
        return thing

    def keep(self, thing: Model) -> None:
        """Save it, if it may be so. Raises ValidationError, Problem."""
        keep(thing)

    def resolved(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The model's fields, with rows where the body names them. Raises Problem."""
        return asked

    def check_reach(self) -> None:
        """What holds for the whole organization is arranged by members of all of it. Raises Problem."""
        if self.whole and self.request.membership.projects is not None:
            raise Problem(403, "NOT_ENTITLED", "This takes a member of the whole organization.")

    @property
    def _model(self) -> type[Model]:
        model: type[Model] = self.get_queryset().model
        return model

    def _shown(self, pk: str) -> Any:
        return self.serializer_class(self.get_queryset().get(pk=pk)).data


class Changeable(Arranged):
    """`changes` is the body of a change."""

    changes: ClassVar[type[serializers.Serializer]]

    def partial_update(self, request: Any, pk: str) -> Response:
        self.get_object_or_404(self.get_queryset(), pk=pk)
        require_permission(request, "change", self._model)
        self.check_reach()
        asked = accepted(self.changes, request, partial=True)
        with transaction.atomic():
            locked = self._model.objects.select_for_update(no_key=True)  # type: ignore[attr-defined]
            list(locked.filter(pk=pk).values_list("pk"))
            thing = self.get_object_or_404(self.get_queryset(), pk=pk)  # where it stands by now
            self.change(thing, asked)
            note(request, thing, CHANGE, sorted(asked))
        return Response(self._shown(pk))

    def change(self, thing: Model, asked: dict[str, Any]) -> None:
        """The row with what was asked for, saved."""
        for name, value in self.resolved(asked).items():
            setattr(thing, name, value)
        self.keep(thing)


class Removable(Arranged):  # what others need stays
    def destroy(self, request: Any, pk: str) -> Response:
        thing = self.get_object_or_404(self.get_queryset(), pk=pk)
        require_permission(request, "delete", self._model)
        self.check_reach()
        try:
            with transaction.atomic():
                note(request, thing, DELETION)
                thing.delete()
                connection.check_constraints()
        except (ProtectedError, RestrictedError) as error:
            raise Problem(409, "IN_USE", f"{thing} is needed: {_named(error)}.") from None
        except IntegrityError:
            raise Problem(409, "IN_USE", f"{thing} is needed by what somebody has just added.") from None
        return Response(status=204)


def _named(error: ProtectedError | RestrictedError) -> str:
    """The first few of what needs it, in words."""
    found = error.protected_objects if isinstance(error, ProtectedError) else error.restricted_objects
    said = sorted(f"{thing._meta.verbose_name} {thing}" for thing in found)
    return ", ".join(said[:MOST_NAMED]) + (f" and {len(said) - MOST_NAMED} more" if said[MOST_NAMED:] else "")


def arranged(
    one: str,
    many: str,
    *,
    add: dict[str, Any],
    change: dict[str, Any] | None = None,
    about: str = "",
    refusals: Mapping[int, dict[str, str]] | None = None,
) -> Callable[[type[Arranged]], type[Arranged]]:
    """Describes a view: `one` and `many` name its things, `add` and `change` are bodies as examples."""

    def describe(view: type[Arranged]) -> type[Arranged]:
        described = {
            "list": documented(many, description=about),
            "retrieve": documented(one),
            "create": _addition(view, one, add, dict(refusals or {})),
        }
        if issubclass(view, Changeable):
            described["partial_update"] = _change(view, one, change or {}, dict(refusals or {}))
        if issubclass(view, Removable):
            gone = {**NOT_ENTITLED, **IN_USE}
            described["destroy"] = documented(f"Remove: {one.lower()}", {204: None}, refusals=gone)
        return extend_schema_view(**described)(view)

    return describe


def _addition(view: type[Arranged], one: str, example: dict[str, Any], own: Refusals) -> Any:
    return documented(
        f"Add: {one.lower()}",
        view.serializer_class,
        status=201,
        request=view.accepts,
        parameters=[KEYED],
        refusals={**REUSED, **NOT_ENTITLED, **CONFLICT, **own},
        examples=[OpenApiExample("Add", value=example, request_only=True)],
    )


def _change(view: type[Changeable], one: str, example: dict[str, Any], own: Refusals) -> Any:
    return documented(
        f"Change: {one.lower()}",
        view.serializer_class,
        request=view.changes,
        refusals={**NOT_ENTITLED, **CONFLICT, **own},
        examples=[OpenApiExample("Change", value=example, request_only=True)],
    )


def require_permission(request: Any, verb: str, model: type[Model]) -> None:
    """Raises Problem where the asker lacks `add`, `change` or `delete` on the model."""
    require(request, f"{model._meta.app_label}.{verb}_{model._meta.model_name}")


def require(request: Any, permission: str) -> None:
    """Raises Problem where the asker lacks the permission, of the form `app.codename`.

    The role of their membership decides, also for superusers: who runs the installation does so on the pages.
    """
    if permission not in request.user.get_all_permissions():
        raise Problem(403, "NOT_ENTITLED", f"This takes the permission {permission}.")


def keep(thing: Model) -> None:
    """Check the row as the admin's form would, and save it. Raises ValidationError, Problem."""
    try:
        thing.full_clean()
        with transaction.atomic():
            thing.save()
            connection.check_constraints()  # what it names may be going at this moment
    except ValidationError as error:
        raise serializers.ValidationError(_by_field(error)) from None
    except IntegrityError:
        raise Problem(
            409, "CONFLICT", "Somebody else has just done the same, or removed what it names; look again."
        ) from None


def _by_field(error: ValidationError) -> dict[str, Any]:
    found = error.error_dict if hasattr(error, "error_dict") else {"__all__": error.error_list}
    return {
        "non_field_errors" if name == "__all__" else name: get_error_detail(ValidationError(errors))
        for name, errors in found.items()
    }


def referred(rows: QuerySet[Any], field: str, key: str | None, by: str = "pk") -> Any:
    """The row a field of the body names; None where it names none. Raises Problem 422."""
    if key is None:
        return None
    found = rows.filter(**{by: key}).first()
    if found is None:
        raise invalid(f"/{field}", "not_found", f"There is no {field} '{key}' here.")
    return found


def note(request: Any, thing: Model, flag: int, fields: list[str] | None = None) -> None:
    """The entry of the admin's history."""
    said = [{"changed": {"fields": fields}}] if fields else "Over the API."
    LogEntry.objects.log_actions(request.user.pk, [thing], flag, said, single_object=True)
