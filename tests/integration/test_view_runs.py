"""The prompt is the agent's view: what runs show, store, fold and replay."""

import json
import threading

import pytest
from django.db import connection

from memory.context import Tree
from memory.context.models import ContextView, Page
from memory.context.tools import TOOLS
from runs.context.agent_view import changes_of, view_at
from runs.execution import executor
from runs.models import Run, RunEvent, ToolCall
from runs.tools import registry
from runs.tools.base import ToolContext
from tests.acting import start
from tests.scripted import Scripted, by_role, call, in_order, say

from .helpers import chain_holds, events, payload, types

pytestmark = pytest.mark.django_db

LONG = "".join(f"row {n}\n" for n in range(3_000))


def prompt(number=-1):
    """The system message of one question to the model."""
    return Scripted.asked[number][0][0].content


def told(number=-1):
    """The last message of one question to the model."""
    return Scripted.asked[number][0][-1].content


def errors(run):
    return [p["error"] for kind, p in events(run) if kind in ("tool.failed", "tool.blocked")]


def stored_text(run, agent_view=None):
    """The stored view's text, from its rows."""
    from memory.context import ContextSystem

    view = agent_view or ContextView.objects.get()
    return ContextSystem(run.organization_id, view.pk).render().text


@pytest.fixture
def long_tool(monkeypatch):
    """A tool whose result is long."""
    monkeypatch.setattr(registry, "_tools", dict(registry.all_tools()))

    @registry.tool(description="Reads the rows", name="read_rows")
    def read_rows(run: ToolContext) -> str:
        return LONG


# what stands in it


def test_the_prompt_is_the_view(ask, world):
    role = world.user  # mia's own agent is made on first use
    ask(in_order(say("ok")), context="We charge 4.")
    shown = prompt()
    assert "- [sys-0] System" in shown
    assert "- [sys-1] Rules: You are a personal agent in Deputy" in shown
    assert f"- [usr-1] Person: {role.username}" in shown
    assert "- [task-2] Goal: What do our competitors charge?" in shown
    assert "        We charge 4." in shown
    run = Run.objects.get()
    assert view_at(run.pk).rendered.text in shown


def test_what_policy_stops_is_noted_in_the_system_segment(ask, world):
    from policy.models import Capability, CapabilityRule

    capability = Capability.objects.create(organization=world.organization, name="send_email")
    CapabilityRule.objects.create(
        organization=world.organization, capability=capability, effect="require_approval"
    )
    ask(in_order(say("ok")))
    assert "Policy: Stops for somebody's approval first: send_email." in prompt()


def test_the_preferences_kept_for_a_person_are_in_their_agents_view(ask, world):
    ask(in_order(say("ok")))
    agent = Run.objects.get().agent_instance
    agent.preferences = {"tone": "dry"}
    agent.save()
    ask(in_order(say("ok")))
    assert "      tone: dry" in prompt()


READING = {"view", "find", "segment", "segments", "children", "parent", "ancestors"}


def test_the_context_tools_are_those_of_the_working_memory(db):
    tools = registry.all_tools()
    for defined in TOOLS:
        made = tools[defined.name]
        assert (made.parameters, made.transactional, made.risk_level) == (defined.parameters, True, "low")
        assert made.mutating == (defined.name.removeprefix("context_") not in READING)


# what it costs


def test_a_view_nobody_touches_costs_no_rows_and_no_events(ask):
    run = ask(
        by_role(
            Personal_agent=[
                call(("context_view", {}), ("context_find", {"query": "goal"})),
                call(("escalate_to_group", {"goal": "g"})),
                say("ok"),
            ],
            researcher=[say("a")],
            analyst=[say("b")],
            lead=[say("DECISION: c")],
        )
    )
    assert run.status == "completed"
    assert (ContextView.objects.count(), Page.objects.count()) == (0, 0)
    assert not RunEvent.objects.filter(type="context.changed").exists()
    viewed, found = [p["result"] for kind, p in events(run) if kind == "tool.completed"][:2]
    assert "[task-2] Goal" in viewed["view"]
    assert [page["index"] for page in found["pages"]] == ["task-2"]


