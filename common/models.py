"""Small pieces every app's models share. Abstract: no table of its own."""

from django.db import models
from django.db.models.functions import Now


class ClockTimestamp(models.Func):
    """The database's clock at this very moment (`now()` stands still inside a transaction)."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = models.DateTimeField()


class Created(models.Model):
    """A row that knows when it was made, by the database's clock."""

    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True
