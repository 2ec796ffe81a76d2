"""Small pieces every app's models share. Abstract: no table of its own."""

from typing import Any

from django.db import models
from django.db.models.functions import Now


class Created(models.Model):
    """A row that knows when it was made, by the database's clock."""

    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True


def store_also(kwargs: dict[str, Any], *names: str) -> None:
    """For a model's `save`, whose `kwargs` these are: where only some fields are to be stored, these, too."""
    if fields := kwargs.get("update_fields"):
        kwargs["update_fields"] = {*fields, *names}
