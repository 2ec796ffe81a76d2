"""Whether somebody else changed an account lately is asked at every decision; Django's history of changes has no
index by time.
"""

from django.db import migrations


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("groups", "0023_proposal_row_digest"), ("admin", "0003_logentry_add_action_flag_choices")]

    operations = [
        migrations.RunSQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS admin_log_by_time ON django_admin_log (action_time)",
            "DROP INDEX CONCURRENTLY IF EXISTS admin_log_by_time",
        )
    ]
