"""More rows of what there is one of, for tests of what lists cost."""

from copy import copy
from typing import Any

from django.db import models

from common import ids


def clone(row: Any, count: int, mark: str) -> list[Any]:
    """So many rows like this one, which differ in what has to."""
    return list(type(row).objects.bulk_create([_copied(row, f"{mark}{number}") for number in range(count)]))


def _copied(row: Any, mark: str) -> Any:
    found = copy(row)
    found._state = models.base.ModelState()
    together = {name for one in row._meta.constraints for name in getattr(one, "fields", ())}
    for field in row._meta.concrete_fields:
        if field.primary_key:
            text = isinstance(field, models.CharField)
            found.pk = ids.new_id(row.pk.partition("_")[0]) if text else None
        elif field.is_relation or field.choices or not (field.unique or field.name in together):
            continue
        elif isinstance(field, models.CharField | models.TextField):
            value = f"{mark}{getattr(row, field.attname) or ''}"
            setattr(found, field.attname, value[: field.max_length or 100])
        elif isinstance(field, models.IntegerField):
            setattr(found, field.attname, 100 + int.from_bytes(mark.encode(), "big") % 30_000)
    return found
