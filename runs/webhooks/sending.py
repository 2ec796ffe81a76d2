"""Send messages: claimed in one transaction, posted in none, and written down in another.

At least once: a carrier lost in between lets the message go out again, with the same webhook-id. One sender
at a time sees to an endpoint, so that a slow receiver cannot keep all of a carrier's threads. No connection
to the database is held while a receiver takes its time: the endpoint's row says who sends there.
"""

import logging
import random
import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from common.canonical import canonical
from common.db import execute, let_go, row, rows
from common.outbound import Fetched, OutboundError, fetch
from common.sealed import Unreadable, unseal
from groups.cells import AWAY
from runs.models import DeliveryStatus, WebhookDelivery, WebhookEndpoint
from runs.models.queue import ErrandKind
from runs.observe import tracing
from runs.queue import broker, put
from runs.webhooks import notice, outbox, push, signing

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 15  # with a receiver
WITH_FAILING_SECONDS = 3  # with one whose last message failed
TURN_SECONDS = 30  # for which a sender stays with an endpoint
LEASE_SECONDS = 60  # after which another may send what its sender has been silent about
# Seconds before the next attempt, after the first failure, the second, …: three days in all.
PAUSES = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
JITTER = 0.2
LONGEST_PAUSE = 86_400
FAILING = timedelta(days=5)  # of nothing but failures, after which an endpoint is switched off
KEPT = timedelta(days=30)  # a delivery in the log
HISTORY = 20  # attempts remembered
GONE = 410  # the receiver's way to say: never again
TOO_MUCH = (429, 503)  # whose Retry-After is heeded
BATCH = 500

NEXT = """
SELECT id FROM runs_webhookdelivery
WHERE endpoint_id = %s AND status = 'pending' AND next_attempt_at <= clock_timestamp()
ORDER BY next_attempt_at, id LIMIT 1
"""
HOLD = """
UPDATE runs_webhookendpoint
SET sender = %s, sending_until = clock_timestamp() + %s * interval '1 second'
WHERE id = %s AND (sending_until IS NULL OR sending_until < clock_timestamp() OR sender = %s)
"""
LET_GO = "UPDATE runs_webhookendpoint SET sending_until = NULL WHERE id = %s AND sender = %s"
GIVE_BACK = f"""
UPDATE runs_webhookendpoint e SET sending_until = NULL
WHERE sending_until IS NOT NULL AND starts_with(sender, %s) AND NOT {AWAY.format("e")}
"""  # noqa: S608 - our own text
# Whoever holds the endpoint has its messages: they stay due until what came of them is known.
CLAIM = f"""
UPDATE runs_webhookdelivery SET attempts = attempts + 1 WHERE id = ({NEXT})
RETURNING id, attempts, clock_timestamp()
"""  # noqa: S608 - the text above
URL = """
SELECT e.url FROM runs_webhookdelivery d JOIN runs_webhookendpoint e ON e.id = d.endpoint_id WHERE d.id = %s
"""
DUE = """
SELECT id, organization_id FROM runs_webhookdelivery
WHERE status = 'pending' AND next_attempt_at < now() - %s * interval '1 second'
ORDER BY next_attempt_at LIMIT %s
"""
FORGET = """
DELETE FROM runs_webhookdelivery WHERE id = ANY(ARRAY(
    SELECT id FROM runs_webhookdelivery WHERE created_at < now() - %s AND status <> 'pending' LIMIT %s))
"""
FORGET_PUSHES = """
DELETE FROM runs_webhookendpoint WHERE id = ANY(ARRAY(
    SELECT id FROM runs_webhookendpoint e WHERE e.run_id IS NOT NULL AND NOT e.enabled
        AND e.created_at < now() - %s
        AND NOT EXISTS (SELECT FROM runs_webhookdelivery d WHERE d.endpoint_id = e.id) LIMIT %s))
"""
AGAIN = """
UPDATE runs_webhookdelivery SET status = 'pending', next_attempt_at = clock_timestamp()
WHERE id = %s AND status <> 'pending' RETURNING id
"""

chance = random.SystemRandom()


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt. `wait`: the receiver's own wish, in seconds."""

    status: int | None = None
    problem: str = ""
    wait: int = 0

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def send(delivery_id: str) -> None:
    """Send what is due at the endpoint of this message. Does nothing where another sender is at it.

    Who finds the endpoint taken may go: whoever has it looks once more after letting go of it.
    """
    sender = f"{broker.holder}:{uuid.uuid4().hex[:12]}"
    about = WebhookDelivery.objects.filter(pk=delivery_id).values_list("endpoint_id", "organization_id")
    found, organization_id = about.first() or (None, "")
    until = time.monotonic() + TURN_SECONDS
    while found and next_due(found):
        if time.monotonic() > until:
            outbox.send_soon([delivery_id], organization_id)
            return
        if not hold(found, sender):
            return
        try:
            while time.monotonic() < until and hold(found, sender) and (claimed := row(CLAIM, [found])):
                send_one(*claimed)
        finally:
            execute(LET_GO, [found, sender])


