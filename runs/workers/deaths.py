"""What a worker or a carrier had that died: given back at once, so that another takes it.

The watchdog sees the death and tells the first process of the group (runs/queue/worker_status.py). Whoever is
not told, because a whole cluster or a machine is gone, finds it by the leases and by the group's signs of
life (runs/queue/heartbeat.py), a few seconds later.
"""

import logging

from common.db import execute
from runs.log.log import RunGone
from runs.notices import delivery
from runs.queue import broker, lease
from runs.queue.worker_status import Death
from runs.workers import dead_carriers, sweep

logger = logging.getLogger(__name__)

CALL_IS_FREE = """
UPDATE runs_toolcall SET lease_expires_at = clock_timestamp()
WHERE id = %s AND attempt = %s AND status = 'running' AND lease_expires_at IS NOT NULL
"""


def settle(death: Death, group: str) -> None:
    """Give back its message, its run or outside call, and the notices it was sending; or all that a carrier
    had. May be done again.
    """
    if death.holds.startswith(dead_carriers.PREFIX):
        dead_carriers.give_back(death.holds)
        return
    logger.warning("worker %d has died at %s", death.pid, death.holds or f"message {death.message}")
    delivery.give_back(group, death.pid)
    if death.holds.startswith(lease.CALL_PREFIX):
        execute(CALL_IS_FREE, [death.holds, death.attempt])
    elif death.holds:
        free_run(death)
    if death.message:
        broker.give_back_one(death.message)


def free_run(death: Death) -> None:
    try:
        sweep.worker_died(death.holds, death.attempt, death.by_itself)
    except RunGone:
        return
