from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy

from common import labels


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = gettext_lazy("Knowledge")

    def ready(self) -> None:
        labels.translate(self)
        from memory.embeddings.checks import model_is_usable, server_has_pgvector

        checks.register(model_is_usable)
        checks.register(server_has_pgvector, checks.Tags.database)
        connection_created.connect(_never_compile)


def _never_compile(connection: Any, **_: Any) -> None:
    """Servers with LLVM compile what looks expensive, which takes longer than any search."""
    with connection.cursor() as cursor:
        cursor.execute("SET jit = off")
