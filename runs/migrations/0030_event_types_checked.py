"""Check the events there are, while others read and write."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0029_restored")]
    operations = [ValidateConstraint("runevent", "run_event_type")]
