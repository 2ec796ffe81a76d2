"""`manage.py carrier`: one more carrier."""

import logging
import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from common import connections, sessions
from runs.workers import carriers, line


class Command(BaseCommand):
    help = "Wait for the network on behalf of the workers: models, tools, webhooks, mail. SIGTERM stops it."
    requires_system_checks = ()  # they take a second, and web has made them

    def handle(self, *args: Any, **options: Any) -> None:
        line.guard()
        needed = connections.of_carriers(1, settings.CARRIER_ERRANDS, sessions.is_pooled())
        line.check_sessions(needed, "a carrier")
        carriers.run(carriers.new_name())
        logging.shutdown()
        os._exit(0)  # without waiting for threads of tools: what they are at is nobody's by now
