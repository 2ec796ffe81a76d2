"""What the queue calls. A message that comes twice, late, or for a run that is gone does nothing."""

import psycopg
from django import db
from django.conf import settings

from memory import duplicates
from runs.actions import mcp
from runs.execution import executor, external
from runs.models import McpServer
from runs.outbound import notices
from runs.queue import put, worker_status
from runs.webhooks import sending
from runs.workers import sweep

PASSED_ON = (db.Error, psycopg.Error)  # the database that is away is no fault of the run's


def advance(run_id: str) -> None:
    """Drive a pending run."""
    if worker_status.stopping():  # somebody else's, then
        put.enqueue(run_id)
        return
    executor.run(run_id, carried=True)


def resume(run_id: str) -> None:
    """Take the step after a run's outbound calls."""
    if worker_status.stopping():
        put.resume(run_id)
        return
    try:
        executor.resume(run_id)
    except PASSED_ON:
        raise
    except Exception:
        sweep.stumbled(run_id)  # an answer that no step can take must not be tried for ever
        raise


def wake(run_id: str) -> None:
    """Resolve what the run waits for and is due by now, and drive it."""
    sweep.expire_waits_of(run_id)
    advance(run_id)


def execute_call(tool_call_id: str) -> None:
    """Carry a call of an outside agent on."""
    if worker_status.stopping():
        external.pass_on(tool_call_id)
        return
    external.execute(tool_call_id)


def notify(approval_id: str) -> None:
    """Tell those who may decide that an approval waits for them."""
    notices.announce(approval_id)


def join_duplicates(*memory_ids: str) -> None:
    """Let new deposits join what the project knows already."""
    duplicates.join_duplicates(memory_ids)
    embed_memories()


def embed_memories() -> None:
    """Give new and edited memories their vectors, where a model embeds."""
    if settings.EMBEDDING_MODEL:
        from memory.embeddings import filling  # its HTTP client is not loaded where nothing is embedded

        filling.fill_quietly()


def refresh_mcp_server(server_id: str) -> None:
    """Look again at the tools of an MCP server."""
    server = McpServer.objects.filter(pk=server_id, enabled=True).first()
    if server:
        mcp.refresh(server)


def send_webhook(delivery_id: str) -> None:
    """Send a webhook's message."""
    sending.send(delivery_id)


def notify_webhook_disabled(endpoint_id: str) -> None:
    """Tell those who manage it that a webhook was switched off."""
    sending.told_who_manages(endpoint_id)


def deliver(organization_id: str, user_id: str) -> None:
    """Send somebody the notices that were held back."""
    notices.deliver(organization_id, int(user_id))
