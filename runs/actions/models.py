"""The models of an organization: by whose key each provider is asked, which answer, and trying one."""

import time
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from common.api import throttles
from groups.actors import Actor
from groups.models import Role
from policy.authority import About, Verb, may
from runs.models import CardState, ModelKey, RemoteAgent, TriedModel
from runs.providers import asking, failures, keys, registry
from runs.providers.base import Message, ModelSettings, ProviderError

TRY_SECONDS = 20.0
TRIES, PER_SECONDS = 6, 60.0  # of one person, and of one organization
QUESTION = "Reply with one short sentence: are you there?"
MOST_SAID = 200


class TooMany(Exception):
    """Nobody is asked before `seconds` have passed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many tries: wait {seconds:.0f} seconds.")
        self.seconds = seconds


@dataclass(frozen=True)
class Source:
    """By whose key and where a provider is asked. `key`: here, environment, missing or none (it needs none).

    `problem` is what a run would be told that asked it now, `host` whom it asks. Keys are in none of them.
    """

    provider: str
    key: str
    host: str
    problem: str
    variables: tuple[str, ...]
    in_environment: bool
    set_here: ModelKey | None


def sources(organization_id: str) -> list[Source]:
    """Deputy's own providers, for the organization."""
    rows = {row.provider: row for row in ModelKey.objects.filter(organization_id=organization_id)}
    return [_source(provider, rows.get(provider)) for provider in registry.BUILT_IN]


def _source(provider: str, row: ModelKey | None) -> Source:
    own = keys.read(row.sealed_key, row.base_url) if row else None
    known, problem = registry.BUILT_IN[provider], ""
    try:
        registry.get(f"{provider}:any", own)
    except ProviderError as error:
        problem = error.message
    if own is not None:
        key = "here" if own.api_key or own.problem else "none"
    elif registry.in_environment(provider):
        key = "environment"
    else:
        key = "missing" if problem else "none"
    host = registry.host_of(f"{provider}:any", own)
    return Source(provider, key, host, problem, known.variables, registry.in_environment(provider), row)


def problem(organization_id: str, model: str) -> str:
    """Why no run of the organization could use the model; empty where one can, as far as is known unasked."""
    try:
        registry.check(model, organization_id)
    except ProviderError as error:
        return error.message
    return ""


def answering(organization_id: str) -> set[str]:
    """The models to offer: the deployment's, the embedded one, those that answered when they were tried, and
    those that roles use and nothing is known against.
    """
    found = {settings.DEPUTY_MODEL, "local"}
    if not organization_id:
        return found
    tried = dict(TriedModel.objects.filter(organization_id=organization_id).values_list("model", "error"))
    used = Role.objects.filter(organization_id=organization_id).exclude(model="")
    found |= {*used.values_list("model", flat=True), *(model for model, said in tried.items() if not said)}
    remote = RemoteAgent.objects.filter(
        organization_id=organization_id, state=CardState.ACCEPTED, enabled=True
    )
    found |= {f"{registry.REMOTE}:{name}" for name in remote.values_list("name", flat=True)}
    return {model for model in found if not tried.get(model) and not problem(organization_id, model)}


def try_model(actor: Actor, organization_id: str, model: str) -> TriedModel:
    """Ask the model one tiny question by the organization's way to it, and keep what came of it.

    Raises NotAllowed and TooMany.
    """
    may(actor, Verb.TRY_MODEL, About(organization_id))
    model = model.strip()[:200]
    for key in (f"try-model user {actor.user_id}", f"try-model {organization_id}"):
        if wait := throttles.take(key, TRIES, PER_SECONDS):
            raise TooMany(wait)
    begun = time.monotonic()
    error, said = _asked(organization_id, model)
    spent = int((time.monotonic() - begun) * 1000)
    with transaction.atomic():
        tried, _ = TriedModel.objects.update_or_create(
            organization_id=organization_id,
            model=model,
            defaults={
                "error": error,
                "said": said[:MOST_SAID],
                "milliseconds": spent,
                "tried_at": Now(),
                "tried_by": actor.user,
            },
        )
        tried.refresh_from_db()
    return tried


def _asked(organization_id: str, model: str) -> tuple[str, str]:
    """The error's code, empty where it answered; and the words of either."""

    def how(name: str) -> ModelSettings:
        return ModelSettings(model=name, timeout=min(TRY_SECONDS, registry.seconds(model)))

    own = keys.of(organization_id, model)
    try:
        reply = asking.ask(model, [Message("user", QUESTION)], (), how, own)
    except ProviderError as error:
        return error.code, error.message
    said = " ".join(reply.content.split()) or "…"
    return "", failures.redacted(said, getattr(registry.get(model, own)[0], "api_key", ""))
