"""Django's groups and permissions, which held everywhere at once, become roles in each organization.

Everybody keeps what they could do: a superuser becomes an administrator, whoever had no permission a member,
and for every other set of permissions the organization gets a role of its own. Over the API every member could
start runs, so each of these roles carries that.

A membership's kind, user and organization stay: in the database, so that every writer is held to it. Tokens
without scopes, which meant every scope, name all that there were.
"""

from django.db import migrations

APPS = ("groups", "policy", "runs", "memory")
STARTS = "runs.start_run"
STANDARD = {"viewer", "member", "decider", "curator", "administrator"}
SCOPES = [
    *("runs:read", "runs:write", "approvals:read", "approvals:decide", "groups:read", "groups:write"),
    *("policy:read", "policy:write", "memory:read", "memory:write", "webhooks:read", "webhooks:write"),
    *("tokens:read", "tokens:write"),
]

FORWARD = """
CREATE FUNCTION groups_membership_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The kind, user and organization of membership % stay as they were made.', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER membership_stays BEFORE UPDATE ON groups_membership FOR EACH ROW
    WHEN (OLD.kind IS DISTINCT FROM NEW.kind OR OLD.user_id IS DISTINCT FROM NEW.user_id
          OR OLD.organization_id IS DISTINCT FROM NEW.organization_id)
    EXECUTE FUNCTION groups_membership_stays();
"""
BACKWARD = """
DROP TRIGGER membership_stays ON groups_membership;
DROP FUNCTION groups_membership_stays();
"""


def give_roles(apps, schema_editor):
    roles = {}
    memberships = apps.get_model("groups", "Membership").objects.select_related("user")
    for membership in memberships.order_by("id"):
        user = membership.user
        held = permissions_of(user) | {STARTS}
        if user.is_superuser:
            membership.role = "administrator"
        elif held != {STARTS}:
            key = (membership.organization_id, frozenset(held))
            if key not in roles:
                roles[key] = new_role(apps, key, name_for(user))
            membership.custom_role = roles[key]
        membership.save(update_fields=["role", "custom_role"])


def permissions_of(user):
    """Deputy's own, by the user's own permissions and their groups'."""
    if not user.is_active:
        return set()
    found = set()
    for rows in (user.user_permissions, *(group.permissions for group in user.groups.all())):
        of_deputy = rows.filter(content_type__app_label__in=APPS)
        found |= {".".join(pair) for pair in of_deputy.values_list("content_type__app_label", "codename")}
        if rows.filter(content_type__app_label="auth", codename="view_user").exists():
            found.add("auth.view_user")
    return found


def name_for(user):
    groups = sorted(user.groups.values_list("name", flat=True))
    return groups[0] if len(groups) == 1 and not user.user_permissions.exists() else f"As {user.username}"


def new_role(apps, key, name):
    own = apps.get_model("groups", "CustomRole").objects
    organization_id, held = key
    name, number = name[:80], 1
    base = name
    while name.strip().lower() in STANDARD or own.filter(organization_id=organization_id, name=name).exists():
        number += 1
        name = f"{base} {number}"
    return own.create(organization_id=organization_id, name=name, permissions=sorted(held))


def name_scopes(apps, schema_editor):
    apps.get_model("groups", "Token").objects.filter(scopes=[]).update(scopes=SCOPES)


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0009_member_roles"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.RunPython(give_roles, migrations.RunPython.noop),
        migrations.RunPython(name_scopes, migrations.RunPython.noop),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
