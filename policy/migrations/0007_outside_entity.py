"""Subjects and resources of an organization's own applications."""

import common.ids
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("policy", "0006_not_known_yet"),
    ]

    operations = [
        migrations.CreateModel(
            name="OutsideEntity",
            fields=[
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ("id", models.CharField(default=common.ids.entity_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ("type", models.CharField(help_text="As applications name it: record, customer, user.", max_length=64)),
                ("identifier", models.CharField(help_text="Its id in those applications.", max_length=200)),
                ("properties", models.JSONField(blank=True, default=dict, help_text='What conditions may read: {"status": "archived"}')),
                ("organization", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="groups.organization")),
            ],
            options={
                "verbose_name_plural": "outside entities",
                "constraints": [models.UniqueConstraint(fields=("organization", "type", "identifier"), name="outside_entity")],
            },
        ),
    ]
