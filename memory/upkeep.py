"""What memory does for itself, a little behind: counts terms, removes what has expired long ago."""

from datetime import timedelta

from django.db.models.functions import Now

from memory import statistics
from memory.models import Memory

KEPT_AFTER_EXPIRY = timedelta(
    days=7
)  # an expired memory is found no more at once; so long a person may restore it
BATCH = 1_000


def upkeep() -> dict[str, int]:
    """Safe at any time and from several processes; for the sweeper and `manage.py memory_upkeep`."""
    return {"counted": statistics.merge_all_deltas(), "removed": remove_expired()}


def remove_expired() -> int:
    """Delete up to a thousand memories whose time was over a week ago."""
    over = Memory.objects.filter(expires_at__lt=Now() - KEPT_AFTER_EXPIRY).order_by("expires_at")
    ids = list(over.values_list("id", flat=True)[:BATCH])
    return Memory.objects.filter(id__in=ids).delete()[1].get("memory.Memory", 0)
