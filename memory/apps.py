from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy

from common import labels
from groups import meaning


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = gettext_lazy("Knowledge")

    def ready(self) -> None:
        labels.translate(self)
        from memory.embeddings.checks import model_is_usable, server_has_pgvector

        checks.register(model_is_usable)
        checks.register(server_has_pgvector, checks.Tags.database)
        connection_created.connect(_never_compile)
        meaning.register(Texts())


class Texts:
    """Vectors for routing. What they come from is loaded where a model is set, and not before."""

    def known(self, texts: Sequence[str]) -> meaning.Vectors:
        return self._module().known(texts) if settings.EMBEDDING_MODEL else {}

    def of_goal(self, goal: str) -> Sequence[float] | None:
        return self._module().of_goal(goal) if settings.EMBEDDING_MODEL else None

    def embed(self, texts: Sequence[str]) -> meaning.Vectors:
        return self._module().embed(texts) if settings.EMBEDDING_MODEL else {}

    def _module(self) -> Any:
        from memory.embeddings import texts

        return texts


def _never_compile(connection: Any, **_: Any) -> None:
    """Servers with LLVM compile what looks expensive, which takes longer than any search."""
    with connection.cursor() as cursor:
        cursor.execute("SET jit = off")
