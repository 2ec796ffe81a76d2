"""What Slack sends back: a button that was pressed, or the command by which somebody links their account.

Every request has to be signed with the app's secret. The account that pressed has to be linked to a person,
by a code that their own page shows; it decides as that person by the door `chat`, which suffices only for
what any one decider may decide.
"""

import json
from typing import Any

from django.core import signing
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.request import RawPostDataException
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from common import sealed
from common.characters import possible
from common.db import row
from groups import readers
from groups.actors import Actor, Via, active_membership
from runs.actions import decide
from runs.actions.decide import DecisionRefused
from runs.gate import chats
from runs.models import Approval, Channel, ChatAccount
from runs.notices import slack
from runs.notices.delivery import language_of
from runs.queue import put

MOST_BYTES = 100_000
MOST_ACCOUNT = 100  # characters of an account's id
CODE_SECONDS = 600
SALT = "deputy.chat.link"
NOT_VOUCHED_FOR = gettext_lazy(
    "Whoever entered this app's secret may not arrange it any more: an administrator has to enter one anew."
)
NOT_LINKED = gettext_lazy(
    "Link your account first: open “How I am told” in Deputy and type the command it shows here."
)


def code(channel: Channel, user: Any) -> str:
    """What somebody types in the chat to link their account there to theirs here."""
    return signing.dumps([channel.pk, user.pk], salt=SALT)


@csrf_exempt
@require_POST
def slack_hook(request: HttpRequest, channel_id: str) -> HttpResponse:
    """404 for everything that the app of this channel has not signed."""
    channel = Channel.objects.filter(pk=channel_id, kind="slack", user=None, enabled=True).first()
    body = _body(request)
    if channel is None or body is None or len(body) > MOST_BYTES:
        raise Http404
    try:
        address = channel.address
    except sealed.Unreadable:
        raise Http404 from None
    (now,) = row("SELECT EXTRACT(epoch FROM clock_timestamp())::float8")
    if not slack.signed_by(address, request.headers, body, now):
        raise Http404
    form = QueryDict(body, encoding="utf-8")
    if "command" in form:
        said = link(channel, form.get("user_id", ""), form.get("text", ""))
        return JsonResponse({"response_type": "ephemeral", "text": said})
    _pressed(channel, form.get("payload", ""))
    return HttpResponse()


def _body(request: HttpRequest) -> bytes | None:
    """As it was sent, never more than BODY_BYTES; None of a form with files, which is read piece by piece."""
    try:
        return request.body
    except RawPostDataException:
        return None


def link(channel: Channel, account: str, text: str) -> str:
    """Link the chat's account to the person whose code this is; returns what to say."""
    with translation.override(language_of(channel)):
        return _linked(channel, account, text)


def _linked(channel: Channel, account: str, text: str) -> str:
    try:
        channel_id, user_id = signing.loads(text.strip().removeprefix("link").strip(), salt=SALT,
                                            max_age=CODE_SECONDS)  # fmt: skip
    except signing.BadSignature:
        return _("This code is not valid, or too old. Take a new one from “How I am told” in Deputy.")
    if channel_id != channel.pk or not 0 < len(account) <= MOST_ACCOUNT:
        return _("This code is for another channel.")
    with transaction.atomic():
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)  # an account is one person's
        ChatAccount.objects.filter(channel=channel, account=account).exclude(user_id=user_id).delete()
        ChatAccount.objects.update_or_create(channel=channel, user_id=user_id, defaults={"account": account})
    return _("Your account is linked: what you press here is decided in your name.")


def _pressed(channel: Channel, payload: str) -> None:
    """Decide what the button says, and have the outcome said to whoever pressed it."""
    try:
        said = json.loads(payload)
        (action,) = said["actions"]
        account, answer_to = str(said["user"]["id"]), str(said.get("response_url", ""))
        name, value = str(action["action_id"]), json.loads(action.get("value") or "{}")
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if name not in (slack.APPROVE, slack.REJECT) or not isinstance(value, dict):
        return
    if not all(
        map(possible, (account, answer_to, *map(str, value.values())))
    ):  # JSON writes what no database keeps
        return
    outcome = pressed(channel, account, name == slack.APPROVE, value)
    if answer_to:
        put.enqueue_task("answer_chat", answer_to, outcome, turn=put.for_people(channel.organization_id))


def pressed(channel: Channel, account: str, approve: bool, value: dict[str, Any]) -> str:
    """Take the decision; returns what came of it, in the language of whoever pressed."""
    linked = channel.accounts.filter(account=account).select_related("user").first()
    refused = NOT_LINKED if linked is None else "" if chats.is_vouched_for(channel) else NOT_VOUCHED_FOR
    if linked is None or refused:
        with translation.override(language_of(channel)):
            return str(refused)
    with translation.override(readers.language_of(linked.user_id)):
        return _decided(channel, linked, approve, value)


def _decided(channel: Channel, linked: ChatAccount, approve: bool, value: dict[str, Any]) -> str:
    approval = Approval.objects.filter(
        pk=str(value.get("approval", "")), organization_id=channel.organization_id
    ).select_related("run")
    found = approval.first()
    if found is None or channel.project_id not in (None, found.run.project_id):
        return _("There is no such approval.")
    actor = Actor(
        linked.user,
        active_membership(linked.user, channel.organization_id),
        Via.CHAT,
        frozenset({"approvals:decide"}),
        chat=chats.name_of(linked),
    )
    digest = str(value.get("digest", ""))
    try:
        if approve:
            decided = decide.approve(found.pk, actor, digest)
        else:
            decided = decide.reject(found.pk, actor, digest, "Rejected in Slack.")
    except DecisionRefused as refused:
        return _(refused.message)
    except Approval.DoesNotExist:
        return _("There is no such approval.")
    status = decided.get_status_display()
    return _("Decided: {status} by {who}.").format(status=status, who=linked.user)
