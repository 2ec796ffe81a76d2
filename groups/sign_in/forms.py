"""The forms of the doors: allauth's, at the pace of groups/sign_in/pace.py."""

from typing import Any

from allauth.account import forms as account
from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base import forms as factors
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from groups.sign_in import pace
from groups.sign_in.addresses import holders


class SignInForm(account.LoginForm):
    """Name and password. The adapter paces it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = pgettext_lazy("of an account", "Name")
        self.fields["password"].label = gettext_lazy("Password")


class RequestCodeForm(account.RequestLoginCodeForm):
    def clean_email(self) -> str:
        """allauth takes any account that somebody has given the address."""
        pace.paced_mail(context.request, self.cleaned_data["email"])
        address = str(super().clean_email())
        self._user = next(iter(holders(address)), None)
        return address


class EnterCodeForm(account.ConfirmLoginCodeForm):
    def clean_code(self) -> str:
        """Asked before allauth takes whoever enters the code for somebody who has shown the address."""
        code = str(super().clean_code())
        asked_for = context.request._login_stage
        if asked_for.login.user not in holders(asked_for.state["email"]):
            raise ValidationError(_("The account has given up the address. Nobody was signed in."))
        return code


class ResetForm(account.ResetPasswordForm):
    def clean_email(self) -> str:
        """As for a code."""
        pace.paced_mail(context.request, self.cleaned_data["email"])
        address = str(super().clean_email())
        self.users = holders(address)
        return address


class Paced:
    """A form that takes a code of a second factor."""

    def clean_code(self) -> str:
        own: Any = self
        name, look = own.user.get_username(), super().clean_code  # type: ignore[misc]
        code = str(pace.paced_factor(context.request, name, look))
        if not pace.is_first_use(name, code):
            raise get_adapter().validation_error("incorrect_code")
        return code


class FactorForm(Paced, factors.AuthenticateForm):
    """The second step of signing in."""


class ConfirmFactorForm(Paced, factors.ReauthenticateForm):
    """To confirm that whoever is signed in is there."""