def test_showing_an_untouched_view_asks_the_database_nothing_more(
    ask, monkeypatch, django_assert_num_queries
):
    from runs.context import prompts, working_memory
    from runs.log.claimed import ClaimedRun

    run = ask(in_order(say("ok")))
    claimed = ClaimedRun.load(run.pk, run.attempt)
    prompts.build(claimed)
    with django_assert_num_queries(0):
        working_memory.shown(claimed, claimed.state.speaker)
        working_memory.results(claimed, claimed.state.speaker)
        working_memory.passed_on(claimed, claimed.state.speaker)


# what the agent does to it


def test_an_agents_changes_are_in_its_next_prompt_and_in_the_log(ask):
    run = ask(
        in_order(
            call(("context_create_detail", {"parent": "task-0", "name": "Plan", "detail": "First ask."})),
            call(("context_hide", {"index": "task-1"})),
            say("ok"),
        )
    )
    assert "- [task-3] Plan\n      First ask." in prompt(1)
    assert "+ [task-1] What do our competitors charge? (1 pages)" in prompt(2)
    ops = [c["op"] for kind, p in events(run) if kind == "context.changed" for c in p["changes"]]
    assert ops == ["open", "create_detail", "hide"]
    assert chain_holds(run)


def test_the_log_alone_rebuilds_the_view(ask, long_tool):
    run = ask(
        in_order(
            call(("read_rows", {})),
            call(("context_create_contents", {"parent": "task-0", "name": "Box", "children": ["tool-2"]})),
            call(("context_create_detail", {"parent": "usr-0", "name": "Note", "detail": "n" * 9_000})),
            call(("context_update", {"index": "usr-2", "detail": "m" * 9_000})),
            call(("context_expand", {"index": "task-6"}), ("context_remove", {"index": "task-5"})),
            say("ok"),
        ),
        context="c" * 20_000,
    )
    assert errors(run) == []
    view = ContextView.objects.get()
    recorded = changes_of(run.pk, view.pk, view.version)
    assert Tree.replay(recorded).render().text == stored_text(run) == view_at(run.pk).rendered.text
    sizes = [len(json.dumps(p)) for kind, p in events(run) if kind == "context.changed"]
    assert max(sizes) < 8_192


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (
            "context_hide",
            {"index": "sys-0"},
            "cannot hide system prompt root page sys-0: agent must remain constrained by system prompts",
        ),
        (
            "context_update",
            {"index": "sys-1", "description": "Obey me."},
            "permission denied: operation 'updatePage' on sys-1 requires higher permission",
        ),
        (
            "context_remove",
            {"index": "sys-1"},
            "permission denied: operation 'removePage' on sys-1 requires higher permission",
        ),
        (
            "context_move",
            {"index": "sys-1", "parent": "usr-0"},
            "permission denied: operation 'movePage' on sys-1 requires higher permission",
        ),
        (
            "context_create_detail",
            {"parent": "sys-0", "name": "x", "detail": "Obey me."},
            "permission denied: operation 'createPage' on sys-0 requires higher permission",
        ),
    ],
)
def test_an_agent_cannot_hide_or_change_its_system_prompt(ask, tool, arguments, words):
    run = ask(in_order(call((tool, arguments)), say("ok")))
    (error,) = errors(run)
    assert (error["code"], error["message"]) == ("PERMISSION_DENIED", words)
    assert prompt(0) == prompt(1)
    assert not ContextView.objects.exists()  # what was refused leaves nothing behind


def test_a_system_prompt_folded_page_by_page_is_read_all_the_same(ask):
    ask(in_order(call(*(("context_hide", {"index": f"sys-{n}"}) for n in range(1, 3))), say("ok")))
    for words in ("You are a personal agent in Deputy", "A tool that is denied stays denied"):
        assert words in prompt()


def test_a_page_that_is_not_there_is_named(ask):
    run = ask(in_order(call(("context_expand", {"index": "task-99"})), say("ok")))
    (error,) = errors(run)
    assert (error["code"], error["message"]) == ("not_found", "page task-99 not found")


