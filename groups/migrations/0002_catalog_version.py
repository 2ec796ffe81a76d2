"""A project's catalog_version grows whenever one of its groups, their members or their roles changes.

In the database, so that every writer counts: the admin, the API, a bulk update, a hand at psql.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION groups_touch_catalog() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed jsonb := to_jsonb(COALESCE(NEW, OLD));
BEGIN
    IF TG_TABLE_NAME = 'groups_group' THEN
        UPDATE groups_project SET catalog_version = catalog_version + 1
        WHERE id IN (to_jsonb(NEW)->>'project_id', to_jsonb(OLD)->>'project_id');
    ELSIF TG_TABLE_NAME = 'groups_groupmember' THEN
        UPDATE groups_project SET catalog_version = catalog_version + 1
        WHERE id = (SELECT project_id FROM groups_group WHERE id = changed->>'group_id');
    ELSE
        UPDATE groups_project SET catalog_version = catalog_version + 1
        WHERE id IN (SELECT g.project_id FROM groups_group g JOIN groups_groupmember m ON m.group_id = g.id
                     WHERE m.role_id = changed->>'id');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER touch_catalog AFTER INSERT OR UPDATE OR DELETE ON groups_group
    FOR EACH ROW EXECUTE FUNCTION groups_touch_catalog();
CREATE TRIGGER touch_catalog AFTER INSERT OR UPDATE OR DELETE ON groups_groupmember
    FOR EACH ROW EXECUTE FUNCTION groups_touch_catalog();
CREATE TRIGGER touch_catalog AFTER UPDATE ON groups_role
    FOR EACH ROW EXECUTE FUNCTION groups_touch_catalog();
"""

BACKWARD = """
DROP TRIGGER touch_catalog ON groups_group;
DROP TRIGGER touch_catalog ON groups_groupmember;
DROP TRIGGER touch_catalog ON groups_role;
DROP FUNCTION groups_touch_catalog();
"""


class Migration(migrations.Migration):
    dependencies = [("groups", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
