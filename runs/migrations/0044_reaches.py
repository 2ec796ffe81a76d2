from django.db import migrations

# Caches of an organization's tools learn with its policy version whom they reach, and as what.
TOUCH = """
DROP TRIGGER {name} ON {table};
CREATE TRIGGER {name} AFTER UPDATE OF {columns} ON {table}
    FOR EACH ROW WHEN ({differ}) EXECUTE FUNCTION policy_touch_version();
"""
SERVERS = ("touch_policy", "runs_mcpserver", ["name", "enabled", "as_person", "exchange_at"])
AGENTS = ("touch_policy_changed", "runs_remoteagent", ["name", "enabled", "state", "accepted"])
WHOM = ["url", "sealed_headers"]


def touch(name, table, columns):
    differ = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns)
    return TOUCH.format(name=name, table=table, columns=", ".join(columns), differ=differ)


def both(more):
    return "".join(touch(name, table, [*columns, *more]) for name, table, columns in (SERVERS, AGENTS))


class Migration(migrations.Migration):
    side_by_side = {
        "changes-data": "the triggers go on as before, and fire for two columns more",
    }

    dependencies = [
        ('runs', '0043_cells'),
    ]

    operations = [
        migrations.RunSQL(both(WHOM), both([])),
    ]
