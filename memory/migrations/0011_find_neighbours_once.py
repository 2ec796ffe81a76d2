"""Search looks for the memories beside a hit once, not once for every candidate."""

from django.db import migrations

from memory.migrations._functions import FIND


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_squashed_0010_text_vectors")]

    operations = [migrations.RunSQL("DROP FUNCTION memory_find;" + FIND, migrations.RunSQL.noop)]
