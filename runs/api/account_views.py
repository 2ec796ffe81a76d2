"""One's own accounts at servers that are asked in people's own names: look, and end."""

from typing import Any

from django.http import Http404
from drf_spectacular.helpers import forced_singular_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.schema import documented
from common.api.views import ApiView, only
from common.links import link
from runs.actions import accounts
from runs.models import ConnectedAccount

WAYS = ("account", "sign_in")
NONE = {404: {"NOT_FOUND": "There is no such server, or nothing of yours is connected there."}}


class AccountServerSerializer(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()


class AccountSerializer(serializers.Serializer):
    server = AccountServerSerializer(help_text="The MCP server.")
    way = serializers.SerializerMethodField(
        help_text="`account`: you connect one. `sign_in`: your sign-in at `provider` is exchanged."
    )
    provider = serializers.SerializerMethodField(
        help_text="The name of where you sign in; null where you connect an account."
    )
    connected = serializers.BooleanField(help_text="Calls go to the server in your name.")
    declined = serializers.BooleanField(help_text="You have ended it; only your page connects it again.")
    scopes = serializers.ListField(child=serializers.CharField(), help_text="What has been granted.")
    since = serializers.DateTimeField(
        allow_null=True, help_text="When it was granted first; null while nothing is."
    )
    page = serializers.SerializerMethodField(help_text="Where you connect it, in a browser.")

    def get_way(self, one: accounts.Listed) -> str:
        return WAYS[bool(one.server.exchange_at)]

    def get_provider(self, one: accounts.Listed) -> str | None:
        return one.provider.name if one.provider else None

    def get_page(self, one: accounts.Listed) -> str:
        return link("web:account", one.server.pk)


class AccountListSerializer(serializers.Serializer):
    results = AccountSerializer(many=True)


class AccountView(ApiView):
    area = "accounts"
    serializer_class = AccountListSerializer
    queryset = ConnectedAccount.objects.none()
    pagination_class = None
    filter_backends = ()
    lookup_value_regex = "mcs_[0-9a-z]{26}"

    @documented(
        "Your accounts at servers that are asked in people's own names",
        forced_singular_serializer(AccountListSerializer),
        description="Every such server of the organization. Nothing of a token is ever told.",
    )
    def list(self, request: Any) -> Response:
        only(request)
        found = accounts.listed(request.user, request.organization.pk)
        return Response({"results": AccountSerializer(found, many=True).data})

    @documented(
        "End your account at a server",
        {204: None},
        request=None,
        refusals=NONE,
        description="`id` is the server's. It is not used any more; calls that need it wait for you.",
    )
    @action(detail=True, methods=["post"])
    def disconnect(self, request: Any, pk: str) -> Response:
        server = accounts.ending(request.user, request.organization.pk, pk)
        if server is None:
            raise Http404
        accounts.disconnect(server, request.user)
        return Response(status=204)
