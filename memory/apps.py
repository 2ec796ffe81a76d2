from django.apps import AppConfig
from django.core import checks


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = "Knowledge"

    def ready(self) -> None:
        from memory.embeddings.checks import model_is_usable, server_has_pgvector

        checks.register(model_is_usable)
        checks.register(server_has_pgvector, checks.Tags.database)
