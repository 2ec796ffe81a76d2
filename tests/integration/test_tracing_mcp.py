"""Spans of MCP, both ways, and the traces that others name: ids are passed on, and nothing else."""

# ruff: noqa: F811 - fixtures of other modules

import pytest
from mcp.server._otel import OpenTelemetryMiddleware
from opentelemetry.trace import SpanKind

from common import trace_context, tracing
from common.current import working_for
from common.trace_ids import span_id, trace_id
from runs.actions import mcp
from runs.mcp.server import server
from runs.models import Approval, Run, ToolCall
from runs.observe.tracing import of_model
from tests.acting import approve, start
from tests.factories import MembershipFactory, ProjectFactory
from tests.scripted import call, in_order, say

from .outside import MAIL, work_off
from .test_mcp_door import Agent, agent, bearer, deciding, post  # noqa: F401
from .test_mcp_servers import accepted, crm, site  # noqa: F401
from .test_tracing import named, spans  # noqa: F401

pytestmark = pytest.mark.django_db

TRACE, SPAN = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
THEIRS = f"00-{TRACE:032x}-{SPAN:016x}-01"
OTHER = f"00-{TRACE + 1:032x}-{SPAN + 1:016x}-01"
NOT_ONE = [
    None,
    5,
    [THEIRS],
    "",
    THEIRS.upper(),
    THEIRS + "\n",
    THEIRS + "-00",
    "01" + THEIRS[2:],
    "ff" + THEIRS[2:],
    f"00-{0:032x}-{SPAN:016x}-01",
    f"00-{TRACE:032x}-{0:016x}-01",
    THEIRS.replace("4", "４"),
    THEIRS[:-1],
    "x" * 100_000,
]


def only(found, name):
    (span,) = named(found, name)
    return span


def ids(context):
    return context.trace_id, context.span_id


def links(span):
    return {ids(link.context) for link in span.links}


def test_only_a_traceparent_is_read_as_one():
    assert trace_context.read(THEIRS) == (TRACE, SPAN)
    assert str(trace_context.read(THEIRS[:-2] + "00")) == THEIRS  # what it says of sampling is left
    assert [trace_context.read(value) for value in NOT_ONE] == [None] * len(NOT_ONE)


def test_a_call_is_a_span_of_its_clients_trace_and_leads_to_its_run(agent, world, spans):
    agent.call("memory_search", meta={"traceparent": THEIRS, "baggage": "a=b"}, query="prices")

    run, span = Run.objects.get(), only(spans(), "tools/call memory_search")
    assert (span.kind, ids(span.parent)) == (SpanKind.SERVER, (TRACE, SPAN))
    assert span.context.trace_id == TRACE
    assert links(span) == {(trace_id(run.pk), span_id(run.pk))}
    told = dict(span.attributes)
    assert told.pop("jsonrpc.request.id").isdigit()
    assert told == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "memory_search",
        "gen_ai.tool.call.id": ToolCall.objects.get().call_id,
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "deputy.organization.id": world.organization.pk,
        "deputy.run.id": run.pk,
    }
    done = only(spans(), "execute_tool memory_search")
    assert (done.context.trace_id, links(done)) == (trace_id(run.pk), {ids(span.context)})


def test_what_is_executed_after_a_decision_still_leads_back_to_who_asked(agent, deciding, spans):
    agent.call("send_email", meta={"traceparent": THEIRS, "deputy/hold-seconds": 0}, **MAIL)
    asked = only(spans(), "tools/call send_email")
    approve(Approval.objects.get().pk, deciding)
    work_off()

    done, run = only(spans(), "execute_tool send_email"), Run.objects.get()
    assert (done.context.trace_id, done.parent.span_id) == (trace_id(run.pk), span_id(run.pk))
    assert links(done) == {ids(asked.context)}


def test_a_trace_in_the_header_is_the_parent_where_meta_has_none_and_a_link_beside_it(agent, spans):
    def listed(in_header, **meta):
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}}
        assert post(body=body, traceparent=in_header, **bearer(agent)).status_code == 200
        return named(spans(), "tools/list")[-1]

    assert ids(listed(OTHER).parent) == (TRACE + 1, SPAN + 1)
    both = listed(OTHER, traceparent=THEIRS)
    assert (ids(both.parent), links(both)) == ((TRACE, SPAN), {(TRACE + 1, SPAN + 1)})
    for value in NOT_ONE:
        span = listed("rubbish", traceparent=value)
        assert (span.parent, links(span), span.attributes["jsonrpc.request.id"]) == (None, set(), "7")


