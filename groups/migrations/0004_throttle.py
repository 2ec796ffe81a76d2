"""Who has asked how much of the API lately. Unlogged: a crash of the database forgets it, and that is fine."""

from django.db import migrations

FORWARD = """
CREATE UNLOGGED TABLE groups_throttle (
    key text PRIMARY KEY,
    full_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON COLUMN groups_throttle.full_at IS 'when the allowance is whole again, if nothing more is asked';
"""


class Migration(migrations.Migration):
    dependencies = [("groups", "0003_token_scopes")]

    operations = [migrations.RunSQL(FORWARD, "DROP TABLE groups_throttle")]
