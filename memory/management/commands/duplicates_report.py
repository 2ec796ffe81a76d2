"""manage.py duplicates_report PAIRS.jsonl [--json]"""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.embeddings.client import EmbeddingFailed
from memory.embeddings.models import BadModel
from memory.measure import BadSet
from memory.measure_pairs import report


class Command(BaseCommand):
    help = (
        "Measure how rightly near-duplicates are found, on pairs that people judged: one"
        ' {"one": text, "other": text, "same": true} a line. It needs no database.'
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pairs", metavar="PAIRS.jsonl")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        path = Path(options["pairs"])
        try:
            numbers = report(path).as_dict()
        except (BadSet, BadModel, EmbeddingFailed) as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps({"set": path.name} | numbers))
            return
        self.stdout.write(f"{path.name}: {numbers['pairs']} pairs, {numbers['same']} of them the same")
        self.stdout.write(f"joined     {numbers['joined']}")
        for name in ("precision", "recall"):
            self.stdout.write(f"{name:<10} {numbers[name]:.3f}")
