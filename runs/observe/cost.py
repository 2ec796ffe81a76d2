"""What a run has cost, as far as the prices of its models are known. Prices are today's."""

from dataclasses import dataclass
from decimal import Decimal

from common.db import rows

FREE = "local"  # the embedded model
# The run's and its children's tokens by currency, those of models without a price under none.
SPENT = """
WITH RECURSIVE below AS (
    SELECT id, organization_id FROM runs_run WHERE id = %s
    UNION ALL SELECT r.id, r.organization_id FROM runs_run r JOIN below b ON r.parent_run_id = b.id
),
said AS (
    SELECT b.organization_id, COALESCE(NULLIF(e.payload->>'asked', ''), e.payload->>'model') AS model,
           COALESCE((e.payload #>> '{usage,input_tokens}')::numeric, 0) AS given,
           COALESCE((e.payload #>> '{usage,output_tokens}')::numeric, 0) AS written
    FROM below b CROSS JOIN LATERAL (
        SELECT payload FROM runs_runevent
        WHERE run_id = b.id AND type = 'message.created' AND payload->>'role' = 'assistant'
        OFFSET 0  -- a run at a time: nobody can guess how few they are, and all months would be read through
    ) e
)
SELECT p.currency, sum(given * p.input_price + written * p.output_price) / 1000000, sum(given + written)
FROM said LEFT JOIN runs_modelprice p ON p.organization_id = said.organization_id AND p.model = said.model
WHERE said.model IS DISTINCT FROM %s GROUP BY p.currency ORDER BY p.currency
"""


@dataclass(frozen=True)
class Cost:
    """`amounts`: (currency, how much), where a price is known; `unpriced`: tokens of models without one."""

    amounts: tuple[tuple[str, Decimal], ...]
    unpriced: int

    @property
    def said(self) -> str:
        """The amounts in words: `0.0123 USD`."""
        return " + ".join(f"{_short(amount)} {currency}" for currency, amount in self.amounts)


def of_run(run_id: str) -> Cost:
    """Of the run and those below it: one query."""
    found = rows(SPENT, [run_id, FREE])
    amounts = tuple((currency, Decimal(amount)) for currency, amount, _ in found if currency)
    return Cost(amounts, sum(int(tokens) for currency, _, tokens in found if not currency))


def _short(amount: Decimal) -> str:
    """Cents where there are some, else two digits that tell something."""
    if amount == 0 or amount >= 1:
        return f"{amount:.2f}"
    return f"{amount:.{max(2, 1 - amount.adjusted())}f}"
