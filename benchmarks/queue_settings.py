"""Deputy's settings, and django-q2's own broker where DEPUTY_BENCH says `stock`."""

import os

from config.settings import *  # noqa: F403
from config.settings import Q_CLUSTER

if os.environ.get("DEPUTY_BENCH") == "stock":
    del Q_CLUSTER["broker_class"]
    Q_CLUSTER |= {"orm": "default", "poll": 0.05, "bulk": 10}
