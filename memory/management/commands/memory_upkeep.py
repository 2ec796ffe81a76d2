"""manage.py memory_upkeep"""

from typing import Any

from django.core.management.base import BaseCommand

from memory.upkeep import upkeep


class Command(BaseCommand):
    help = "Count what is not yet counted and remove what expired over a week ago. Safe at any time."

    def handle(self, *args: Any, **options: Any) -> None:
        done = upkeep()
        self.stdout.write(f"{done['counted']} memories counted, {done['removed']} removed.")
