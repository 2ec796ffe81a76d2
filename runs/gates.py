"""The gate of the transaction at hand."""

from runs.session import Session
from runs.tools.call import Gate


def open_gate(session: Session) -> Gate:
    """The gate as it stands in this transaction; a step asks for the user's standing once."""
    if session.gate is None:
        place = (session.organization_id, session.project_id, session.group_id)
        session.gate = Gate.open(*place, session.user_id, session.delegated)
    gate: Gate = session.gate
    return gate
