import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def who_entered_them(apps, schema_editor):
    """By the record of changes, which has it for as long as it is kept."""
    Channel, Change = apps.get_model("runs", "Channel"), apps.get_model("groups", "Change")
    for channel in Channel.objects.filter(user=None):
        entered = Change.objects.filter(model="runs.channel", object_id=channel.pk, after__has_key="sealed_address")
        user = entered.order_by("-id").values_list("user_id", flat=True).first()
        Channel.objects.filter(pk=channel.pk).update(kept_by=user)


class Migration(migrations.Migration):
    side_by_side = {
        "adding-foreign-key-constraint": "an organization has few channels, and nothing is read to check it",
        "runs-python": "it fills the new column, which releases before this one neither read nor write",
    }

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("groups", "0026_kept_sign_ins"),
        ("runs", "0040_exchange"),
    ]

    operations = [
        migrations.AddField(
            model_name="channel",
            name="kept_by",
            field=models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
        migrations.RunPython(who_entered_them, migrations.RunPython.noop),
    ]
