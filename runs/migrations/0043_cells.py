from django.db import migrations

# For the triggers that a cell has (runs/cells/fence.py): what belongs to an organization is written under a lock
# that the writers share and whoever moves the organization has alone. Those who waited for it find the
# organization gone. `deputy.moving` is set by the move itself.
FUNCTIONS = """
CREATE FUNCTION groups_stays(organization text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('deputy.cell:' || organization, 0));
    IF EXISTS (SELECT FROM groups_move WHERE organization_id = organization AND state IN ('moved', 'arriving'))
       AND current_setting('deputy.moving', true) IS DISTINCT FROM organization THEN
        RAISE EXCEPTION 'the organization % is in another cell', organization USING ERRCODE = 'DP001';
    END IF;
END $$;
CREATE FUNCTION groups_stays_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM groups_stays(OLD.organization_id);
        RETURN OLD;
    END IF;
    IF NEW.organization_id IS NOT NULL THEN
        PERFORM groups_stays(NEW.organization_id);
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION groups_stays_itself() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM groups_stays(OLD.id);
        RETURN OLD;
    END IF;
    PERFORM groups_stays(NEW.id);
    RETURN NEW;
END $$;
-- Of a row that names its organization by way of another: the other's table, and the column that names it.
CREATE FUNCTION groups_stays_by() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    organization text;
    written record := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    EXECUTE format('SELECT organization_id FROM %I WHERE id = $1', TG_ARGV[0])
        INTO organization USING to_jsonb(written) ->> TG_ARGV[1];
    IF organization IS NOT NULL THEN
        PERFORM groups_stays(organization);
    END IF;
    RETURN written;
END $$;
"""
DROP = """
DROP FUNCTION groups_stays_by();
DROP FUNCTION groups_stays_itself();
DROP FUNCTION groups_stays_row();
DROP FUNCTION groups_stays(text);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0027_cells"),
        ("memory", "0012_neighbours_of_all"),
        ("policy", "0009_versions_once"),
        ("runs", "0042_levels"),
    ]

    operations = [
        migrations.RunSQL(FUNCTIONS, DROP),
    ]
