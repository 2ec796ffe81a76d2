"""Groups: rounds, roles, routing, and what the personal agent is told of them (seeds 001 and 003)."""

import pytest

from groups.catalog import list_groups_with_roles
from groups.models import RoutingExample
from groups.routing import NoGroup, learn, named_group, select_group
from runs.models import Run, ToolCall
from tests.factories import GroupFactory, MemberFactory, ProjectFactory
from tests.scripted import Scripted, by_role, call, in_order, say

from .helpers import events, payload, types

pytestmark = pytest.mark.django_db

DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))


def escalate_to(group_id):
    return call(("escalate_to_group", {"goal": "g", "group_id": group_id}))


def members_say(first_round, second_round=()):
    plays = zip(("researcher", "analyst", "lead"), first_round, strict=True)
    return by_role(
        Personal_agent=[DOWN, say("done")],
        **{role: [say(text), *map(say, second_round)] for role, text in plays},
    )


def test_members_speak_in_turn_each_seeing_what_the_others_said(ask):
    ask(members_say(("EVIDENCE: 5", "PROPOSAL: match", "DECISION: 5")))

    lead_was_shown = [m.content for m in Scripted.asked[3][0] if m.role == "user"]
    assert lead_was_shown == ["Compare prices", "[EVIDENCE] EVIDENCE: 5", "[PROPOSAL] PROPOSAL: match"]


def test_a_lead_may_send_the_members_round_again(ask):
    run = ask(
        by_role(
            Personal_agent=[DOWN, say("done")],
            researcher=[say("EVIDENCE: 5"), say("EVIDENCE: 6")],
            analyst=[say("a"), say("b")],
            lead=[say("TASK: check again"), say("DECISION: 6")],
        )
    )

    child = Run.objects.get(parent_run=run)
    rounds = [
        p["round"] for kind, p in events(child) if kind == "message.created" and p["role"] == "assistant"
    ]
    assert rounds == [1, 1, 1, 2, 2, 2]
    assert child.output == "DECISION: 6"


def test_each_message_carries_its_type(ask):
    run = ask(members_say(("what I found", "PROPOSAL: match", "we charge 5")))

    child = Run.objects.get(parent_run=run)
    said = [p["message_type"] for kind, p in events(child) if kind == "message.created"]
    assert said == ["TASK", "EVIDENCE", "PROPOSAL", "DECISION"]


def test_the_goal_of_a_completed_group_run_becomes_its_example(ask, world):
    run = ask(members_say(("a", "b", "DECISION: c")))

    example = RoutingExample.objects.get()
    assert (example.group, example.goal) == (world.group, "Compare prices")
    assert example.source_run_id == Run.objects.get(parent_run=run).pk


# what comes back (ruling 16)


def result_of_call(run):
    return ToolCall.objects.get(run=run).result


def test_a_failed_group_run_comes_back_as_an_error_naming_why(ask, settings):
    settings.RUN_STEPS = 2  # the group needs three
    run = ask(by_role(Personal_agent=[DOWN, say("ok")], researcher=[say("a")], analyst=[say("b")]))

    assert run.status == "completed"
    result = result_of_call(run)
    assert result["success"] is False
    assert result["error"].startswith("Group run failed: The run used up its budget of 2 steps")


def test_a_group_without_words_comes_back_as_no_output(ask):
    run = ask(members_say(("a", "b", " ")))

    assert result_of_call(run) == {"success": True, "result": "Group completed but produced no output"}


# which group (rulings 14, 18, 19)


def test_without_a_group_id_the_best_fitting_group_is_taken(ask, world):
    legal = GroupFactory(project=world.project, name="Legal", description="Contracts and licences 合同审查")
    MemberFactory(group=legal, role__name="counsel", is_lead=True)
    goal = "Review the licence contract"
    play = by_role(
        Personal_agent=[call(("escalate_to_group", {"goal": goal})), say("done")],
        counsel=[say("DECISION: fine")],
    )
    run = ask(play, goal=goal)

    created = payload(run, "child.created")
    assert created["group_id"] == legal.pk
    assert [c["name"] for c in created["routing"]] == ["Legal", "Market"]
    assert select_group("帮我审查合同", world.project.pk)[0].id == legal.pk


def test_with_no_match_at_all_the_first_group_is_taken(world):
    second = GroupFactory(project=world.project, name="Other", description="zzz")
    MemberFactory(group=second)

    assert select_group("qqq", world.project.pk)[0].id == world.group.pk


def test_a_persons_correction_moves_a_goal(world):
    legal = GroupFactory(project=world.project, name="Legal", description="Contracts")
    MemberFactory(group=legal)
    goal = "Who may sign for suppliers?"
    learn(world.organization.pk, legal.pk, goal, by=world.user)
    learn(world.organization.pk, world.group.pk, goal, fits=False, by=world.user)

    assert select_group(goal, world.project.pk)[0].id == legal.pk


