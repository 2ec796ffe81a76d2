"""Mail to those who manage webhooks: that one was switched off, and why."""

import logging

from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.db.models import Q

from common.api import throttles
from common.db import let_go
from common.links import link
from groups.member_permissions import holding
from groups.models import Membership
from groups.models.organizations import MembershipKind
from runs.models import WebhookEndpoint

logger = logging.getLogger(__name__)

MOST, SECONDS = 20, 3600  # mails about an organization's webhooks
PERMISSION = "runs.change_webhookendpoint"


def switched_off(endpoint: WebhookEndpoint) -> None:
    """One mail to all who may switch it on again and have an address; few of an organization, since whoever
    has a webhook switched off can switch it on and have it fail again.
    """
    to = addresses(endpoint)
    if not to:
        return
    if throttles.take(f"webhook mails {endpoint.organization_id}", MOST, SECONDS):
        logger.warning("no mail about %s: there were too many in the organization", endpoint.pk)
        return
    body = (
        f"{endpoint.url}\n{endpoint.disabled_because}\n"
        "Nothing is sent there until somebody switches it on again:\n"
        f"{link('admin:runs_webhookendpoint_change', endpoint.pk)}\n"
    )
    mail = EmailMessage(f"Deputy: the webhook {endpoint} was switched off", body, bcc=to)
    let_go()
    try:
        mail.send()
    except OSError as error:
        logger.warning("could not write about %s: %s", endpoint.pk, type(error).__name__)


def addresses(endpoint: WebhookEndpoint) -> list[str]:
    members = Membership.objects.filter(
        Q(projects=None) | Q(projects__contains=[endpoint.project_id or ""]),
        holding(PERMISSION),
        organization_id=endpoint.organization_id,
        active=True,
        kind=MembershipKind.HUMAN,
    )
    able = get_user_model().objects.filter(pk__in=members.values("user_id"), is_active=True).exclude(email="")
    return sorted(set(able.values_list("email", flat=True)))
