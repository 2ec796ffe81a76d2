from django.db import migrations, models

FIELD = {
    "default": False,
    "help_text": "For whoever it names and Deputy does not know. Where members sign in otherwise too, some "
    "of them may get a second account, and with it a second vote: leave it off, and have them connect.",
    "verbose_name": "makes accounts",
}


class Migration(migrations.Migration):
    dependencies = [("groups", "0030_lead_in_words")]

    operations = [
        # providers that are there go on making accounts
        migrations.AddField(
            "identityprovider", "makes_accounts", models.BooleanField(db_default=True, **FIELD)
        ),
        migrations.AlterField(
            "identityprovider", "makes_accounts", models.BooleanField(db_default=False, **FIELD)
        ),
    ]
