"""Small pieces every app's models share. Abstract: no table of its own."""

from django.db import models
from django.db.models.functions import Now


class Created(models.Model):
    """A row that knows when it was made, by the database's clock."""

    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True
