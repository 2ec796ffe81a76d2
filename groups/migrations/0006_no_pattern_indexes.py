"""What a completed run teaches routing is written in its last step: no second indexes for LIKE."""

from django.db import migrations

from common.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies = [("groups", "0005_queue_limit")]

    operations = [drop_pattern_indexes("groups_routingexample")]
