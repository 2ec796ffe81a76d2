"""A number of the policy's versions is given once, also where the change that took it was undone.

Compiled rules are kept by that number: a process that decided by a change before it was undone would otherwise go
on deciding by it, once another change had got the same number.
"""

from django.db import migrations

ONCE = """
CREATE SEQUENCE policy_version_number;
SELECT setval('policy_version_number', (SELECT COALESCE(max(version), 0) + 1 FROM policy_policyversion));
CREATE OR REPLACE FUNCTION policy_touch_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO policy_policyversion (organization_id, version)
    SELECT id, nextval('policy_version_number') FROM groups_organization
    WHERE id = to_jsonb(COALESCE(NEW, OLD))->>'organization_id'
    ON CONFLICT (organization_id) DO UPDATE SET version = nextval('policy_version_number');
    RETURN NULL;
END $$;
"""
COUNTED = """
CREATE OR REPLACE FUNCTION policy_touch_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO policy_policyversion (organization_id, version)
    SELECT id, 1 FROM groups_organization
    WHERE id = to_jsonb(COALESCE(NEW, OLD))->>'organization_id'
    ON CONFLICT (organization_id) DO UPDATE SET version = policy_policyversion.version + 1;
    RETURN NULL;
END $$;
DROP SEQUENCE policy_version_number;
"""


class Migration(migrations.Migration):
    dependencies = [("policy", "0008_heard")]

    operations = [migrations.RunSQL(ONCE, COUNTED)]
