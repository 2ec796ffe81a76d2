"""Each memory's vector, for search by meaning (memory/embeddings). Empty where no model is configured.

The vectors are plain arrays, so that the tables need no extension; the index over them, made when a
model is first used, needs pgvector.
"""

from typing import Any

from django.db import models
from django.db.models import Q

from memory.models.memories import Memory


class VectorField(models.Field):
    """Numbers of single precision."""

    def db_type(self, connection: Any) -> str:
        return "real[]"


class Embedding(models.Model):
    """The vector of a memory's text by one model.

    Where the text or the scope has changed since, a trigger has taken vector and model away; where the
    model refused the text, there is a model and no vector.
    """

    memory = models.OneToOneField(Memory, on_delete=models.CASCADE, primary_key=True, related_name="+")
    scope_key = models.UUIDField()  # the memory's
    model = models.CharField(max_length=200)
    vector = VectorField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["scope_key"], name="memory_embedding_scope"),
            models.Index(fields=["memory"], name="memory_embedding_stale", condition=Q(model="")),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} by {self.model or 'nobody yet'}"


class TextVector(models.Model):
    """The vector of a text that is no memory, by its SHA-256: a group's description, or a past goal."""

    pk = models.CompositePrimaryKey("model", "digest")
    model = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    vector = VectorField()

    def __str__(self) -> str:
        return f"{self.digest} by {self.model}"


class EmbeddingProgress(models.Model):
    """How far a model has come: every memory up to this id has been embedded."""

    model = models.CharField(max_length=200, primary_key=True)
    memory_id = models.CharField(max_length=31, default="")

    def __str__(self) -> str:
        return f"{self.model}: {self.memory_id}"
