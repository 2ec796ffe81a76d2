"""Push notification configs: webhooks of one task, which its client arranges and its user alone sees."""

import json
import re
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from common.outbound import OutboundError, check_headers
from common.sealed import seal
from policy.authority import Verb, may
from runs.a2a.agents import Client
from runs.a2a.errors import invalid, no_task
from runs.a2a.messages import an_id, an_object
from runs.actions.webhooks import give_secret
from runs.api.refusals import as_problems
from runs.models import A2ATask, WebhookEndpoint
from runs.models.choices import TERMINAL
from runs.models.webhooks import TASK_UPDATED

JSON = dict[str, Any]

MOST = 5  # of a task, for each user
LONGEST = 4000  # characters of a token or of credentials
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9._~+-]{0,39}")
TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - the header's name


def create(client: Client, task: A2ATask, asked: JSON) -> JSON:
    """Have this task's updates sent; a config of the same id is replaced. Raises A2AError, Problem."""
    with as_problems():
        may(client.actor, Verb.STEER, task.run)
    if named := an_id(asked, "id"):
        configs(client, task).filter(description=named).delete()
    if configs(client, task).count() >= MOST:
        raise invalid(f"A task has at most {MOST} push notification configs; delete one.")
    endpoint = WebhookEndpoint(
        organization_id=task.organization_id,
        project_id=task.project_id,
        run=task.run,
        token_id=client.actor.token_id,
        url=_text(asked, "url"),
        description=named,
        events=[TASK_UPDATED],
        sealed_headers=seal(json.dumps(_headers(asked))),
        enabled=task.run.status not in TERMINAL,
    )
    give_secret(endpoint)
    try:
        endpoint.clean_fields(exclude=["events"])  # whose choices are those of the webhooks that people add
        endpoint.clean()
    except ValidationError as error:
        raise invalid(" ".join(error.messages)) from None
    endpoint.save()
    return shown(endpoint)


def _headers(asked: JSON) -> dict[str, str]:
    """The headers that the receiver knows its sender by. Raises A2AError."""
    found = {}
    if token := _text(asked, "token", required=False):
        found[TOKEN_HEADER] = token
    by = an_object(asked, "authentication", "pushNotificationConfig")
    if by:
        scheme, credentials = _text(by, "scheme"), _text(by, "credentials", required=False)
        if not SCHEME.fullmatch(scheme):
            raise invalid("authentication.scheme is a name such as Bearer.")
        if credentials:
            found["Authorization"] = f"{scheme} {credentials}"
    try:
        check_headers(found)
    except OutboundError as error:
        raise invalid(error.message) from None
    return found


def _text(asked: JSON, name: str, required: bool = True) -> str:
    value = asked.get(name)
    if value in (None, "") and not required:
        return ""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST or not value.isprintable():
        raise invalid(f"{name} is a text of 1 to {LONGEST} printable characters.")
    return value


def configs(client: Client, task: A2ATask) -> QuerySet[WebhookEndpoint]:
    """Those that the client's user arranged for the task."""
    mine = WebhookEndpoint.objects.filter(run=task.run, token__user=client.actor.user)
    return mine.order_by("id")


def _named(client: Client, task: A2ATask, id: Any) -> QuerySet[WebhookEndpoint]:
    """The config of this id, the client's own or Deputy's."""
    name = id if isinstance(id, str) and id.isprintable() else ""
    return configs(client, task).filter(Q(pk=name) | Q(description=name, description__gt=""))


def find(client: Client, task: A2ATask, id: Any) -> WebhookEndpoint:
    found = _named(client, task, id).first()
    if found is None:
        raise no_task()
    return found


def delete(client: Client, task: A2ATask, id: Any) -> None:
    """Does nothing where there is none: it is gone, as was asked. Raises Problem."""
    with as_problems():
        may(client.actor, Verb.STEER, task.run)
    for endpoint in _named(client, task, id):
        endpoint.delete()


def shown(endpoint: WebhookEndpoint) -> JSON:
    """A TaskPushNotificationConfig. The token and the credentials are not told again."""
    return {"id": endpoint.description or endpoint.pk, "taskId": endpoint.run_id, "url": endpoint.url}