def hold(endpoint_id: str, sender: str) -> bool:
    """Keep others from sending to the endpoint for LEASE_SECONDS more; False where another does."""
    return bool(execute(HOLD, [sender, LEASE_SECONDS, endpoint_id, sender]))


def give_back(holder: str) -> int:
    """Let others send to the endpoints that a process was at which has died; returns to how many."""
    return execute(GIVE_BACK, [f"{holder}:"])


def host_of(delivery_id: str) -> str:
    """The host that the message goes to; empty where there is no such message."""
    found = row(URL, [delivery_id])
    return urlsplit(found[0]).netloc.rpartition("@")[2].lower() if found else ""


def next_due(endpoint_id: str) -> str | None:
    """The message that has been due at the endpoint for longest."""
    found = row(NEXT, [endpoint_id])
    return found[0] if found else None


def send_one(delivery_id: str, attempt: int, now: datetime) -> None:
    """Send a message that was claimed, and see to what follows."""
    delivery = WebhookDelivery.objects.select_related("endpoint").get(pk=delivery_id)
    if delivery.endpoint.run_id and not push.still_reaches(delivery.endpoint):
        push.switch_off(delivery.endpoint, push.NO_LONGER)
    if not delivery.endpoint.enabled:
        conclude(delivery_id, attempt, Outcome(problem="The webhook is switched off."), now)
        return
    let_go()
    conclude(delivery_id, attempt, post(delivery, now), now)


def post(delivery: WebhookDelivery, now: datetime) -> Outcome:
    """One attempt. Redirects are not followed, and only public addresses are asked."""
    try:
        headers, body = written(delivery, now)
        answer = fetch(
            delivery.endpoint.url,
            method="POST",
            headers=headers,
            content=body,
            timeout=WITH_FAILING_SECONDS if delivery.endpoint.failing_since else PATIENCE_SECONDS,
            max_bytes=1000,
            max_redirects=0,
            allow_private=frozenset(settings.WEBHOOK_ALLOW),
        )
    except OutboundError as error:
        if error.code == "DECODE":  # it was answered; what, nobody reads
            return Outcome(problem="The answer could not be read.")
        return Outcome(problem=f"{error.code}: {error.message}"[:300])
    except Unreadable as error:
        return Outcome(problem=str(error)[:300])
    return outcome_of(answer)