def cases(world):
    inactive = GroupFactory(project=world.project, active=False)
    MemberFactory(group=inactive)
    elsewhere = GroupFactory(project=ProjectFactory(organization=world.organization))
    MemberFactory(group=elsewhere)
    return {
        "grp_nonsense": "UNKNOWN_GROUP",
        inactive.pk: "GROUP_INACTIVE",
        GroupFactory(project=world.project).pk: "GROUP_EMPTY",
        elsewhere.pk: "UNKNOWN_GROUP",
    }


def test_a_group_that_cannot_take_work_is_named_in_the_error(ask, world):
    for group_id, code in cases(world).items():
        run = ask(in_order(escalate_to(group_id), say("ok")))

        error = payload(run, "tool.failed")["error"]
        assert error["code"] == code
        assert group_id in error["message"]
        assert run.status == "completed"


def test_a_project_without_groups_says_so(ask, world):
    world.group.delete()
    run = ask(in_order(DOWN, say("ok")))

    assert payload(run, "tool.failed")["error"]["code"] == "NO_GROUPS"
    with pytest.raises(NoGroup):
        named_group("grp_x", world.project.pk)


def test_list_available_groups_answers_in_the_format_of_seed_003(ask, world):
    run = ask(in_order(call(("list_available_groups", {})), say("ok")))

    (group,) = payload(run, "tool.completed")["result"]["groups"]
    assert set(group) == {"id", "name", "description", "capabilities", "members"}
    assert set(group["members"][0]) == {"role", "description"}
    assert [m["role"] for m in group["members"]] == ["researcher", "analyst", "lead"]


def test_groups_with_roles_are_one_query_and_none_while_nothing_changes(world, django_assert_num_queries):
    list_groups_with_roles(world.project.pk)
    with django_assert_num_queries(1):  # the version alone
        list_groups_with_roles(world.project.pk)
    world.group.members.first().role.__class__.objects.filter(name="analyst").update(description="counts")
    with django_assert_num_queries(2):
        (group,) = list_groups_with_roles(world.project.pk)
    assert [seat.description for seat in group.seats] == ["", "counts", ""]


# the prompt


def system_prompt(number=0):
    return Scripted.asked[number][0][0].content


def test_the_prompt_shows_the_groups_in_the_format_of_seed_003(ask, world):
    world.group.capabilities = ["market research", "data analysis"]
    world.group.save()
    ask(in_order(say("ok")))

    assert (
        f"1. **Market** ({world.group.pk})\n"
        "   - Capabilities: market research, data analysis\n"
        "   - Members: researcher, analyst, lead\n"
        "   - Use when: Competitor and market analysis\n"
    ) in system_prompt()
    assert "To escalate a task to a group, use the `escalate_to_group` tool." in system_prompt()


def test_of_many_groups_the_five_best_are_shown_and_the_rest_counted(ask, world):
    for n in range(7):
        MemberFactory(group=GroupFactory(project=world.project, name=f"Team {n}", description=f"topic{n}"))
    ask(in_order(say("ok")), goal="something about topic6")

    assert system_prompt().count("   - Members:") == 5
    assert "1. **Team 6**" in system_prompt()
    assert "3 more: use `list_available_groups`" in system_prompt()


def test_an_agent_that_may_not_escalate_is_not_shown_the_groups(ask, world):
    world.membership.denied_tools = ["escalate_to_group"]
    world.membership.save()
    ask(in_order(say("ok")))

    assert "Available Groups" not in system_prompt()


def test_the_sessions_earlier_runs_are_the_conversation(ask):
    ask(in_order(say("It is 5.")), goal="What is the price?", session_key="s")
    ask(in_order(say("Euro.")), goal="In what currency?", session_key="s")

    said = [(m.role, m.content) for m in Scripted.asked[0][0][1:]]
    assert said == [("user", "What is the price?"), ("assistant", "It is 5."), ("user", "In what currency?")]


def test_another_session_hears_nothing_of_it(ask):
    ask(in_order(say("It is 5.")), goal="What is the price?", session_key="s")
    ask(in_order(say("?")), goal="In what currency?", session_key="t")

    assert [m.content for m in Scripted.asked[0][0][1:]] == ["In what currency?"]


def test_the_trace_shows_parent_and_child(ask):
    run = ask(members_say(("a", "b", "DECISION: c")))

    child = Run.objects.get(parent_run=run)
    assert payload(run, "child.created")["child_run"] == child.pk
    assert payload(child, "run.created")["parent_run"] == run.pk
    assert (
        types(run).index("run.waiting") < types(run).index("wait.completed") < types(run).index("run.resumed")
    )
