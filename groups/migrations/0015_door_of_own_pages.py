from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0014_calls_limit")]

    operations = [
        migrations.AlterField(
            model_name="change",
            name="via",
            field=models.CharField(
                choices=[
                    ("admin", "The admin"),
                    ("page", "A person's own pages"),
                    ("api", "The API"),
                    ("system", "Deputy itself, or a command on its machine"),
                ],
                max_length=10,
            ),
        ),
    ]
