from django.db import migrations, models


class Migration(migrations.Migration):
    """The counts of the log by their name; what they have counted so far stays."""

    dependencies = [("runs", "0019_signal_waits")]

    operations = [
        migrations.RenameModel("Tally", "EventCount"),
        migrations.RenameModel("TallyCursor", "EventCountCursor"),
        migrations.RemoveConstraint("eventcount", "tally_unique"),
        migrations.AddConstraint(
            "eventcount", models.UniqueConstraint(fields=["name", "labels"], name="event_count_unique")
        ),
    ]
