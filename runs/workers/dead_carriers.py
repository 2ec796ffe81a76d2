"""What a carrier had that died, for others to take: the watchdog tells of it, or the sweep finds it."""

import logging

from django.db import transaction

from runs.notices import delivery
from runs.outbound import lost
from runs.queue import broker
from runs.webhooks import sending

logger = logging.getLogger(__name__)

PREFIX = "car_"  # what the names of carriers begin with


def give_back(carrier: str) -> None:
    """Free its errands with what they hold, and let the sweep have its calls. May be done again."""
    with transaction.atomic():
        lost.end_lease(carrier)
        delivery.give_back(carrier)
        sending.give_back(carrier)
        errands = broker.give_back_errands(carrier)
    logger.warning("%s has ended; %d errands that it had are free again", carrier, errands)


def sweep() -> int:
    """Give back what carriers had of whose deaths nobody told; returns how many had errands."""
    dead = lost.dead_carriers()
    for carrier in dead:
        give_back(carrier)
    return len(dead)