def test_policy_can_deny_a_context_tool(ask, world):
    from policy.models import CapabilityRule

    CapabilityRule.objects.create(organization=world.organization, tool="context_remove", effect="deny")
    run = ask(
        in_order(
            call(("context_remove", {"index": "task-1"}), ("context_hide", {"index": "task-1"})), say("ok")
        )
    )
    (error,) = errors(run)
    assert error["code"] == "PERMISSION_DENIED"
    assert "Denied: context_remove." in prompt(0)
    assert "+ [task-1]" in prompt(1)


def test_an_agent_without_the_tools_is_not_shown_them(ask, world):
    world.membership.denied_tools = ["context_remove"]
    world.membership.save()
    shown = []
    ask(lambda messages, facts: shown.append(facts["tools"]) or say("ok"))
    assert "context_remove" not in shown[0]
    assert "context_hide" in shown[0]


def test_what_an_agent_removed_stays_removed_for_the_run(ask):
    ask(in_order(call(("context_remove", {"index": "task-1"})), say("hm"), say("ok")))
    assert "[task-1]" not in prompt(1)
    assert "[task-0]" in prompt(1)


# long results


def test_a_long_result_is_a_folded_page_that_can_be_opened(ask, long_tool):
    run = ask(
        in_order(
            call(("read_rows", {})),
            call(("context_expand", {"index": "tool-2"})),
            call(("context_expand", {"index": "tool-7"})),
            call(("context_hide", {"index": "tool-2"})),
            call(("context_expand", {"index": "tool-7"})),
            say("ok"),
        )
    )
    assert told(1).startswith("row 0\n")
    assert "on page tool-2: context_expand opens it" in told(1)
    assert "row 2999" not in prompt(1)
    assert "row 2999" in prompt(3)
    assert "row 2999" not in prompt(4)
    assert "row 2999" in prompt(5)
    assert errors(run) == []


def test_a_result_on_a_page_is_written_once_and_not_in_the_log(ask, long_tool):
    run = ask(in_order(call(("read_rows", {})), say("ok")))
    logged = json.dumps(list(RunEvent.objects.filter(run=run).values_list("payload", flat=True)))
    assert "row 1500" not in logged
    assert len(logged) < 12_000
    assert ToolCall.objects.get(run=run).result == LONG


def test_where_a_result_was_moved_to_is_what_the_conversation_says(ask, long_tool):
    ask(
        in_order(
            call(("read_rows", {})),
            call(("context_move", {"index": "tool-2", "parent": "task-0"})),
            call(("context_remove", {"index": "task-3"})),
            say("ok"),
        )
    )
    results = [m.content for m in Scripted.asked[2][0] if m.name == "read_rows"]
    assert "on page task-3: context_expand opens it" in results[0]
    results = [m.content for m in Scripted.asked[3][0] if m.name == "read_rows"]
    assert results[0].endswith("its page was removed]")


def test_what_the_context_tools_say_is_not_put_on_pages(ask):
    run = ask(in_order(call(("context_view", {})), say("ok")), context="word " * 2_000)
    assert len(told()) > 8_000
    assert "context.changed" not in types(run)


def test_an_agent_that_may_not_open_pages_is_told_everything(ask, world, long_tool):
    world.membership.denied_tools = ["context_expand"]
    world.membership.save()
    ask(in_order(call(("read_rows", {})), say("ok")))
    assert told() == LONG
    assert not ContextView.objects.exists()


def test_the_local_model_gets_the_whole_of_what_is_on_a_page(ask, long_tool):
    ask(in_order(call(("read_rows", {})), say("ok")))
    facts = Scripted.asked[-1][1].facts
    assert list(facts["results"].values()) == [LONG]


# the budget


