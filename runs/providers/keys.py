"""How an organization asks a provider by a key and an address of its own."""

from dataclasses import dataclass, field

from common.db import row
from common.sealed import Unreadable, unseal

PROVIDERS = frozenset({"openai", "ollama", "compatible", "anthropic", "google"})  # ModelProvider
OWN = "SELECT sealed_key, base_url FROM runs_modelkey WHERE organization_id = %s AND provider = %s"


@dataclass(frozen=True)
class Own:
    """What an organization has set for a provider. `problem` says why it cannot be used."""

    api_key: str = field(default="", repr=False)
    base_url: str = ""
    problem: str = ""


def of(organization_id: str, model: str) -> Own | None:
    """What the organization has set for the model's provider; None where the environment counts."""
    provider = provider_of(model)
    if not organization_id or provider not in PROVIDERS:
        return None
    found = row(OWN, [organization_id, provider])
    return read(*found) if found else None


def provider_of(model: str) -> str:
    """The part of a model's name that says who answers for it."""
    return model.strip().partition(":")[0]


def read(sealed_key: str, base_url: str) -> Own:
    """What the columns say. A key that cannot be read is a problem, and never a reason to ask by another."""
    try:
        return Own(unseal(sealed_key) if sealed_key else "", base_url.strip())
    except Unreadable as error:
        return Own(problem=str(error))
