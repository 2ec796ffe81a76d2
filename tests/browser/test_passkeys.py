"""A passkey, with Chromium's virtual authenticator: added under My access, then it signs in and confirms."""

from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.urls import reverse

from groups.actors import CONFIRMED_AT
from tests.admin_world import PASSWORD

from .world import acme, member

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def with_authenticator(page: Any) -> Any:
    """A page whose browser has an authenticator; what steers it."""
    steer = page.context.new_cdp_session(page)
    steer.send("WebAuthn.enable")
    steer.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    return steer


def test_a_passkey_is_added_and_then_signs_in_and_confirms(browser: Any, server: str, settings: Any) -> None:
    settings.MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = True
    ada = member(acme(), "ada")
    there = server.replace("127.0.0.1", "localhost")  # no address is a name passkeys are made for
    page = browser.new_context().new_page()
    page.set_default_timeout(60_000)
    with_authenticator(page)
    page.goto(f"{there}/sign-in/")
    page.fill("input[name=login]", "ada")
    page.fill("input[name=password]", PASSWORD)
    page.click("button.primary")
    page.goto(there + reverse("mfa_add_webauthn"))
    page.get_by_label("Passwordless").check()
    page.click("#mfa_webauthn_add")
    page.wait_for_url("**/factors/**")
    assert ada.authenticator_set.filter(type="webauthn").exists()

    page.context.clear_cookies()
    page.goto(f"{there}/sign-in/")
    page.click("#passkey_login")
    page.wait_for_url(f"{there}/")
    (session,) = ada.usersession_set.order_by("-pk")[:1]
    unconfirmed = SessionStore(session.session_key)
    unconfirmed[CONFIRMED_AT] = 0
    unconfirmed.save()
    page.goto(there + reverse("mfa_reauthenticate_webauthn"))
    page.click("#mfa_webauthn_reauthenticate")
    page.wait_for_url(f"{there}/")
    page.context.close()
    assert SessionStore(session.session_key)[CONFIRMED_AT] > 0
