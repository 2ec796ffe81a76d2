"""The page that asks for a second factor."""

from allauth.account.internal.stagekit import clear_login
from allauth.account.stages import LoginStageController
from allauth.mfa.base import views
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.utils import is_mfa_enabled
from django.http import HttpRequest, HttpResponseBase

FACTORS = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]


def authenticate(request: HttpRequest) -> HttpResponseBase:
    """allauth's page. A sign-in begun with factors that have been removed since ends here: the sign-in page
    would send it back.
    """
    if not request.user.is_authenticated:
        stage = LoginStageController.enter(request, AuthenticateStage.key)
        if stage and not is_mfa_enabled(stage.login.user, FACTORS):
            clear_login(request)
    answer: HttpResponseBase = views.authenticate(request)
    return answer
