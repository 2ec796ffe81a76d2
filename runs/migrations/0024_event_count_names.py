"""The event counts were once tables of other names: their keys, sequences and checks take the new ones.

Does nothing in a database that was made with the tables' present names.
"""

from django.db import migrations

RENAME = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN
        SELECT conrelid::regclass AS heap, conname AS name FROM pg_constraint
        WHERE conrelid IN ('runs_eventcount'::regclass, 'runs_eventcountcursor'::regclass)
            AND conname LIKE 'runs\\_tally%'
    LOOP
        EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', one.heap, one.name,
                       replace(one.name, 'runs_tally', 'runs_eventcount'));
    END LOOP;
END $$;
ALTER SEQUENCE IF EXISTS runs_tally_id_seq RENAME TO runs_eventcount_id_seq;
ALTER SEQUENCE IF EXISTS runs_tallycursor_id_seq RENAME TO runs_eventcountcursor_id_seq;
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_squashed_0023_model_keys")]

    operations = [migrations.RunSQL(RENAME, migrations.RunSQL.noop)]
