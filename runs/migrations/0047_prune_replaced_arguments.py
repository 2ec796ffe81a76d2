from django.db import migrations

# What a decider had changed stayed where the run was pruned (runs/actions/prune.py).
PRUNE = """
UPDATE runs_approval a SET replaced_arguments = NULL FROM runs_run r
WHERE r.id = a.run_id AND r.pruned_at IS NOT NULL AND a.replaced_arguments IS NOT NULL
"""


class Migration(migrations.Migration):
    side_by_side = {"changes-data": "of pruned runs, in a column of which no release makes anything but a page"}

    dependencies = [("runs", "0046_shown_words")]

    operations = [migrations.RunSQL(PRUNE, migrations.RunSQL.noop)]
