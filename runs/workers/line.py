"""Processes that act do so on the database they know, and on none that was restored meanwhile."""

import psycopg
from django.conf import settings

from common.db import own_connection
from common.env import BadSetting
from common.postgres import lineage


def guard() -> None:
    """From now on this process connects to no restored database. Raises BadSetting where it is one now.

    One that is away is looked at when it comes, and so is one that is still in recovery.
    """
    lineage.guard(settings.SYNCHRONOUS_STANDBY)
    try:
        own_connection().close()
    except lineage.Restored as restored:
        raise BadSetting(f"{restored}.") from None
    except psycopg.OperationalError:
        return
