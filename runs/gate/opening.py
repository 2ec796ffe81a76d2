"""The gate of the transaction at hand."""

from collections.abc import Mapping
from typing import Any

from policy.provenance.terms import Facts
from runs.gate.provenance import Gathered
from runs.log.claimed import ClaimedRun
from runs.tools.call import Gate


def open_gate(claimed: ClaimedRun) -> Gate:
    """The gate as it stands in this transaction; a step asks for the user's live boundary once."""
    if claimed.gate is None:
        scope = (claimed.organization_id, claimed.project_id, claimed.group_id)
        live = claimed.log.live if claimed.log else None
        above = (claimed.roles_above, claimed.groups_above)
        claimed.gate = Gate.open(*scope, claimed.user_id, claimed.delegated, live, *above)
        claimed.gate.trace = Heard(claimed)
    gate: Gate = claimed.gate
    return gate


class Heard:
    """Where values come from, by what the claimed run has heard and read; gathered when it is asked."""

    def __init__(self, claimed: ClaimedRun) -> None:
        self.claimed = claimed

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Facts:
        if self.claimed.log is not None:
            self.claimed.flush()  # the memories of a prompt and large results are looked up in the database
        kept: Gathered | None = self.claimed.cache.get("gathered")
        if kept is None or kept.state is not self.claimed.state:
            kept = gathered(self.claimed)
            self.claimed.cache["gathered"] = kept
        kept.declare = self.claimed.gate.declared
        return kept.facts(tool, arguments)


def gathered(claimed: ClaimedRun) -> Gathered:
    """What the run has heard and read, from its first event on."""
    return Gathered(claimed.run_id, claimed.root_id, claimed.state, claimed.gate.declared)
