"""Give a webhook a secret, and another one."""

from datetime import timedelta

from django.db.models.functions import Now

from common.sealed import seal
from runs.models import WebhookEndpoint
from runs.webhooks.signing import new_secret

BOTH_SIGN = timedelta(hours=24)  # after a rotation, so that receivers can change over


def give_secret(endpoint: WebhookEndpoint) -> str:
    """A new webhook's secret; not saved, and told this once."""
    secret = new_secret()
    endpoint.sealed_secret = seal(secret)
    return secret


def rotate(endpoint: WebhookEndpoint) -> str:
    """A new secret, told this once. For a day messages carry a signature of the old one too."""
    endpoint.sealed_previous, endpoint.previous_until = endpoint.sealed_secret, Now() + BOTH_SIGN
    secret = give_secret(endpoint)
    endpoint.save(update_fields=["sealed_secret", "sealed_previous", "previous_until"])
    return secret
