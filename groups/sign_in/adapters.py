"""What allauth asks Deputy: who may have an account, at what pace, what confirms a person, how mail goes."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.core import context
from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from rest_framework.throttling import BaseThrottle

from common import mail, sealed
from groups import actors
from groups.models.providers import INSTALLATION
from groups.sign_in import pace, sessions
from groups.sign_in.addresses import is_same
from groups.sign_in.providers import ways


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Administrators make accounts, or a provider of identities does."""
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """The user of a name and a password, or None. Raises pace.TooMany."""
        name = str(credentials.get("username") or "")
        return pace.paced(request, name, lambda: authenticate(request, **credentials))

    def can_delete_email(self, email_address: Any) -> bool:
        """Not the one that Deputy writes to: allauth would take another for it, were it only typed in."""
        return not is_same(email_address.email, email_address.user.email)

    def set_password(self, user: Any, password: str) -> None:
        """The password alone: what an administrator takes from the account meanwhile stays taken."""
        user.set_password(password)
        user.save(update_fields=["password"])

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Whether the account may be changed without confirming first: the rule for decisions, too.

        Raises ReauthenticationRequired for somebody who has nothing here to confirm with: allauth itself
        would take them for confirmed.
        """
        if actors.is_confirmed(context.request):
            return False
        if not get_reauthentication_flows(context.request.user):
            raise ReauthenticationRequired
        return True

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """At the provider first, for who came by one."""
        found: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        how = sessions.through(context.request.session, user)
        if how is None:
            return found
        address = reverse("oidc_confirm", args=[how.provider])
        return [{"id": "provider", "description": _("At your provider"), "url": address}, *found]

    def pre_login(self, request: HttpRequest, user: Any, **more: Any) -> Any:
        """A page in place of the sign-in where the installation takes none but its provider's. By which
        provider an earlier sign-in was, that ended on the way, says nothing of this one.
        """
        if not sessions.is_entering(request):
            sessions.forget_provider(request)
        if settings.OIDC and settings.OIDC["only"] and not user.is_superuser:
            how = sessions.through(request.session, user)
            if how is None or how.provider != INSTALLATION:
                return render(request, "account/only_provider.html", {"ways": ways(request)}, status=403)
        return super().pre_login(request, user, **more)

    def get_client_ip(self, request: HttpRequest) -> str:
        return str(BaseThrottle().get_ident(request))

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Sent after the answer: how long it takes would tell whether an account has the address."""
        about = {**context, "brand": "Deputy", "site": settings.PUBLIC_URL}
        mail.send_soon(self.render_mail(template_prefix, email, about))

    def get_reset_password_from_key_url(self, key: str) -> str:
        return _public(super().get_reset_password_from_key_url(key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        return _public(super().get_email_confirmation_url(request, emailconfirmation))


def _public(url: str) -> str:
    """The same page where people reach Deputy: a request's Host header writes no links in mail."""
    path = "/" + url.split("://", 1)[-1].partition("/")[2]
    return settings.PUBLIC_URL.rstrip("/") + path


class FactorAdapter(DefaultMFAAdapter):
    """The secrets of second factors are encrypted in the database."""

    def encrypt(self, text: str) -> str:
        return sealed.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return sealed.unseal(encrypted_text)
