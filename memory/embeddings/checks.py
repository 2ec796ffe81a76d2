"""What `manage.py check` says about EMBEDDING_MODEL. Nothing, where it is not set."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning


def model_is_usable(**_: Any) -> list[CheckMessage]:
    """memory.E001: the model, or a variable it needs."""
    if not settings.EMBEDDING_MODEL:
        return []
    from memory.embeddings.models import BadModel, configured

    try:
        configured()
    except BadModel as bad:
        return [Error(str(bad), id="memory.E001")]
    return []


def server_has_pgvector(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """memory.W001: search goes by words alone on this server. Asked where the database may be."""
    if not settings.EMBEDDING_MODEL or not databases:
        return []
    from memory.embeddings.store import problem

    lacking = problem()
    return (
        [Warning(lacking, hint="Until then search goes by words alone.", id="memory.W001")] if lacking else []
    )
