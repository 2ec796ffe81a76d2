"""Models that fail: a pause for all who want to ask, and a circuit that opens on one that hangs.

`Retry-After` of a 429 holds for every caller of the model. After OPEN_AT failures in a row the circuit is
open: nobody asks for a while, longer after each further failure, then one call at a time shows whether the
model is back. Other models are not touched. The table is what all carriers go by.
"""

from collections import Counter
from typing import Any

from runs.models.outbound import OPEN_AT
from runs.outbound.table import Table, Taken

COUNTED = frozenset({"MODEL_TIMEOUT", "MODEL_CONNECTION", "MODEL_UNAVAILABLE"})
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
LONGEST_WISH = 900.0  # a server that asks for more than this is not waited for


class Circuits:
    """What this carrier has heard of models since it last noted it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.failures: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        self.wishes: dict[str, float] = {}
        self.works: set[str] = set()
        self.troubled: set[str] = set()  # those the table knows of, as far as we know

    def heard(self, call: Taken, answer: dict[str, Any]) -> None:
        """A model answered, or did not."""
        if not call.of_model:
            return
        code, said, _, wish = answer.get("failed") or ("", "", False, None)
        if code == "MODEL_RATE_LIMITED" and wish and wish <= LONGEST_WISH:
            self.wishes[call.target] = max(wish, self.wishes.get(call.target, 0.0))
            self.reasons[call.target] = said
        elif code in COUNTED:
            self.failures[call.target] += 1
            self.reasons[call.target] = said
            self.works.discard(call.target)
        elif not code:
            if call.troubled:
                self.troubled.add(call.target)
            self.works.add(call.target)
            self.failures.pop(call.target, None)

    async def note(self) -> None:
        """Write down what is new. Costs nothing while all models work."""
        failures, self.failures = self.failures, Counter()
        wishes, self.wishes = self.wishes, {}
        works, self.works = self.works & self.troubled, set()
        for target in {*failures, *wishes}:
            reason = self.reasons.pop(target, "")
            count = await self.table.failed(target, failures[target], reason, wishes.get(target, 0.0))
            self.troubled.add(target)
            if count >= OPEN_AT:
                await self.table.pause(target, pause_after(count))
        if works:
            await self.table.works(works)
            self.troubled = await self.table.troubled()


def pause_after(failures: int) -> float:
    """For how many seconds a model that has failed so often in a row gets no calls."""
    return min(FIRST_PAUSE * 2.0 ** min(failures - OPEN_AT, 10), LONGEST_PAUSE)
