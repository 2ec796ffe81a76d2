from django.db import migrations, models

# Caches of an organization's tools learn with its policy version how the person's authorization comes.
TOUCH = """
DROP TRIGGER touch_policy ON runs_mcpserver;
CREATE TRIGGER touch_policy AFTER UPDATE OF {} ON runs_mcpserver
    FOR EACH ROW WHEN ({}) EXECUTE FUNCTION policy_touch_version();
"""
NAMES = "name, enabled, as_person"
DIFFER = "OLD.name <> NEW.name OR OLD.enabled <> NEW.enabled OR OLD.as_person <> NEW.as_person"
BEFORE = TOUCH.format(NAMES, DIFFER)
NOW = TOUCH.format(f"{NAMES}, exchange_at", f"{DIFFER} OR OLD.exchange_at <> NEW.exchange_at")


class Migration(migrations.Migration):
    side_by_side = {
        "changes-data": "the trigger goes on as before, and fires for one column more",
    }

    dependencies = [
        ('groups', '0026_kept_sign_ins'),
        ('runs', '0039_gone_months'),
    ]

    operations = [
        migrations.AddField(
            model_name='mcpserver',
            name='exchange_at',
            field=models.CharField(blank=True, db_default='', default='', help_text="Empty: each person connects their own account at the server's authorization server.", max_length=31, verbose_name='in exchange for the sign-in at'),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='audience',
            field=models.CharField(blank=True, db_default='', default='', help_text='How the provider names the server in an exchange. Empty: by its address (resource).', max_length=300),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='with_actor',
            field=models.BooleanField(db_default=False, default=False, help_text="Deputy's own token goes with an exchange, and what comes has to name who acts (act).", verbose_name='names who acts'),
        ),
        migrations.AddField(
            model_name='connectedaccount',
            name='declined',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunSQL(NOW, BEFORE),
    ]
