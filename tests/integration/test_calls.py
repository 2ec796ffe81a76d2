"""Tool calls: checked, in order or side by side, and their answers in the log."""

import threading
from asyncio import CancelledError

import pytest

from runs.models import ToolCall
from runs.tools import registry
from runs.tools.base import ToolContext, ToolError
from tests.scripted import call, in_order, say

from .helpers import events, payload, state_of, types

pytestmark = pytest.mark.django_db


@pytest.fixture
def add_tool():
    """Register a tool for one test."""
    before = dict(registry.all_tools())
    yield lambda **about: registry.tool(description="for a test", **about)
    registry._tools.clear()
    registry._tools.update(before)


def results(run):
    """{call id: result or error code} as the state has it."""
    return {c.call_id: c.error["code"] if c.error else c.result for c in state_of(run).calls.values()}


def test_arguments_that_fail_the_schema_go_back_with_their_path(ask):
    run = ask(in_order(call(("memory_search", {"query": 5, "limit": 99})), say("ok")))

    error = payload(run, "tool.failed")["error"]
    assert run.status == "completed"
    assert error["code"] == "INVALID_ARGUMENTS"
    assert [e["path"] for e in error["errors"]] == ["/limit", "/query"]
    assert "/limit" in error["message"]


def test_an_unknown_tool_is_an_error_the_model_hears_of(ask):
    heard = []

    def play(messages, facts):
        heard.append(messages[-1].content)
        return say("ok") if len(heard) > 1 else call(("fly", {}))

    run = ask(play)

    assert run.output == "ok"
    assert "There is no tool 'fly'" in heard[1]


def test_arguments_no_json_could_be_made_of_are_never_run(ask):
    from runs.providers.base import Reply, ToolRequest

    broken = ToolRequest("memory_search", {}, problem="not JSON: expected , at position 7")
    run = ask(in_order(Reply("", (broken,)), say("ok")))

    assert payload(run, "tool.failed")["error"]["message"] == "not JSON: expected , at position 7"
    assert "tool.called" not in types(run)


def test_calls_that_only_read_run_side_by_side(ask, add_tool):
    both = threading.Barrier(2, timeout=10)

    @add_tool(name="meet")
    def meet(run: ToolContext, *, n: int) -> int:
        both.wait()  # passes only when two are in here at once
        return n

    run = ask(in_order(call(("meet", {"n": 1}), ("meet", {"n": 2})), say("ok")))

    assert list(results(run).values()) == [1, 2]


def test_calls_that_change_something_run_one_after_the_other_in_order(ask, add_tool):
    inside, order = [], []

    @add_tool(name="write", mutating=True, supports_parallel=False)
    def write(run: ToolContext, *, n: int) -> int:
        assert not inside
        inside.append(n)
        order.append(n)
        inside.clear()
        return n

    run = ask(in_order(call(*(("write", {"n": n}) for n in range(3))), say("ok")))

    assert order == [0, 1, 2]
    assert [kind for kind, _ in events(run) if kind.startswith("tool.")] == [
        "tool.called",
        "tool.completed",
    ] * 3


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, CancelledError])
def test_a_tool_that_raises_fails_its_call_and_tells_no_secrets(ask, add_tool, kind, transactional):
    @add_tool(name="burst", transactional=transactional)
    def burst(run: ToolContext) -> None:
        raise kind("password=hunter2")

    run = ask(in_order(call(("burst", {})), say("ok")))

    error = payload(run, "tool.failed")["error"]
    assert (run.status, error["code"]) == ("completed", "TOOL_ERROR")
    assert "hunter2" not in str(events(run))


def test_what_a_failing_database_tool_wrote_is_undone_and_the_step_stays(ask, add_tool, world):
    @add_tool(name="half", transactional=True, mutating=True)
    def half(run: ToolContext) -> None:
        world.project.__class__.objects.filter(pk=run.project_id).update(name="Changed")
        raise ToolError("no", "NO")

    run = ask(in_order(call(("half", {})), say("ok")))

    world.project.refresh_from_db()
    assert (run.status, world.project.name) == ("completed", "Atlas")
    assert list(results(run).values()) == ["NO"]


def test_a_large_result_is_stored_once_and_the_model_gets_its_beginning_and_its_page(ask, add_tool):
    @add_tool(name="big")
    def big(run: ToolContext) -> str:
        return "x" * 20_000

    heard = []

    def play(messages, facts):
        heard.append(messages[-1].content)
        return say("ok") if len(heard) > 1 else call(("big", {}))

    run = ask(play)

    kept = payload(run, "tool.completed")
    assert "result" not in kept
    assert (kept["bytes"], len(kept["preview"])) == (20_002, 2_000)
    assert heard[1].startswith("xxx")
    assert heard[1].endswith("…\n[20,000 characters in all, on page tool-2: context_expand opens it]")
    assert len(str(payload(run, "context.changed"))) < 8_192
    assert ToolCall.objects.get(run=run).result == "x" * 20_000


def test_a_result_that_is_not_json_fails_its_call(ask, add_tool):
    @add_tool(name="odd")
    def odd(run: ToolContext) -> object:
        return {"at": float("nan")}

    run = ask(in_order(call(("odd", {})), say("ok")))

    assert list(results(run).values()) == ["RESULT_NOT_JSON"]


def test_the_tools_of_seeds_001_and_003_are_declared_as_printed():
    tool = registry.get("escalate_to_group")

    assert tool.parameters["required"] == ["goal"]
    assert list(tool.parameters["properties"]) == ["group_id", "goal", "context", "delegated"]
    assert (tool.risk_level, tool.mutating, tool.supports_parallel) == ("medium", True, False)
    listing = registry.get("list_available_groups")
    assert (listing.risk_level, listing.mutating, listing.supports_parallel) == ("low", False, True)
    assert list(listing.parameters["properties"]) == ["project_id"]


def test_every_tool_has_a_schema_a_validator_accepts():
    from jsonschema import Draft202012Validator

    for tool in registry.all_tools().values():
        Draft202012Validator.check_schema(tool.parameters)
        assert tool.parameters["additionalProperties"] is False
