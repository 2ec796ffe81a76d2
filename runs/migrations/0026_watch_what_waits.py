"""What waits already is watched from now on; notices that no channel has are asked for anew."""

from django.db import migrations

WATCH = """
INSERT INTO runs_approvalwatch (approval_id, organization_id)
SELECT id, organization_id FROM runs_approval WHERE status = 'pending'
"""
DROP = "DELETE FROM runs_approvalnotice WHERE channel_id IS NULL AND status IN ('pending', 'sending')"


class Migration(migrations.Migration):
    dependencies = [("runs", "0025_heard")]
    operations = [migrations.RunSQL([WATCH, DROP], reverse_sql=migrations.RunSQL.noop)]
