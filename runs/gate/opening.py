"""The gate of the transaction at hand."""

from collections.abc import Mapping
from typing import Any

from policy.provenance.terms import Facts
from runs.gate.provenance import Gathered
from runs.log.claimed import Session
from runs.tools.call import Gate


def open_gate(session: Session) -> Gate:
    """The gate as it stands in this transaction; a step asks for the user's standing once."""
    if session.gate is None:
        place = (session.organization_id, session.project_id, session.group_id)
        standing = session.log.standing if session.log else None
        session.gate = Gate.open(*place, session.user_id, session.delegated, standing)
        session.gate.trace = Heard(session)
    gate: Gate = session.gate
    return gate


class Heard:
    """Where values come from, by what the session's run has heard and read; gathered when it is asked."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Facts:
        kept: Gathered | None = self.session.cache.get("gathered")
        if kept is None or kept.state is not self.session.state:
            kept = gathered(self.session)
            self.session.cache["gathered"] = kept
        kept.declare = self.session.gate.declared
        return kept.facts(tool, arguments)


def gathered(session: Session) -> Gathered:
    """What the run has heard and read, from its first event on."""
    return Gathered(session.run_id, session.root_id, session.state, session.gate.declared)
