"""What the queue calls. A message that comes twice, late, or for a run that is gone does nothing.

Workers call what takes steps; carriers call errands (put.ERRAND_TASKS), which wait for
the network.

A worker waits no longer than LOCK_SECONDS for a row that somebody else has locked: what it was to do goes
back to the queue for a while, and it takes the next message.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from django import db
from django.conf import settings
from django.db import OperationalError, connection

from common.db import is_locked, let_go
from groups import routing
from memory import duplicates
from runs.actions import accounts, mcp, mcp_tasks, remote_agents, repeat
from runs.execution import executor, external
from runs.models import McpServer, RemoteAgent
from runs.notices import delivery, slack
from runs.notices import watch as approval_watch
from runs.notices.base import NotSent
from runs.outbound import errands
from runs.queue import put, worker_status
from runs.webhooks import sending
from runs.workers import sweep

logger = logging.getLogger(__name__)

LOCKED_SECONDS = 3.0  # until a run whose row is locked is looked at again
PAUSES = (0, 1, 2, 4, 8, 16, 30)  # seconds between attempts to put a message back while the database is away

PASSED_ON = (db.Error, psycopg.Error)  # the database that is away is no fault of the run's


@contextmanager
def unless_locked(run_id: str, again: Callable[..., None] = put.enqueue) -> Iterator[None]:
    """Have another look at the run taken in a while where its row, or its parent's, is locked. A run that
    had been claimed by then is pending again when its lease has run out.
    """
    try:
        yield
    except OperationalError as error:
        if not is_locked(error):
            raise
        logger.warning("%s is locked by somebody else; it goes back to the queue", run_id)
        again(run_id, delay=LOCKED_SECONDS)


def advance(run_id: str) -> None:
    """Drive a pending run."""
    if worker_status.stopping():  # somebody else's, then
        put.enqueue(run_id)
        return
    with unless_locked(run_id):
        executor.run(run_id, carried=True)


def resume(run_id: str) -> None:
    """Take the step after a run's outbound calls."""
    if worker_status.stopping():
        put.resume(run_id)
        return
    with unless_locked(run_id, again=put.resume):
        try:
            executor.resume(run_id)
        except PASSED_ON:
            raise
        except Exception:
            sweep.stumbled(run_id)  # an answer that no step can take must not be tried for ever
            raise


def wake(run_id: str) -> None:
    """Resolve what the run waits for and is due by now, and drive it."""
    with unless_locked(run_id):
        sweep.expire_waits_of(run_id)
        advance(run_id)


def execute_call(tool_call_id: str) -> None:
    """Carry a call of an outside agent on."""
    try:
        with errands.at_host(external.host_of(tool_call_id)):
            external.execute(tool_call_id)
    except OperationalError as error:
        if not is_locked(error):
            raise
        logger.warning("the run of %s is locked by somebody else", tool_call_id)
        external.pass_on(tool_call_id, LOCKED_SECONDS)


@contextmanager
def or_later(task: str, *arguments: str) -> Iterator[None]:
    """Put the task back for later when the database failed: only its message records it."""
    try:
        yield
    except OperationalError as error:
        logger.warning("%s has to wait: %s", task, type(error).__name__)
        for pause in PAUSES:
            time.sleep(pause)
            try:
                put.enqueue_task(task, *arguments, delay=LOCKED_SECONDS)
            except OperationalError:
                connection.close()
                continue
            return
        raise


def notify(approval_id: str) -> None:
    """Tell those who may decide that an approval waits for them."""
    with or_later("notify", approval_id):
        approval_watch.attend(approval_id)


def join_duplicates(*memory_ids: str) -> None:
    """Let new deposits join what the project knows already."""
    with or_later("join_duplicates", *memory_ids):
        duplicates.join_duplicates(memory_ids)
    if settings.EMBEDDING_MODEL:
        put.enqueue_task("embed_memories")


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
        let_go()
        mcp.refresh(server)


def refresh_remote_agent(agent_id: str) -> None:
    """Read the card of a remote agent again."""
    agent = RemoteAgent.objects.filter(pk=agent_id, enabled=True).first()
    if agent:
        let_go()
        remote_agents.refresh(agent)


def cancel_remote_task(task_id: str) -> None:
    """Cancel a task at a remote agent that nobody waits for any more."""
    if not remote_agents.cancel(task_id):
        raise errands.Later(remote_agents.CANCEL_AGAIN.total_seconds())


def poll_mcp_task(task_id: str, generation: str) -> None:
    """Ask an MCP server how far the task is that it has made of a call."""
    mcp_tasks.poll(task_id, int(generation))


def repeat_calls(organization_id: str, user_id: str, need: str) -> None:
    """What calls of this user's runs have waited for is there: they are made again."""
    with or_later("repeat_calls", organization_id, user_id, need):
        repeat.met(organization_id, int(user_id), need)


def revoke_account(account_id: str) -> None:
    """Revoke a connected account where it was granted, and forget it."""
    accounts.revoke(account_id)


def revoke_sign_in(provider_id: str, asked_as: str, refresh: str) -> None:
    """Revoke, at its provider, the refresh token (encrypted) of a sign-in that is not used any more."""
    accounts.revoke_sign_in(provider_id, asked_as, refresh)


def send_webhook(delivery_id: str) -> None:
    """Send a webhook's message."""
    with errands.at_host(sending.host_of(delivery_id)):
        sending.send(delivery_id)


def notify_webhook_disabled(endpoint_id: str) -> None:
    """Tell those who manage it that a webhook was switched off."""
    sending.told_who_manages(endpoint_id)


def deliver(channel_id: str, tried: str = "0") -> None:
    """Send a channel the notices that wait for it."""
    delivery.deliver(channel_id, int(tried))


def answer_chat(address: str, words: str) -> None:
    """Say to whoever pressed a button in a chat what came of it."""
    with contextlib.suppress(NotSent):
        slack.post(address, {"response_type": "ephemeral", "replace_original": False, "text": words})
