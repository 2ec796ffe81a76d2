"""What migrations do to indexes that Django has no word for."""

from typing import Any

from django.db import migrations

DROP = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN
        SELECT index.relname FROM pg_index
        JOIN pg_class AS index ON index.oid = indexrelid
        JOIN pg_class AS heap ON heap.oid = indrelid
        WHERE heap.relname = ANY(ARRAY[{tables}]) AND index.relname LIKE '%\\_like'
            AND heap.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('DROP INDEX %I', one.relname);
    END LOOP;
END $$
"""


def drop_pattern_indexes(*tables: str) -> migrations.RunPython:
    """Drop the second index that Django gives each text key for LIKE 'abc%'.

    Ids are compared as a whole; on tables that every step of a run writes to, each index is a part of
    the step's cost.
    """

    def drop(_: Any, editor: Any) -> None:
        while editor.deferred_sql:  # Django makes these indexes at the end of the migration
            editor.execute(editor.deferred_sql.pop(0))
        names = ", ".join(f"'{table}'" for table in tables)
        editor.execute(DROP.format(tables=names), params=None)

    return migrations.RunPython(drop, migrations.RunPython.noop)
