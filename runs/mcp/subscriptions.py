"""`subscriptions/listen`: tell a client when the list of its tools may have changed."""

import asyncio
import time
from typing import Any

import mcp_types as types
import psycopg
from mcp import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from common.api import slots
from common.api.errors import Problem
from runs.api.feed import Feed, feed
from runs.api.readers import Reader
from runs.mcp.requests import Context, session_of
from runs.mcp.session import McpSession

LOOK_SECONDS = 1.0  # between two looks at the policy; all who listen in a process share one
LONGEST_SECONDS = 600.0  # then the client asks again, and its token is looked at anew
# What the list depends on: the organization's policy and tools, and the member's own boundaries.
STATE = """
SELECT (SELECT version FROM policy_policyversion WHERE organization_id = %s),
       (SELECT denied_tools::text || coalesce(allowed_tools::text, '') FROM groups_membership WHERE id = %s)
"""


async def listen(
    ctx: Context, params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    """Answer with a stream, until the client closes it, its token ends, or LONGEST_SECONDS are over."""
    session = session_of(ctx)
    try:
        slot = slots.take(session.user, session.token, session.project.organization_id)
    except Problem as refused:
        raise MCPError(types.INTERNAL_ERROR, str(refused.detail)) from None
    meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
    try:
        await _follow(ctx, session, bool(params.notifications.tools_list_changed), meta)
    finally:
        slot.give_back()
    return types.SubscriptionsListenResult(_meta=meta)


async def _follow(ctx: Context, session: McpSession, wanted: bool, meta: dict[str, Any]) -> None:
    source, until = feed(), time.monotonic() + LONGEST_SECONDS
    reader = session.reader
    async with source.follow(f"tools {session.project.organization_id}"):
        known = await _state(source, session)
        await _acknowledge(ctx, wanted, meta)
        while time.monotonic() < until and await _still(reader, source):
            await asyncio.sleep(LOOK_SECONDS)
            now = await _state(source, session)
            if wanted and now != known:
                changed = types.ToolListChangedNotification(params=types.NotificationParams(_meta=meta))
                await ctx.session.send_notification(changed, related_request_id=ctx.request_id)
            known = now


async def _acknowledge(ctx: Context, wanted: bool, meta: dict[str, Any]) -> None:
    """Only tools change here: there are neither prompts nor resources."""
    honoured = types.SubscriptionFilter(tools_list_changed=True if wanted else None)
    told = types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
    notice = types.SubscriptionsAcknowledgedNotification(params=told)
    await ctx.session.send_notification(notice, related_request_id=ctx.request_id)


async def _state(source: Feed, session: McpSession) -> Any:
    """None while the database is away: then the list may have changed."""
    try:
        rows = await source.recent(
            STATE, [session.project.organization_id, session.membership.pk], LOOK_SECONDS / 2
        )
    except psycopg.OperationalError:
        return None
    return rows[0] if rows else None


async def _still(reader: Reader, source: Feed) -> bool:
    try:
        return await reader.may_still(source, LOOK_SECONDS)
    except psycopg.OperationalError:
        return True
