"""Look again, hour by hour, at the MCP servers and remote agents that organizations have registered."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from runs.models import McpServer, RemoteAgent
from runs.queue import put

LOOK_AGAIN = timedelta(hours=1)  # between two looks at an enabled server's tools, or an agent's card
MOST = 50  # of each kind at a time
TASKS: dict[str, Any] = {
    "refresh_mcp_server": McpServer,
    "refresh_remote_agent": RemoteAgent,
}


def refresh_due() -> None:
    """Ask carriers to look at what nobody has looked at for an hour."""
    for task, model in TASKS.items():
        due = model.objects.filter(enabled=True).filter(
            Q(checked_at=None) | Q(checked_at__lt=Now() - LOOK_AGAIN)
        )
        with transaction.atomic():
            found = list(due.select_for_update(skip_locked=True, no_key=True)[:MOST])
            model.objects.filter(pk__in=[one.pk for one in found]).update(checked_at=Now())
            for one in found:
                put.enqueue_task(task, one.pk, turn=put.in_background(one.organization_id))
