"""Spans of runs: one trace a tree, whoever did the work, and none where nobody wants them."""

import http.server
import subprocess
import sys
import threading

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from common import conventions, telemetry, tracing
from common.trace_ids import span_id, trace_id
from launch.home import PROJECT
from runs.models import Run
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def spans(monkeypatch):
    """What is exported from now on, in the order in which it ended."""
    memory = InMemorySpanExporter()
    provider = telemetry.TracerProvider(id_generator=telemetry.Ids(), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    monkeypatch.setattr(telemetry, "tracer", lambda: provider.get_tracer("test"))
    monkeypatch.setattr(tracing, "exporting", True)
    yield memory.get_finished_spans
    provider.shutdown()


@pytest.fixture
def escalated(ask, world, spans, django_capture_on_commit_callbacks):
    """A run whose group has spoken; its child and it."""
    play = by_role(
        Personal_agent=[
            call(("escalate_to_group", {"goal": "Prices?", "group_id": world.group.pk})),
            say("9"),
        ],
        researcher=[say("EVIDENCE: secret words")],
        analyst=[call(("memory_search", {"query": "prices"})), say("EVIDENCE: 9")],
        lead=[say("DECISION: 9")],
    )
    with django_capture_on_commit_callbacks(execute=True):
        run = ask(play, goal="What do they charge?")
    return run, Run.objects.get(parent_run=run)


def named(found, name):
    return [span for span in found if span.name == name]


def test_a_tree_is_one_trace_with_a_span_for_each_run(escalated, spans):
    run, child = escalated
    (whole,), (group,) = named(spans(), "invoke_agent personal"), named(spans(), "invoke_agent group")

    assert {span.context.trace_id for span in spans()} == {trace_id(run.pk)}
    assert (whole.context.span_id, whole.parent) == (span_id(run.pk), None)
    assert (group.context.span_id, group.parent.span_id) == (span_id(child.pk), span_id(run.pk))
    assert whole.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert whole.attributes["deputy.run.status"] == "completed"
    assert abs(whole.start_time / 1e9 - run.created_at.timestamp()) < 60
    assert whole.start_time <= group.start_time <= group.end_time <= whole.end_time


def test_models_tools_and_searches_are_spans_inside_their_run(escalated, spans):
    run, child = escalated
    chats = named(spans(), "chat scripted")
    (escalating,) = named(spans(), "execute_tool escalate_to_group")
    (recalling,) = named(spans(), "execute_tool memory_search")

    assert [span.parent.span_id for span in chats].count(span_id(run.pk)) == 2
    assert [span.parent.span_id for span in chats].count(span_id(child.pk)) == 4
    assert chats[0].attributes["gen_ai.provider.name"] == "scripted"
    assert [span.attributes["gen_ai.response.finish_reasons"] for span in chats].count(("tool_calls",)) == 2
    assert {span.attributes["gen_ai.response.finish_reasons"] for span in chats} == {
        ("stop",),
        ("tool_calls",),
    }
    assert chats[0].attributes["gen_ai.usage.input_tokens"] == 10
    assert chats[0].attributes["gen_ai.agent.name"] == "Personal agent"
    assert escalating.parent.span_id == span_id(run.pk)
    assert recalling.attributes["gen_ai.tool.call.id"]
    assert {span.attributes["deputy.organization.id"] for span in spans()} == {run.organization_id}
    assert {span.name for span in spans()} >= {"search_memory"}


def test_no_words_of_the_run_leave_with_a_span(escalated, spans):
    told = [str(value) for span in spans() for value in (span.name, *span.attributes.values())]
    assert not [text for text in told if "charge" in text or "secret words" in text or "Prices" in text]


def test_what_fails_or_is_denied_says_so(ask, spans, world):
    world.membership.denied_tools = ["send_email"]
    world.membership.save()
    mail = {"to": ["a@example.com"], "subject": "s", "body": "b"}
    replies = [call(("send_email", mail), ("no_such_tool", {})), say("Then not.")]
    ask(lambda messages, facts: replies.pop(0))

    (denied,), (unknown,) = (
        named(spans(), f"execute_tool {name}") for name in ("send_email", "no_such_tool")
    )
    assert denied.attributes["error.type"] == "PERMISSION_DENIED"
    assert denied.attributes["deputy.policy.effect"] == "deny"
    assert unknown.attributes["error.type"] == "UNKNOWN_TOOL"
    assert not denied.status.is_ok


def test_spans_reach_a_collector_by_http(ask, monkeypatch, django_capture_on_commit_callbacks):
    got = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    exporter = telemetry.OTLPSpanExporter(f"http://127.0.0.1:{server.server_port}/v1/traces")
    provider = telemetry.export_to(exporter)
    monkeypatch.setattr(telemetry, "tracer", lambda: telemetry.tracer_of(provider))
    monkeypatch.setattr(tracing, "exporting", True)

    with django_capture_on_commit_callbacks(execute=True):
        run = ask(lambda messages, facts: say("9"))
    provider.shutdown()
    server.shutdown()

    sent = [
        (resource, span)
        for path, request in got
        for resource in request.resource_spans
        for scope in resource.scope_spans
        if scope.schema_url == conventions.SCHEMA_URL
        for span in scope.spans
        if path == "/v1/traces"
    ]
    assert {span.name for _, span in sent} == {"chat scripted", "invoke_agent personal", "search_memory"}
    assert {span.trace_id.hex() for _, span in sent} == {f"{trace_id(run.pk):032x}"}
    names = {attribute.key: attribute.value.string_value for attribute in sent[0][0].resource.attributes}
    assert names["service.name"] == "deputy"


def test_models_and_providers_are_named_as_the_conventions_name_them():
    named = {model: (conventions.provider(model), conventions.bare(model))
             for model in ("openai:gpt-5", "google:gemini-3", "ollama:qwen3:8b", "local")}  # fmt: skip
    assert named == {
        "openai:gpt-5": ("openai", "gpt-5"),
        "google:gemini-3": ("gcp.gemini", "gemini-3"),
        "ollama:qwen3:8b": ("ollama", "qwen3:8b"),
        "local": ("local", "local"),
    }


def test_nothing_is_imported_where_no_span_is_wanted():
    asked = "import common.tracing, sys; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", asked], cwd=PROJECT, capture_output=True, text=True, env={})
    assert done.stdout == "[]\n", done.stderr
