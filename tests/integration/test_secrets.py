"""A secret that passes through a run shows up in no place where people or logs see it."""

import json
import logging

import pytest

from common import logs, redact
from groups.models import Token
from groups.scopes import SCOPES
from runs.log.verify import verify
from runs.models import McpServer, RunEvent, ToolCall
from runs.providers.base import ProviderError
from tests.admin_world import client_of, superuser, url
from tests.integration.test_prune import tables_with
from tests.scripted import call, say

pytestmark = pytest.mark.django_db

CANARY = "canary-4cf1d0a2b6"
SECRETIVE = {"api_key": CANARY, "headers": [{"Authorization": f"Bearer {CANARY}"}], "note": "plain-words"}


@pytest.fixture
def told(ask):
    """A run whose agent called a tool with arguments named like secrets."""
    replies = [call(("no_such_tool", SECRETIVE)), say("Done.")]
    return ask(lambda messages, facts: replies.pop(0))


def test_arguments_named_like_secrets_are_masked_on_every_page(told):
    client = client_of(superuser())
    asked = RunEvent.objects.get(run=told, type="message.created", payload__role="assistant", seq__lt=5)
    made = ToolCall.objects.get(run=told)
    assert CANARY in json.dumps(asked.payload)  # the log has what was said: it is replayed

    for address in (
        url("runs_run_change", told.pk),
        url("runs_run_live", told.pk),
        url("runs_runevent_change", asked.pk),
        url("runs_toolcall_change", made.pk),
        url("runs_runevent_changelist"),
        url("runs_toolcall_changelist"),
        url("runs_decisions_export"),
    ):
        assert CANARY not in client.get(address).getvalue().decode(), address
    shown = client.get(url("runs_toolcall_change", made.pk)).content.decode()
    assert redact.MASK in shown and "plain-words" in shown


def test_and_in_the_events_that_programs_read_whose_digests_stay(told, client):
    _, secret = Token.objects.issue(told.organization, told.user, scopes=list(SCOPES))
    answer = client.get(f"/api/runs/{told.pk}/events/", headers={"Authorization": f"Bearer {secret}"})

    assert CANARY not in answer.content.decode()
    assert redact.MASK in answer.content.decode()
    digests = [event["digest"] for event in answer.json()["results"]]
    assert digests == list(RunEvent.objects.filter(run=told).order_by("seq").values_list("digest", flat=True))
    assert verify(told.pk).broken == ""


def test_a_models_key_is_in_no_event_and_no_log(ask, monkeypatch, caplog):
    """Servers like to quote the key they refuse."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    redact.environment_secrets.cache_clear()
    refused = ProviderError("MODEL_REFUSED", "The model's server refused the key.")
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("runs").warning("refused: %s", CANARY)
        run = ask(lambda messages, facts: refused)

    lines = [form.format(record) for record in caplog.records for form in (logs.Plain(), logs.Json())]
    redact.environment_secrets.cache_clear()
    assert lines and not [line for line in lines if CANARY in line]
    assert not [e for e in RunEvent.objects.filter(run=run) if CANARY in json.dumps(e.payload)]


def test_the_headers_of_an_mcp_server_are_nowhere_in_the_database_as_they_were_given(world):
    server = McpServer(organization=world.organization, name="crm", url="https://crm.example.com/mcp")
    server.keep_headers({"Authorization": f"Bearer {CANARY}"})
    server.save()

    assert server.headers == {"Authorization": f"Bearer {CANARY}"}
    assert tables_with(CANARY) == set()


def test_a_tokens_secret_is_nowhere_in_the_database(told):
    _, secret = Token.objects.issue(told.organization, told.user, scopes=list(SCOPES))
    assert tables_with(secret) == set()
