"""MCP's official conformance kit, over a real server, with a worker beside it."""

import threading
from importlib import import_module, reload

import pytest
from django.db import connection
from django.test import override_settings

from groups.models import Token
from groups.scopes import SCOPES
from runs.tools import registry
from tests import conformance
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.outside import work_off
from tests.server import serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def kit():
    return conformance.command() or pytest.skip("the kit needs node 22 or newer, or MCP_CONFORMANCE")


@pytest.fixture
def fixture_tools():
    before = dict(registry.all_tools())
    registry._tools.clear()
    reload(import_module("tests.conformance_tools"))
    yield
    registry._tools.clear()
    registry._tools.update(before)


@pytest.fixture
def worker():
    over = threading.Event()

    def work():
        try:
            while not over.wait(0.05):
                work_off()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join(10)


@pytest.fixture
def url(fixture_tools, worker, db):
    project = ProjectFactory()
    membership = MembershipFactory(organization=project.organization)
    _, secret = Token.objects.issue(project.organization, membership.user, scopes=list(SCOPES))
    limits = {"API_PER_MINUTE": 100_000, "RUN_STEPS": 10_000, "OPEN_APPROVALS": 1000}
    with (
        override_settings(ALLOWED_HOSTS=["127.0.0.1", "localhost"], **limits),
        serving(conformance.signed_in(secret)) as address,
    ):
        yield f"{address}/mcp"


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_kit_finds_nothing_but_what_is_known(kit, url, tmp_path, revision):
    scores = conformance.ask(kit, url, tmp_path, "--requirements", revision)

    print(conformance.table(revision, scores))
    failed = {(scenario, check) for scenario, score in scores.items() for check, _ in score.failed}
    known = {(scenario, check) for scenario, checks in KNOWN.items() for check in checks}
    assert failed <= known, failed - known
    assert (scores["tools-list"].failed, scores["tools-call-simple-text"].failed) == ((), ())


# What Deputy does not do, by scenario and check. docs/standards.md gives the reasons.
KNOWN = {
    "caching": {
        "sep-2549-prompts-list-caching-hints",
        "sep-2549-resources-list-caching-hints",
        "sep-2549-resources-templates-list-caching-hints",
    },
    "completion-complete": {"completion-complete"},
    "elicitation-sep1034-defaults": {"elicitation-sep1034-general"},
    "elicitation-sep1330-enums": {"elicitation-sep1330-general"},
    "input-required-result-basic-elicitation": {"sep-2322-elicitation-incomplete"},
    "input-required-result-basic-list-roots": {"sep-2322-list-roots-incomplete"},
    "input-required-result-basic-sampling": {"sep-2322-sampling-incomplete"},
    "input-required-result-capability-check": {"sep-2322-respect-client-capabilities"},
    "input-required-result-multi-round": {"sep-2322-multi-round-r1"},
    "input-required-result-multiple-input-requests": {"sep-2322-multiple-inputs-incomplete"},
    "input-required-result-non-tool-request": {"sep-2322-non-tool-incomplete"},
    "logging-set-level": {"logging-set-level"},
    "prompts-get-embedded-resource": {"prompts-get-embedded-resource"},
    "prompts-get-simple": {"prompts-get-simple"},
    "prompts-get-with-args": {"prompts-get-with-args"},
    "prompts-get-with-image": {"prompts-get-with-image"},
    "prompts-list": {"prompts-list"},
    "resources-list": {"resources-list"},
    "resources-read-binary": {"resources-read-binary"},
    "resources-read-text": {"resources-read-text"},
    "resources-subscribe": {"resources-subscribe"},
    "resources-templates-read": {"resources-templates-read"},
    "resources-unsubscribe": {"resources-unsubscribe"},
    "server-stateless": {
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-missing-capability-http-400",
        "sep-2575-server-no-log-without-loglevel",
        "sep-2575-server-rejects-undeclared-capability",
    },
    "tasks-lifecycle": {"sep-2663-tasks-get-status-failed"},
    "tasks-mrtr-composition": {"sep-2663-mrtr-synchronous-before-task-creation"},
    "tasks-mrtr-input": {"tasks-mrtr-partial-fulfillment"},
    "tasks-required-task-error": {"sep-2663-server-returns-missing-capability-when-required"},
    "tools-call-audio": {"tools-call-audio"},
    "tools-call-elicitation": {"tools-call-elicitation"},
    "tools-call-embedded-resource": {"tools-call-embedded-resource"},
    "tools-call-image": {"tools-call-image"},
    "tools-call-mixed-content": {"tools-call-mixed-content"},
    "tools-call-sampling": {"tools-call-sampling"},
    "tools-call-with-logging": {"tools-call-with-logging"},
}
