"""One's own e-mail addresses: allauth's page, by which nobody has Deputy write to strangers."""

from contextlib import suppress
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from allauth.account.views import ConfirmEmailView, EmailView
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.views import redirect_to_login
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from groups.sign_in import pace
from groups.sign_in.addresses import entered


class Addresses(EmailView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Deputy's mails to somebody hold words of their runs as well, so they go to an address that is shown
        to be theirs. allauth takes any as long as none is.
        """
        address = request.POST.get("email", "")
        if "action_primary" in request.POST and not self._is_proven(address):
            get_adapter().add_message(
                request, messages.ERROR, "account/messages/unverified_primary_email.txt"
            )
            return self._shown(request)
        if "action_add" in request.POST or "action_send" in request.POST:
            try:
                pace.paced_own_mail(request, address)
            except pace.TooMany as refused:
                messages.error(request, refused.messages[0])
                return self._shown(request)
        # one change at a time: what is removed is not made the account's meanwhile
        with transaction.atomic():
            user: Any = request.user
            get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)
            user.refresh_from_db(fields=["email"])
            answer: HttpResponse = super().post(request, *args, **kwargs)
        return answer

    def _is_proven(self, address: str) -> bool:
        return any(one.verified for one in entered(self.request.user, address))

    def _shown(self, request: HttpRequest) -> HttpResponse:
        answer: HttpResponse = self.get(request)
        return answer


class Confirmed(ConfirmEmailView):
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """The link counts for whoever is signed in to the account that has named the address. Followed by its
        owner alone, who may not know whose mail it is, it would give the address to somebody else's account.
        """
        with suppress(Http404):
            account = self.get_object().email_address.user
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if request.user != account:
                messages.error(request, _("This link is another account’s. Nothing was changed."))
                return redirect("account_email")
            raise_if_reauthentication_required(request, app="allauth.account")
        answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return answer
