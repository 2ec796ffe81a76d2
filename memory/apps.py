from django.apps import AppConfig
from django.core import checks
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
