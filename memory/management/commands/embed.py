"""manage.py embed"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common import sessions
from memory.embeddings import filling, store
from memory.embeddings.client import EmbeddingFailed
from memory.embeddings.models import BadModel, EmbeddingModel, configured


class Command(BaseCommand):
    help = "Embed every memory that has no vector by EMBEDDING_MODEL yet. May be stopped and called again."

    def handle(self, *args: Any, **options: Any) -> None:
        sessions.check()
        try:
            model = configured()
            if model is None:
                raise CommandError("EMBEDDING_MODEL is not set: search goes by words alone.")
            if lacking := store.problem():
                raise CommandError(lacking)
            self._fill(model)
        except BadModel as error:
            raise CommandError(str(error)) from None
        except (EmbeddingFailed, store.Unprepared) as error:
            raise CommandError(f"{error} What was embedded is kept; call it again.") from None

    def _fill(self, model: EmbeddingModel) -> None:
        everything, done = store.counts(model)
        self._say(done, everything)

        def report(written: int) -> None:
            nonlocal done
            done += written
            self._say(done, everything)

        filled = filling.fill(everything=True, report=report)
        store.drop_others(model)
        self.stdout.write(f"{filled} memories embedded by {model.name}.")

    def _say(self, done: int, everything: int) -> None:
        percent = 100 * done // everything if everything else 100
        self.stdout.write(f"{done} of {everything} ({min(percent, 100)} %)")
        self.stdout.flush()
