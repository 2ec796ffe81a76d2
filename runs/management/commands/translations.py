"""Keep the Chinese interface complete: find new words, compile, and say what is not translated."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config import translations


class Command(BaseCommand):
    help = "Bring the catalogue up to date with the interface, compile it, and list what it lacks."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing, only say what is wrong")

    def handle(self, *args: Any, **options: Any) -> None:
        catalog = translations.read()
        if not options["check"]:
            catalog = translations.update(catalog)
            translations.write(catalog)
        problems = translations.problems(catalog)
        for line in problems:
            self.stdout.write(line)
        if problems:
            sys.exit(1)
