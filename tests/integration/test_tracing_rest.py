"""Traces that callers name at REST and A2A (W3C Trace Context), and those that webhooks name to receivers."""

# ruff: noqa: F811 - fixtures of other modules

import pytest

from common import tracing
from common.trace_ids import span_id, trace_id
from groups.models import Project
from runs.execution import executor
from runs.models import Run, ToolCall, WebhookDelivery
from runs.webhooks import sending
from tests.a2a_client import A2A, message
from tests.integration.api_client import Api
from tests.integration.test_tracing import named, spans  # noqa: F401
from tests.integration.test_tracing_mcp import NOT_ONE, OTHER, SPAN, THEIRS, TRACE, ids, links
from tests.integration.test_webhooks import hook
from tests.scripted import Scripted, in_order, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


def begun(api, **headers):
    """A run that is started over REST."""
    project = Project.objects.get(organization=api.organization).pk
    answer = api.post("runs/", {"goal": "Prices?", "project": project}, **headers)
    assert answer.status_code == 202, answer.content
    return Run.objects.get(pk=answer.json()["id"])


def test_a_run_started_over_rest_is_linked_with_its_callers_trace(
    api, spans, django_capture_on_commit_callbacks
):
    Scripted.play = staticmethod(in_order(say("9")))
    run = begun(api, traceparent=THEIRS)
    with django_capture_on_commit_callbacks(execute=True):
        executor.run(run.pk)  # a worker, some time later

    (asked,) = [span for span in spans() if span.name.startswith("POST ")]
    (whole,) = named(spans(), "invoke_agent personal")
    assert (ids(asked.parent), asked.context.trace_id) == ((TRACE, SPAN), TRACE)
    assert [ids(link.context) for link in asked.links] == [(trace_id(run.pk), span_id(run.pk))]
    assert asked.attributes["http.response.status_code"] == 202
    assert asked.attributes["deputy.run.id"] == run.pk and asked.name == "POST /api/runs/"
    assert (whole.context.trace_id, whole.parent, links(whole)) == (
        trace_id(run.pk),
        None,
        {ids(asked.context)},
    )
    assert "traceparent" not in api.get(f"runs/{run.pk}/").json()


def test_calls_of_outside_agents_and_tasks_of_a2a_lead_back_to_who_asked(world, api, spans, settings):
    body = {"goal": "Prices?", "driver": "external", "project": world.project.pk}
    started = api.post("runs/", body, traceparent=OTHER).json()
    asked = {"call_id": "1", "name": "memory_search", "arguments": {"query": "prices"}}
    assert api.post(f"runs/{started['id']}/tool-calls/", asked, traceparent=THEIRS).status_code == 200
    (of_call,) = [span for span in spans() if span.name == "POST /api/runs/{pk}/tool-calls/"]
    (done,) = named(spans(), "execute_tool memory_search")
    assert ids(of_call.parent) == (TRACE, SPAN) and links(done) == {ids(of_call.context)}
    assert ToolCall.objects.get().traceparent[3:35] == f"{TRACE:032x}"

    settings.A2A_HOLD_SECONDS = 0
    world.project.published = True
    world.project.save()
    peer = A2A(world.user, world.organization, f"/a2a/projects/{world.project.pk}")
    task = peer.rpc("SendMessage", {"message": message("Prices?")}, traceparent=THEIRS)["task"]
    assert Run.objects.get(pk=task["id"]).traceparent[3:35] == f"{TRACE:032x}"


def test_what_is_no_traceparent_is_ignored_and_nothing_is_decided_by_one(api, spans):
    for value in (
        *(value for value in NOT_ONE if isinstance(value, str) and "\n" not in value),
        f"{THEIRS},{OTHER}",
    ):
        run = begun(api, traceparent=value.encode("utf-8", "ignore").decode("latin-1")[:60_000])
        assert run.traceparent == ""
    assert not [span for span in spans() if span.name.startswith("POST ")]
    other = begun(api)
    forged = f"00-{trace_id(other.pk):032x}-{span_id(other.pk):016x}-00"
    mine = begun(api, traceparent=forged)
    assert mine.pk != other.pk and mine.root_id == mine.pk
    assert api.client.post("/api/runs/", headers={"traceparent": THEIRS}).status_code == 401
    refused = spans()[-1]
    assert (
        refused.attributes["http.response.status_code"] == 401 and "deputy.run.id" not in refused.attributes
    )


def test_webhooks_name_the_span_of_the_run_they_tell_of(world, ask, spans):
    endpoint = hook(world)
    run = ask(in_order(say("9")))
    delivery = WebhookDelivery.objects.get(endpoint=endpoint, event="run.completed")
    headers, _ = sending.written(delivery, run.created_at)
    assert headers["traceparent"] == f"00-{trace_id(run.pk):032x}-{span_id(run.pk):016x}-01"
    headers, _ = sending.written(sending.ping(endpoint), run.created_at)
    assert "traceparent" not in headers


def test_without_an_exporter_nothing_is_kept_or_sent(world, api, ask):
    assert not tracing.exporting
    endpoint = hook(world)
    assert begun(api, traceparent=THEIRS).traceparent == ""
    run = ask(in_order(say("9")))
    delivery = WebhookDelivery.objects.filter(endpoint=endpoint).first()
    assert "traceparent" not in sending.written(delivery, run.created_at)[0]
