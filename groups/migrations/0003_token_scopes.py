"""Tokens that were narrowed to read, run or decide keep what they could do, under the scopes' new names."""

from django.db import migrations

READ = ["runs:read", "approvals:read", "groups:read", "policy:read", "memory:read"]
NEW = {"read": READ, "run": ["runs:write"], "decide": ["approvals:decide"]}
OLD = {new: old for old, several in NEW.items() for new in several}


def _rename(names):
    def rename(apps, schema_editor):
        for token in apps.get_model("groups", "Token").objects.exclude(scopes=[]):
            renamed = [new for scope in token.scopes for new in names(scope)]
            token.scopes = list(dict.fromkeys(renamed))
            token.save(update_fields=["scopes"])

    return rename


class Migration(migrations.Migration):
    dependencies = [("groups", "0002_catalog_version")]

    operations = [
        migrations.RunPython(
            _rename(lambda scope: NEW.get(scope, [scope])),
            _rename(lambda scope: [OLD.get(scope, scope)]),
        )
    ]
