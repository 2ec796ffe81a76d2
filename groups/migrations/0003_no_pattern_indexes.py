"""What a completed run teaches routing is written in its last step: no second indexes for LIKE."""

from django.db import migrations

from common.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies = [("groups", "0002_catalog_version")]

    operations = [drop_pattern_indexes("groups_routingexample")]
