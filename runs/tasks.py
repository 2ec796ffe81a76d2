"""What the queue calls. A message that comes twice, late, or for a run that is gone does nothing."""

from django.conf import settings

from groups import routing
from memory import duplicates
from runs import board, executor, external, notices, queue
from runs.actions import mcp, sweep
from runs.models import McpServer
from runs.webhooks import sending


def advance(run_id: str) -> None:
    """Drive a pending run."""
    if board.stopping():  # somebody else's, then
        queue.enqueue(run_id)
        return
    executor.run(run_id)


def wake(run_id: str) -> None:
    """Resolve what the run waits for and is due by now, and drive it."""
    sweep.expire_waits_of(run_id)
    advance(run_id)


def execute_call(tool_call_id: str) -> None:
    """Carry a call of an outside agent on."""
    if board.stopping():
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
        from memory.embeddings import filling, texts  # not loaded where nothing is embedded

        filling.fill_quietly()
        texts.fill_quietly(routing.texts())


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