def test_a_view_over_the_budget_is_folded_and_the_log_says_what(ask, settings):
    settings.CONTEXT_TOKENS = 1_500
    run = ask(
        in_order(call(("context_expand", {"index": "task-3"})), say("ok")),
        context="word " * 4_000,
    )
    first = next(p["changes"] for kind, p in events(run) if kind == "context.changed")
    assert [change["op"] for change in first] == ["open", "fold"]
    fold = first[1]
    assert {"index": "task-3", "name": "Context"} in fold["pages"]
    assert fold["tokens_before"] > 1_500 >= fold["tokens_after"]
    assert "+ [task-3] Context" in prompt(0)
    assert "You are a personal agent in Deputy" in prompt(0)


def test_a_page_the_budget_folded_is_opened_again_by_the_agent(ask, settings):
    settings.CONTEXT_TOKENS = 7_000
    texts = {"context": "word " * 4_000}
    run = ask(
        in_order(
            call(("context_create_detail", {"parent": "task-0", "name": "Notes", "detail": "note " * 3_000})),
            call(("context_expand", {"index": "task-3"})),
            say("ok"),
        ),
        **texts,
    )
    assert "- [task-3] Context" in prompt(0)
    assert "+ [task-3] Context" in prompt(1)  # opened longest ago
    assert "- [task-3] Context" in prompt(2)
    assert "+ [task-4] Notes" in prompt(2)
    assert errors(run) == []


# groups


def members(**plays):
    down = call(("escalate_to_group", {"goal": "Compare prices"}))
    said = {"researcher": [say("EVIDENCE: 5")], "analyst": [say("a")], "lead": [say("DECISION: 5")]}
    return by_role(**{"Personal_agent": [down, say("done")], **said, **plays})


def of_role(role):
    return [messages[0].content for messages, settings in Scripted.asked if settings.facts["role"] == role]


def test_a_members_view_has_what_the_others_said(ask):
    ask(members())
    (lead,) = of_role("lead")
    assert "Said in the group" in lead
    assert "researcher: EVIDENCE: 5" in lead
    assert "analyst: a" in lead
    assert "Said in the group" not in of_role("researcher")[0]


def test_each_member_has_a_view_of_its_own_that_goes_on_hearing_the_others(ask):
    note = ("context_create_detail", {"parent": "task-0", "name": "Mine", "detail": "alone"})
    run = ask(
        members(
            researcher=[call(note), say("EVIDENCE: 5"), say("EVIDENCE: 6")],
            analyst=[say("a"), say("b")],
            lead=[say("TASK: once more"), say("DECISION: 6")],
        )
    )
    second = of_role("researcher")[2]
    assert "alone" in second
    for words in ("analyst: a", "lead: TASK: once more"):
        assert words in second
    assert "alone" not in "".join(of_role("analyst") + of_role("lead"))
    assert ContextView.objects.count() == 1
    child = Run.objects.get(parent_run=run)
    assert view_at(child.pk, agent=ContextView.objects.get().session_key).rendered.text == stored_text(child)


def test_a_child_starts_from_what_its_parent_has_open(ask):
    note = ("context_create_detail", {"parent": "usr-0", "name": "Likes", "detail": "short answers"})
    hidden = ("context_create_detail", {"parent": "usr-0", "name": "Secret", "detail": "not for others"})
    run = ask(
        members(
            Personal_agent=[
                call(note, hidden),
                call(("context_hide", {"index": "usr-3"})),
                call(("escalate_to_group", {"goal": "Compare prices"})),
                say("done"),
            ]
        ),
        context="We charge 4.",
    )
    researcher = of_role("researcher")[0]
    assert "From the agent that asked" in researcher
    assert "short answers" in researcher
    assert "We charge 4." in researcher
    assert "not for others" not in researcher
    assert len(json.dumps(payload(Run.objects.get(parent_run=run), "run.created")["inherited"])) < 2_000
    assert ContextView.objects.count() == 1  # the child's own is untouched


# sessions


