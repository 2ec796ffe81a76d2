from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0038_events_by_month"),
    ]

    operations = [
        migrations.CreateModel(
            name="GoneMonth",
            fields=[
                ("name", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("since", models.CharField(blank=True, max_length=31)),
                ("until", models.CharField(max_length=31)),
                ("gone_at", models.DateTimeField()),
                ("runs", models.PositiveIntegerField()),
                ("detached", models.BooleanField()),
            ],
        ),
    ]
