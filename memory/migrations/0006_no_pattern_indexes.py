"""A memory's id is compared as a whole: no second index for LIKE."""

from django.db import migrations

from common.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies = [("memory", "0005_counted_exactly")]

    operations = [drop_pattern_indexes("memory_memory", "memory_pendingmemory")]
