"""Accounts. Only superusers change them: the whole deployment is concerned."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from groups import accounts, changes
from groups.models import Membership
from groups.sign_in import addresses

from .addresses import Addressed
from .locked import Locked
from .tenancy import sight

User = get_user_model()
for model in (User, Group):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class SuperusersOnly:
    """Others may look, with the permission to; nothing more."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> Any:
        raise Http404


@admin.register(User)
class UserAdmin(SuperusersOnly, Locked, Addressed, DjangoUserAdmin, ModelAdmin):
    """Everyone sees themselves and those who share an organization with them. Whoever changes an account can
    sign in with it, and so confirms first that it is them.
    """

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_per_page = 50
    list_filter = ("is_staff", "is_superuser", "is_active")
    filter_horizontal = ()
    # what somebody may do in an organization is the role of their membership there
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (gettext_lazy("Personal info"), {"fields": ("first_name", "last_name", "email")}),
        (gettext_lazy("Permissions"), {"fields": ("is_active", "is_staff", "is_superuser")}),
        (gettext_lazy("Important dates"), {"fields": ("last_login", "date_joined")}),
    )
    empty_message = gettext_lazy("No account yet.")
    actions = ("remove_factors",)

    @admin.action(description=gettext_lazy("Remove second factors and end sessions"), permissions=["change"])
    def remove_factors(self, request: HttpRequest, queryset: Any) -> None:
        """For who has lost them. For an hour the account then decides nothing that takes a person."""
        changes.confirmed_first(accounts.SIGNS_IN)
        for user in queryset:
            removed = accounts.remove_factors(user)
            self.log_change(request, user, [{"changed": {"fields": ["second factors"]}}])
            said = _("{name}: {number} second factors removed; the sessions have ended.")
            messages.success(request, said.format(name=user.get_username(), number=removed))

    @transaction.atomic  # the form of an account is saved in one, that of its password is not
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        if request.method == "POST":
            changes.confirmed_first(accounts.SIGNS_IN)
        return super().user_change_password(request, id, form_url)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """An account that is given another address has given up the one before, shown or not."""
        changes.confirmed_first(accounts.SIGNS_IN)
        if change and "email" in form.changed_data:
            for row in addresses.entered(obj, form.initial["email"]):
                row.delete()
        super().save_model(request, obj, form, change)

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        seen = sight(request)
        if seen.everything:
            return rows
        members = Membership.objects.filter(organization_id__in=seen.organizations)
        return rows.filter(Q(pk=request.user.pk) | Q(pk__in=members.values("user_id")))