def written(delivery: WebhookDelivery, now: datetime) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a message. Raises Unreadable."""
    if delivery.endpoint.run_id:
        body, run_id = canonical(push.body(delivery)).encode(), delivery.endpoint.run_id
        trace = tracing.header(run_id, run_id)
        return {"content-type": push.CONTENT_TYPE, **trace, **push.headers(delivery.endpoint)}, body
    body = canonical(delivery.payload).encode()
    signed = signing.headers(delivery.pk, int(now.timestamp()), body, keys(delivery.endpoint, now))
    about = delivery.payload["data"]
    trace = tracing.header(about["run"], about["root_run"]) if "run" in about else {}
    return {"content-type": "application/json", **trace, **signed}, body


def outcome_of(answer: Fetched) -> Outcome:
    if 200 <= answer.status < 300:
        return Outcome(answer.status)
    wish = answer.headers.get("retry-after", "") if answer.status in TOO_MUCH else ""
    wait = int(wish) if wish.isascii() and wish.isdigit() and len(wish) < 7 else 0
    return Outcome(answer.status, f"The receiver answered {answer.status}.", min(wait, LONGEST_PAUSE))


def keys(endpoint: WebhookEndpoint, now: datetime) -> list[str]:
    """The secrets to sign with: the present one, and after a rotation the one before. Raises Unreadable."""
    found = [unseal(endpoint.sealed_secret)]
    if endpoint.sealed_previous and endpoint.previous_until and now < endpoint.previous_until:
        found.append(unseal(endpoint.sealed_previous))
    return found


def conclude(delivery_id: str, attempt: int, outcome: Outcome, now: datetime) -> None:
    """Write down what came of an attempt: delivered, to be tried again, or given up."""
    with transaction.atomic():
        endpoint_id = WebhookDelivery.objects.values_list("endpoint_id", flat=True).get(pk=delivery_id)
        endpoint = WebhookEndpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)
        delivery = WebhookDelivery.objects.select_for_update(no_key=True).get(pk=delivery_id)
        if delivery.attempts != attempt:  # another has sent it since: this one took too long
            return
        delivery.response_status, delivery.problem = outcome.status, outcome.problem
        told = {"at": now.isoformat(), "status": outcome.status, "problem": outcome.problem}
        delivery.history = [*delivery.history, told][-HISTORY:]
        if outcome.delivered:
            delivery.status, delivery.delivered_at = DeliveryStatus.DELIVERED, Now()
            delivery.next_attempt_at = None
            _works(endpoint)
        else:
            _failed(endpoint, delivery, outcome, now)
        delivery.save()
        over = delivery.status != DeliveryStatus.PENDING and endpoint.run_id is not None
        if over and endpoint.enabled and push.is_last(delivery.payload):
            push.switch_off(endpoint, push.ENDED)


def _works(endpoint: WebhookEndpoint) -> None:
    if endpoint.failing_since:
        endpoint.failing_since = None
        endpoint.save(update_fields=["failing_since"])


def _failed(endpoint: WebhookEndpoint, delivery: WebhookDelivery, outcome: Outcome, now: datetime) -> None:
    since = endpoint.failing_since = endpoint.failing_since or now
    if endpoint.enabled and (outcome.status == GONE or now - since > FAILING):
        gone = outcome.status == GONE
        why = "The receiver answered 410: gone." if gone else f"Nothing but failures since {since:%Y-%m-%d}."
        endpoint.enabled, endpoint.disabled_because = False, why
        if endpoint.run_id is None:  # a push notification's client sees it at the task
            turn = put.for_people(endpoint.organization_id)
            put.enqueue_task("notify_webhook_disabled", endpoint.pk, turn=turn)
    endpoint.save(update_fields=["failing_since", "enabled", "disabled_because"])
    pause = pause_after(delivery.attempts, outcome.wait)
    if not endpoint.enabled or pause is None:
        delivery.status, delivery.next_attempt_at = DeliveryStatus.FAILED, None
        return
    delivery.next_attempt_at = Now() + timedelta(seconds=pause)
    turn = put.in_background(delivery.organization_id)
    put.enqueue_task(outbox.TASK, delivery.pk, delay=pause, turn=turn)


def pause_after(attempts: int, wish: int = 0) -> float | None:
    """Seconds until the next attempt, with jitter; None when there will be none."""
    if attempts > len(PAUSES):
        return None
    return max(PAUSES[attempts - 1] * chance.uniform(1 - JITTER, 1 + JITTER), wish)


def send_again(delivery: WebhookDelivery) -> bool:
    """Send a message that was delivered or given up once more. False when it is on its way as it is."""
    with transaction.atomic():
        if row(AGAIN, [delivery.pk]) is None:
            return False
        outbox.send_soon([delivery.pk], delivery.organization_id)
    return True


def ping(endpoint: WebhookEndpoint) -> WebhookDelivery:
    """A message that says nothing, to see whether it arrives."""
    (now,) = row("SELECT clock_timestamp()")
    with transaction.atomic():
        about = {"organization": endpoint.organization_id, "webhook": endpoint.pk}
        delivery = WebhookDelivery.objects.create(
            organization_id=endpoint.organization_id,
            endpoint=endpoint,
            event="ping",
            payload=outbox.message("ping", now, about),
            next_attempt_at=now,
        )
        outbox.send_soon([delivery.pk], endpoint.organization_id)
    return delivery


def send_due() -> int:
    """Ask carriers to send what has been due for a while: its message was lost. Returns how many."""
    if put.has_backlog(ErrandKind.WEBHOOKS):
        return 0
    found = rows(DUE, [LEASE_SECONDS, BATCH])
    with transaction.atomic():
        for delivery_id, organization_id in found:
            outbox.send_soon([delivery_id], organization_id)
    return len(found)


def forget() -> int:
    """Drop up to so many deliveries whose time in the log is over; how many. So are the configs of push
    notifications that have ended.
    """
    execute(FORGET_PUSHES, [KEPT, BATCH])
    return execute(FORGET, [KEPT, BATCH])


def told_who_manages(endpoint_id: str) -> None:
    """Write to those who can switch a webhook on again that it was switched off."""
    endpoint: Any = WebhookEndpoint.objects.filter(pk=endpoint_id, enabled=False).first()
    if endpoint is not None:
        notice.switched_off(endpoint)
