"""One's own tokens: look, issue, revoke. A token issues none that reaches further than itself."""

from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common.api.arranging import NOT_ENTITLED, note, require_permission
from common.api.errors import Problem, invalid
from common.api.idempotency import KEYED, REUSED, once
from common.api.schema import documented
from common.api.views import ApiView, accepted
from common.limits import TooMany
from groups import changes
from groups.api.inputs import TokenInput
from groups.api.serializers import IssuedSerializer, TokenSerializer
from groups.models import Connection, Token
from groups.scopes import DEFAULT

TOO_FAR = {
    "REACHES_TOO_FAR": "A token issues none with more scopes or a longer life than its own, and that of a "
    "connected program none at all."
}


FULL = {"TOO_MANY_TOKENS": "You have as many tokens as fit; revoke some first."}


class TokenView(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    area = "tokens"
    serializer_class = TokenSerializer
    queryset = Token.objects.none()
    lookup_value_regex = "tok_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Token]:
        return Token.objects.filter(organization=self.request.organization, user=self.request.user)

    @documented("Your tokens, the newest first")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A token of yours")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Issue a token",
        IssuedSerializer,
        status=201,
        request=TokenInput,
        parameters=[KEYED],
        refusals={**REUSED, 403: {**NOT_ENTITLED[403], **TOO_FAR}, 422: {**REUSED[422], **FULL}},
        description="`secret` is told this once and not kept, not even for the same Idempotency-Key.",
        examples=[
            OpenApiExample(
                "For an agent", value={"name": "ci", "scopes": ["runs:read", "runs:write"]}, request_only=True
            )
        ],
    )
    def create(self, request: Any) -> Response:
        require_permission(request, "add", Token)
        asked = accepted(TokenInput, request)
        asked = {**asked, **_within(request.auth, asked)}

        def act() -> Response:
            with transaction.atomic():
                token, secret = _issued(request, asked)
                note(request, token, ADDITION)
            location = reverse("api-token-detail", [token.pk], request=request)
            shown = {**TokenSerializer(self.get_queryset().get(pk=token.pk)).data, "secret": secret}
            headers = {"Location": location, "Cache-Control": "no-store"}
            return Response(shown, status=201, headers=headers)

        return once(request, act, secret=("secret",))

    @documented(
        "Revoke a token of yours",
        TokenSerializer,
        request=None,
        description="It stops working at once; doing it again changes nothing.",
    )
    @action(detail=True, methods=["post"])
    def revoke(self, request: Any, pk: str) -> Response:
        token = self.get_object_or_404(self.get_queryset(), pk=pk)
        if changes.update(self.get_queryset().filter(pk=pk, revoked_at=None), revoked_at=Now()):
            note(request, token, CHANGE, ["revoked_at"])
        return Response(TokenSerializer(self.get_queryset().get(pk=pk)).data)


def _issued(request: Any, asked: dict[str, Any]) -> tuple[Token, str]:
    """Raises Problem."""
    try:
        return Token.objects.issue(request.organization, request.user, **asked)
    except TooMany as refused:
        raise Problem(422, "TOO_MANY_TOKENS", refused.messages[0]) from None


def _within(asker: Token | None, asked: dict[str, Any]) -> dict[str, Any]:
    """Scopes and end of the new token, inside those of the token that asks. Raises Problem."""
    scopes, ends = asked.get("scopes"), asked["expires_at"]
    if ends is not None and ends <= timezone.now():
        raise invalid("/expires_at", "invalid", "This time is over.")
    if asker is None:
        return {"scopes": scopes}
    if Connection.objects.filter(token=asker).exists():  # it names addresses, and ends with the connection
        raise Problem(403, "REACHES_TOO_FAR", "A connected program issues no tokens.")
    scopes = [name for name in DEFAULT if name in asker.scopes] if scopes is None else scopes
    longer = asker.expires_at and (ends or asker.expires_at) > asker.expires_at
    if set(scopes) - set(asker.scopes) or longer:
        raise Problem(403, "REACHES_TOO_FAR", TOO_FAR["REACHES_TOO_FAR"])
    if not scopes:
        raise invalid("/scopes", "required", "Name the scopes: the token that asks reads nothing.")
    return {"scopes": scopes, "expires_at": ends or asker.expires_at}
