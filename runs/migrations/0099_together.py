from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0014_conversations"),
        ("runs", "0014_decisions_by_actors"),
        ("runs", "0014_outbound"),
        ("runs", "0014_turns_and_notices"),
        ("runs", "0015_seats"),
    ]
