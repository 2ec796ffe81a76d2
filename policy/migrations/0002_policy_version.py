"""An organization's policy version grows whenever a rule, a capability, a binding or a role changes.

In the database, so that every writer counts and every process sees it with its next decision.
"""

from django.db import migrations

TABLES = ("policy_capabilityrule", "policy_capability", "policy_toolbinding", "groups_role")

FORWARD = """
CREATE FUNCTION policy_touch_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO policy_policyversion (organization_id, version)
    SELECT id, 1 FROM groups_organization
    WHERE id = to_jsonb(COALESCE(NEW, OLD))->>'organization_id'
    ON CONFLICT (organization_id) DO UPDATE SET version = policy_policyversion.version + 1;
    RETURN NULL;
END $$;
""" + "".join(
    f"""
CREATE TRIGGER touch_policy AFTER INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION policy_touch_version();
"""
    for table in TABLES
)

BACKWARD = "".join(f"DROP TRIGGER touch_policy ON {table};\n" for table in TABLES) + (
    "DROP FUNCTION policy_touch_version();"
)


class Migration(migrations.Migration):
    dependencies = [("policy", "0001_initial"), ("groups", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
