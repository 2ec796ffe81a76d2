from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0021_reader"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="language",
            field=models.CharField(
                blank=True,
                choices=[("en", "English"), ("zh-hans", "简体中文")],
                db_default="",
                default="",
                help_text="In which its people work: whoever reads in it is offered this project first.",
                max_length=10,
            ),
        ),
    ]
