"""manage.py retrieval_report PATH/SET [--json]"""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.measure import BadSet, report


class Command(BaseCommand):
    help = (
        "Measure search on a set (corpus.jsonl, queries.jsonl): recall@10, nDCG@10, MRR@10. Leaves nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("set", metavar="PATH/SET")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(options["set"])
        try:
            numbers = report(folder).as_dict()
        except BadSet as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps({"set": folder.name} | numbers))
            return
        self.stdout.write(f"{folder.name}: {numbers['texts']} texts, {numbers['queries']} queries")
        if numbers["unanswerable"] or numbers["empty"]:
            without = f"{numbers['unanswerable']} queries without an answer, {numbers['empty']} empty texts"
            self.stdout.write(f"left out: {without}")
        for name in ("recall@10", "nDCG@10", "MRR@10"):
            self.stdout.write(f"{name:<10} {numbers[name]:.4f}")
