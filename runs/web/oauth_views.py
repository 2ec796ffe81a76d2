"""Where somebody allows a program to act in their name, and what programs read to get there."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.admin.models import ADDITION
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from oauth2_provider.models import get_application_model
from oauth2_provider.views import AuthorizationView, OAuthProtectedResourceMetadataView

from common import csp
from common.limits import TooMany
from groups import oauth
from groups.scopes import SCOPES
from runs.web import doing, settings_views
from runs.web.access import member


@method_decorator(member, name="dispatch")
class Authorize(AuthorizationView):
    """The page on which somebody allows it, for the organization they are in."""

    template_name = "web/authorize.html"

    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if not all(oauth.is_resource(each) for each in request.GET.getlist("resource")):
            return self._refuse(_("The program asks for a token for another server."))
        if request.GET.get("code_challenge_method") != "S256":
            return self._refuse(_("The program has to use PKCE with S256."))
        if request.GET.get("approval_prompt"):
            return self._refuse(_("The program asks not to ask you."))
        return self._to_the_program(super().get(request, *args, **kwargs))

    def form_valid(self, form: Any) -> HttpResponse:
        said = form.cleaned_data
        if not get_application_model().objects.filter(client_id=said["client_id"]).exists():
            return self._refuse(_("There is no such program."))
        if not all(oauth.is_resource(each) for each in (said.get("resource") or "").split()):
            return self._refuse(_("The program asks for a token for another server."))
        if not settings_views.may_issue(self.request):
            return self._refuse(_("You may not issue tokens: ask an administrator."))
        moved = self.request.POST.get("organization") != self.request.membership.organization_id
        if said.get("allow") and moved:  # in another tab, since the page was shown
            return self._refuse(_("You have changed to another organization meanwhile: begin again."))
        try:
            return self._answered(form, said)
        except TooMany as refused:
            return self._refuse(refused.messages[0])
        except oauth.ConnectedElsewhere:
            return self._refuse(
                _("It acts for you in another organization, where you have not signed in: end that first.")
            )

    def form_invalid(self, form: Any) -> HttpResponse:
        return self._refuse(_("The page was sent without what the program asks for: begin again there."))

    def _answered(self, form: Any, said: dict[str, Any]) -> HttpResponse:
        """The way back to the program. Raises TooMany and ConnectedElsewhere."""
        with transaction.atomic():
            if said.get("allow"):
                self._connect(said)
            answer: HttpResponse = super().form_valid(form)
            if "code=" not in answer.headers.get("Location", ""):
                transaction.set_rollback(True)  # nothing was handed to the program
        return answer

    def _connect(self, said: dict[str, Any]) -> None:
        """Keep what was allowed, before the code is made: what there was before ends with it."""
        application = get_application_model().objects.get(client_id=said["client_id"])
        scopes = [scope for scope in said["scope"].split() if scope in SCOPES]
        membership = self.request.membership
        reached = {each.organization_id for each in self.request.memberships}
        token = oauth.connect(application, self.request.user, membership.organization, scopes, reached)
        doing.record(self.request, token, ADDITION)

    def _refuse(self, words: str) -> HttpResponse:
        answer: HttpResponse = self.render_to_response({"refused": words}, status=400)
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().get_context_data(**kwargs)
        application = found.get("application")
        if application is not None:
            found["host"] = urlsplit(application.client_id).hostname or application.client_id
            found["returns_to"] = urlsplit(found["redirect_uri"]).netloc
            found["asked"] = {name: _(SCOPES[name]) for name in found["scopes"]}
            found["membership"] = self.request.membership
        return found

    def _to_the_program(self, answer: Any) -> HttpResponse:
        """The form's answer leads to the program, which the page's policy has to allow."""
        context = getattr(answer, "context_data", None) or {}
        if to := context.get("redirect_uri"):
            parts = urlsplit(to)
            answer.headers[csp.HEADER] = csp.with_forms_to(f"{parts.scheme}://{parts.netloc}")
        return answer  # type: ignore[no-any-return]


class Resource(OAuthProtectedResourceMetadataView):
    """RFC 9728: for MCP and the API, and what is below them."""

    def get(
        self, request: HttpRequest, *args: Any, resource_path: str = "mcp", **kwargs: Any
    ) -> HttpResponse:
        self.resource = f"{settings.PUBLIC_URL.rstrip('/')}/{resource_path.rstrip('/')}"
        if not oauth.is_resource(self.resource):
            raise Http404
        return super().get(request, *args, **kwargs)  # type: ignore[no-any-return]

    def get_resource(self, request: HttpRequest) -> str:
        return self.resource

    def get_authorization_servers(self, request: HttpRequest) -> list[str]:
        return [settings.PUBLIC_URL.rstrip("/")]