def test_a_personal_agent_keeps_its_view_from_run_to_run_of_a_session(ask):
    note = ("context_create_detail", {"parent": "usr-0", "name": "Learned", "detail": "Mia dislikes rain."})
    first = ask(in_order(call(note), say("ok")), session_key="s", goal="Plan the fair")
    ask(in_order(say("ok")), session_key="t", goal="Elsewhere")
    assert "Mia dislikes rain." not in prompt()
    second = ask(in_order(say("ok")), session_key="s", goal="Book the band")
    assert "Mia dislikes rain." in prompt()
    assert "- [task-4] Book the band" in prompt()
    assert "+ [task-3] Earlier (1 pages)" in prompt()
    assert ContextView.objects.count() == 1
    view = ContextView.objects.get()
    assert view_at(second.pk).rendered.text == stored_text(second)
    assert view_at(first.pk).version < view_at(second.pk).version == view.version
    assert "Book the band" not in view_at(first.pk).rendered.text


def test_two_runs_of_a_session_side_by_side_see_both_tasks(ask, world):
    note = ("context_create_detail", {"parent": "usr-0", "name": "N", "detail": "d"})
    ask(in_order(call(note), say("ok")), session_key="s")
    waiting = ask(in_order(call(("ask_user", {"question": "Which?"}))), session_key="s", goal="Slow one")
    assert waiting.status == "waiting"
    ask(in_order(say("ok")), session_key="s", goal="Quick one")
    assert "] Slow one\n" in prompt()
    assert "] Quick one\n" in prompt()


@pytest.mark.django_db(transaction=True)
def test_two_runs_of_a_session_at_once_do_not_spoil_its_view(world):
    """Each writes ten pages while the other does; all are there, and the logs agree with the rows."""

    def play(messages, facts):
        done = sum(message.role == "tool" for message in messages)
        if done == 10:
            return say("ok")
        page = {"parent": "usr-0", "name": f"{facts['goal']} {done}", "detail": "x"}
        return call(("context_create_detail", page))

    Scripted.play = staticmethod(play)
    Scripted.asked = []
    runs = [
        start(user=world.user, project=world.project, goal=goal, session_key="s") for goal in ("one", "two")
    ]

    def drive(run_id):
        executor.run(run_id)
        connection.close()

    threads = [threading.Thread(target=drive, args=[run_id]) for run_id in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    view = ContextView.objects.get()
    names = set(Page.objects.filter(view=view).values_list("name", flat=True))
    assert names >= {f"{goal} {n}" for goal in ("one", "two") for n in range(10)}
    assert [errors(run_id) for run_id in runs] == [[], []]
    latest = max((view_at(run_id) for run_id in runs), key=lambda moment: moment.version)
    assert latest.version == view.version
    assert latest.rendered.text == stored_text(Run.objects.first())


# any moment of it


def test_the_view_at_an_earlier_event(ask):
    run = ask(
        in_order(
            call(("context_create_detail", {"parent": "task-0", "name": "Plan", "detail": "First ask."})),
            call(("context_remove", {"index": "task-3"})),
            say("ok"),
        )
    )
    seqs = [n for n, (kind, _) in enumerate(events(run), 1) if kind == "context.changed"]
    before, between, after = (view_at(run.pk, seq).rendered.text for seq in (seqs[0] - 1, *seqs))
    assert "Plan" not in before
    assert "First ask." in between
    assert "Plan" not in after
    assert after == view_at(run.pk).rendered.text
    replies = [n for n, (kind, p) in enumerate(events(run), 1) if p.get("role") == "assistant"]
    for number, seq in enumerate(replies):
        assert view_at(run.pk, seq).rendered.text in prompt(number)


def test_the_structure_is_what_the_agent_sees(ask):
    run = ask(in_order(call(("context_hide", {"index": "task-1"})), say("ok")))
    moment = view_at(run.pk)
    segments = {segment["segment_id"]: segment for segment in moment.structure()}
    assert list(segments) == ["sys", "usr", "task", "tool"]
    assert (segments["sys"]["permission"], segments["task"]["permission"]) == ("read_only", "read_write")
    (task,) = segments["task"]["page"]["pages"]
    assert (task["index"], task["folded"], task["page_count"], task["pages"]) == ("task-1", True, 1, [])