def test_nobody_hides_a_call_or_enters_anothers_run_by_what_they_say_of_traces(agent, spans):
    project = ProjectFactory()
    theirs = MembershipFactory(organization=project.organization).user
    other = Run.objects.get(pk=start(user=theirs, project=project, goal="Theirs", driver="external"))
    forged = f"00-{trace_id(other.pk):032x}-{span_id(other.pk):016x}-00"
    agent.call("memory_search", meta={"traceparent": forged}, query="prices")

    run = Run.objects.exclude(pk=other.pk).get()
    span, done = only(spans(), "tools/call memory_search"), only(spans(), "execute_tool memory_search")
    assert span.attributes["deputy.organization.id"] == run.organization_id != other.organization_id
    assert (span.attributes["deputy.run.id"], done.attributes["deputy.run.id"]) == (run.pk, run.pk)
    assert (done.context.trace_id, done.parent.span_id) == (trace_id(run.pk), span_id(run.pk))
    assert not ToolCall.objects.filter(run=other).exists()


def test_what_clients_write_names_no_span_and_failures_have_the_protocols_codes(agent, spans):
    with pytest.raises(ExceptionGroup):
        agent.call("secret-words", meta={"traceparent": THEIRS})
    agent.call("memory_search", query=5)

    unknown, refused = only(spans(), "tools/call"), only(spans(), "tools/call memory_search")
    assert (unknown.attributes["error.type"], unknown.attributes["rpc.response.status_code"]) == (
        "-32602",
    ) * 2
    assert refused.attributes["error.type"] == "tool_error"
    assert not (unknown.status.is_ok or refused.status.is_ok or "secret" in str(unknown.attributes))
    assert not [each for each in server.middleware if isinstance(each, OpenTelemetryMiddleware)]


def test_a_call_of_an_mcp_servers_tool_is_one_span_that_the_server_hears_of(world, crm, site, ask, spans):
    assert mcp.refresh(crm) == ""
    listing = only(spans(), "tools/list")
    assert (listing.kind, listing.attributes["server.port"]) == (SpanKind.CLIENT, site.port)
    mcp.accept(crm.tools.all(), world.user)
    run = ask(in_order(call(("crm.find_customer", {"name": "Ada"})), say("Found.")))

    span = only(spans(), "execute_tool crm.find_customer")
    told = {
        name: span.attributes[name] for name in span.attributes if not name.startswith(("deputy", "gen_ai"))
    }
    assert told.pop("jsonrpc.request.id").isdigit()
    assert told == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "server.address": "127.0.0.1",
        "server.port": site.port,
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }
    (heard,) = site.calls
    assert (
        heard["traceparent"]
        == heard["meta"]["traceparent"]
        == f"00-{trace_id(run.pk):032x}-{span.context.span_id:016x}-01"
    )
    assert not heard["meta"].keys() & {"baggage", "tracestate"}


@pytest.mark.parametrize(("mode", "kind"), [("error", "tool_error"), ("crash", "-32603")])
def test_a_failure_of_an_mcp_server_is_named_as_the_conventions_name_it(
    world, crm, site, ask, spans, mode, kind
):
    accepted(crm, world.user)
    site.behave(mode=mode)
    ask(in_order(call(("crm.find_customer", {"name": "Ada"})), say("Not found.")))

    span = only(spans(), "execute_tool crm.find_customer")
    assert (span.attributes["error.type"], span.status.is_ok) == (kind, False)


def test_a_model_that_is_asked_over_the_network_says_where(spans, monkeypatch, world):
    monkeypatch.setenv("DEPUTY_MODEL_BASE_URL", "https://models.example/v1")
    with working_for("run_1", "run_1", world.organization.pk):
        with of_model("compatible:tiny", "agent", "role", "run_1", None):
            pass
        with of_model("local", "agent", "role", "run_1", None):
            pass

    asked, embedded = spans()
    assert (asked.attributes["server.address"], asked.attributes["server.port"]) == ("models.example", 443)
    assert not [name for name in embedded.attributes if name.startswith("server.")]


def test_without_an_exporter_nothing_is_traced_kept_or_sent(agent, world, crm, site, ask):
    assert not tracing.exporting
    agent.call("memory_search", meta={"traceparent": THEIRS}, query="prices")
    accepted(crm, world.user)
    ask(in_order(call(("crm.find_customer", {"name": "Ada"})), say("Found.")))

    assert set(ToolCall.objects.values_list("traceparent", flat=True)) == {""}
    (heard,) = site.calls
    assert heard["traceparent"] is None and "traceparent" not in heard["meta"]
