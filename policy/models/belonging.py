"""Whether what is tied together belongs to one organization."""

from django.db.models import Model


def strangers(row: Model, *names: str) -> dict[str, list[str]]:
    """The errors of those of the row's foreign keys that lead to another organization."""
    mine = getattr(row, "organization_id", None)
    found = {name: getattr(row, name) for name in names if getattr(row, f"{name}_id")}
    return {
        name: ["This belongs to another organization."]
        for name, other in found.items()
        if mine and other.organization_id != mine
    }
