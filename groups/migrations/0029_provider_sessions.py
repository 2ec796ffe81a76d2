from itertools import islice

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import migrations, models

import common.ids


def note(apps, schema_editor):
    """The sessions there are: their provider's logout has to find them as well."""
    row = apps.get_model("groups", "ProviderSession")
    people = set(apps.get_model(settings.AUTH_USER_MODEL).objects.values_list("pk", flat=True))
    found = (_noted(row, one, people) for one in Session.objects.iterator())
    noted = filter(None, found)
    while some := list(islice(noted, 1000)):
        row.objects.bulk_create(some)


def _noted(row, session, people):
    told = session.get_decoded().get("deputy_through")
    if not isinstance(told, dict) or told.get("user") not in people:
        return None
    sid = str(told.get("sid") or "")[:255]
    return row(session_key=session.pk, provider=told["provider"], user_id=told["user"], session=sid)


class Migration(migrations.Migration):
    side_by_side = {"runs-python": "it only fills a table that no release before knows"}

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sessions", "0001_initial"),
        ("groups", "0028_storage"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProviderSession",
            fields=[
                ("session_key", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("provider", models.CharField(max_length=common.ids.ID_LENGTH)),
                ("session", models.CharField(blank=True, max_length=255)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["provider", "session"], name="provider_session_sid")],
            },
        ),
        migrations.RunPython(note, migrations.RunPython.noop),
    ]
