from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("policy", "0011_grants_door"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="grant",
            options={"verbose_name": "standing approval"},
        ),
        migrations.AlterModelOptions(
            name="grantuse",
            options={
                "verbose_name": "use of a standing approval",
                "verbose_name_plural": "uses of standing approvals",
            },
        ),
    ]
