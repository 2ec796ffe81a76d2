"""How often each term occurs in each scope: what makes a word rare, and so worth more.

The counts are approximate. A memory that becomes active leaves a PendingMemory (a trigger's work: one
small insert, no lock, nothing two transactions could wait for each other over); memory.statistics folds
those into the counts later, and until then searches count them themselves. One that is counted and then
edited, retracted or deleted leaves its old terms as DepartedTerms, which are taken off in the same way.
"""

from django.contrib.postgres.search import SearchVectorField
from django.db import models

from common import ids


class TermCount(models.Model):
    """In how many memories of a scope a term occurs."""

    pk = models.CompositePrimaryKey("scope_key", "term")
    scope_key = models.UUIDField()
    term = models.CharField(max_length=64)
    memories = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.term}: {self.memories}"


class ScopeSize(models.Model):
    """How many memories a scope has, and how many terms they have together."""

    scope_key = models.UUIDField(primary_key=True)
    memories = models.PositiveIntegerField()
    terms = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"{self.scope_key}: {self.memories}"


class PendingMemory(models.Model):
    """A memory that is active and not yet counted."""

    memory_id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH)
    scope_key = models.UUIDField(db_index=True)

    def __str__(self) -> str:
        return self.memory_id


class DepartedTerms(models.Model):
    """The terms of a memory that was counted and is no more what, or where, it was."""

    scope_key = models.UUIDField(db_index=True)
    search_vector = SearchVectorField()
    length = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.length} terms of {self.scope_key}"
