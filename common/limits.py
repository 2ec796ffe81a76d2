"""How many of a thing there may be, where each costs others something: who has as many as fit adds no more.

The settings name the numbers; whatever makes such a row asks here first, at every door.
"""

from typing import Any

from django.core.exceptions import ValidationError


class TooMany(ValidationError):
    """There are as many as fit; the words say of what, and what to do."""

    def __init__(self, most: int, said: Any) -> None:
        super().__init__(said, code="too_many", params={"most": most})


def room(rows: Any, most: int, said: Any) -> None:
    """Raises TooMany where the queryset has `most` rows already. `said` is a text that may name %(most)s.

    Of additions at the same moment a few may slip past: that does no harm to a limit of this kind.
    """
    if rows[:most].count() >= most:
        raise TooMany(most, said)
