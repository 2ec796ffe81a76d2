"""The demo: complete, the same when made again, and safe to make at once."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection

from groups import routing
from groups.actors import Actor
from groups.catalog import list_groups_with_roles
from groups.models import Group, GroupMember, Membership, Organization, Project, Role, Token
from memory.models import Memory
from policy.models import Capability, CapabilityRule
from runs.actions import start
from runs.actions.decide import DecisionRefused
from runs.demo import chinese, content, world
from runs.execution import inline
from runs.models import Approval, Run
from tests.acting import approve, holder

pytestmark = pytest.mark.django_db


def demo(**options):
    said = StringIO()
    call_command("demo", stdout=said, **options)
    return json.loads(said.getvalue()) if options.get("json") else said.getvalue()


def counts():
    models = (
        Organization,
        Project,
        Membership,
        Role,
        Group,
        GroupMember,
        Capability,
        CapabilityRule,
        Memory,
        Run,
    )
    return {model.__name__: model.objects.count() for model in models}


@pytest.fixture
def local(settings):
    settings.DEPUTY_MODEL = "local"


def test_its_accounts_can_be_used_as_printed(client):
    told = demo(json=True)

    assert set(told) == {"users", "project", "groups"}
    assert set(told["users"]) == {"admin", "approver", "member", "robot"}
    for name, secrets in told["users"].items():
        assert client.login(username=name, password=secrets["password"])
        token = holder(secrets["token"])
        assert (token.user.username, token.organization.slug) == (name, "demo")
    assert Project.objects.get(pk=told["project"]).slug == "atlas"
    assert {Group.objects.get(pk=pk).name for pk in told["groups"].values()} == set(told["groups"])
    assert set(Project.objects.values_list("slug", "language")) == {("atlas", "en"), ("atlas-zh", "zh-hans")}


def test_everybody_may_do_what_their_place_says():
    demo()
    admin, approver, member, robot = (
        get_user_model().objects.get(username=name) for name in ("admin", "approver", "member", "robot")
    )

    assert admin.is_superuser and approver.is_staff
    assert not member.is_staff and not robot.is_staff
    for user, decides in ((approver, True), (robot, True), (member, False)):
        assert user.has_perm("runs.decide_approval") is decides
    assert approver.has_perms(
        ["runs.resolve_review", "runs.view_run", "groups.view_group", "memory.view_memory"]
    )
    assert approver.has_perm("policy.view_capabilityrule") and approver.has_perm("runs.cancel_run")
    assert member.has_perm("runs.start_run") and not member.has_perm("runs.cancel_run")
    assert not approver.has_perm("runs.change_run") and not approver.has_perm("groups.view_token")
    assert {m.user.username: m.kind for m in Membership.objects.all()} == {
        "admin": "human",
        "approver": "human",
        "member": "human",
        "robot": "service",
    }


def test_making_it_again_adds_nothing_and_shows_no_secret():
    first = demo(json=True)
    before = counts()
    second = demo(json=True)

    assert counts() == before
    assert second["groups"] == first["groups"]
    assert all(secrets == {"password": None, "token": None} for secrets in second["users"].values())
    assert holder(first["users"]["member"]["token"])


def test_what_somebody_changed_stays_changed():
    demo()
    Role.objects.filter(name="analyst").update(system_prompt="Only in rhymes.")
    CapabilityRule.objects.update(effect="deny")
    Group.objects.filter(name="代码审查组").update(description="Ours")
    demo()

    assert Role.objects.get(name="analyst").system_prompt == "Only in rhymes."
    assert CapabilityRule.objects.get().effect == "deny"
    assert Group.objects.get(name="代码审查组").description == "Ours"


def test_reset_secrets_issues_new_ones_and_revokes_the_old(client):
    old = demo(json=True)["users"]
    user = get_user_model().objects.get(username="member")
    _, own = Token.objects.issue(Organization.objects.get(), user, "my script")
    new = demo(json=True, reset_secrets=True)["users"]

    for name in old:
        assert not holder(old[name]["token"])
        assert holder(new[name]["token"])
        assert not client.login(username=name, password=old[name]["password"])
        assert client.login(username=name, password=new[name]["password"])
    assert holder(own), "only the demo's own token is revoked"


def test_an_account_that_was_there_before_is_left_alone(client):
    theirs = get_user_model().objects.create_user("admin", "admin@company.example", "their own password")
    demo()
    said = demo(reset_secrets=True)

    theirs.refresh_from_db()
    assert not theirs.is_superuser and client.login(username="admin", password="their own password")
    assert "an account of your own" in said
    assert Membership.objects.filter(user=theirs).exists()


def test_the_printed_text_names_every_account_once():
    said = demo()
    for name in content.PEOPLE:
        assert said.count(f"\n  {name} ") == 1
    assert "dpt_" in said and "dpt_" not in demo()


def test_its_groups_are_those_of_the_specification():
    demo()
    projects = {one.slug: one.pk for one in Project.objects.all()}
    listed = {group.name: group.as_dict() for group in list_groups_with_roles(projects["atlas-zh"])}

    market = listed["竞品分析组"]
    assert {"market research", "data analysis", "competitor analysis"} <= set(market["capabilities"])
    assert [member["role"] for member in market["members"]] == ["研究员", "分析师", "主持人"]
    assert "负责信息搜集" in market["members"][0]["description"]
    review = listed["代码审查组"]
    assert {"code review", "refactoring", "best practices"} <= set(review["capabilities"])
    assert [member["role"] for member in review["members"]] == ["资深开发者", "架构师"]
    assert set(listed) == {team.name for team in chinese.TEAMS}
    assert {one.name for one in list_groups_with_roles(projects["atlas"])} == {
        "Competitor analysis", "Code review", "Operations"
    }  # fmt: skip


def test_whoever_reads_chinese_is_offered_the_project_in_chinese_first(client):
    demo()
    client.force_login(get_user_model().objects.get(username="member"))

    def offered(language):
        page = client.get("/", headers={"Accept-Language": language})
        return [project.slug for project in page.context["form"].fields["project"].queryset]

    assert (offered("en"), offered("zh-CN")) == (["atlas", "atlas-zh"], ["atlas-zh", "atlas"])
    groups = client.get("/groups/", headers={"Accept-Language": "zh-CN"}).content.decode()
    assert groups.index("竞品分析组") < groups.index("Competitor analysis")


def test_each_project_has_experts_and_knowledge_in_its_language_alone():
    demo()
    chinese_letters = re.compile("[\u4e00-\u9fff]")
    for project in Project.objects.all():
        told = [memory.content for memory in Memory.objects.filter(type="archival", project=project)]
        for member in GroupMember.objects.filter(group__project=project).select_related("role", "group"):
            told += [member.group.name, member.group.description, member.role.description, member.role.name]
        wrong = [text for text in told if bool(chinese_letters.search(text)) != (project.slug == "atlas-zh")]
        assert len(told) > 20 and wrong == []


@pytest.mark.parametrize(
    ("goal", "group"),
    [
        ("分析竞争对手的价格", "竞品分析组"),
        ("What do our competitors charge?", "Competitor analysis"),
        ("Compare the market share of our rivals", "Competitor analysis"),
        ("帮我审查这段代码", "代码审查组"),
        ("Please review my pull request", "Code review"),
        ("Refactor this function: def f(a, b, c, d, e): return a", "Code review"),
        ("系统故障了，怎么恢复备份？", "运维支持组"),
        ("怎样备份数据库？", "运维支持组"),
        ("How do we deploy Atlas with backups?", "Operations"),
        ("The workers are down, what now?", "Operations"),
        ("竞品分析：他们收多少钱？", "Competitor analysis"),  # across languages, by the capabilities
        ("代码审查：吞掉异常的代码怎么处理？", "Code review"),
        ("怎样备份数据库？", "Operations"),
        ("Please do a code review", "代码审查组"),
    ],
)
def test_goals_in_either_language_find_their_group(goal, group):
    groups = demo(json=True)["groups"]
    best = routing.rank(goal, Group.objects.get(pk=groups[group]).project_id)[0]
    assert (best.group.name, best.fits) == (group, True)


@pytest.mark.parametrize("goal", ["Wie wird das Wetter morgen?", "Tell me a joke", "今天天气怎么样"])
def test_other_goals_fit_no_group(goal):
    assert not routing.rank(goal, demo(json=True)["project"])[0].fits


@pytest.mark.parametrize(("language", "expected"), [("en", "12 euros"), ("zh-hans", "45 元")])
def test_the_first_question_that_is_offered_has_an_answer(local, client, language, expected):
    demo()
    member = get_user_model().objects.get(username="member")
    client.force_login(member)
    page = client.get("/", headers={"Accept-Language": language})
    project = page.context["form"].fields["project"].queryset[0]
    goal = page.context["suggestions"][0].goal

    run_id = start.start(actor=Actor.terminal(member, project.organization), project=project, goal=goal)
    inline.drive(run_id)

    assert expected in Run.objects.get(pk=run_id).output


def test_mail_needs_an_approval_in_the_whole_organization():
    demo()
    rule = CapabilityRule.objects.get()
    assert (rule.capability.name, rule.effect) == ("send_email", "require_approval")
    assert rule.project is rule.group is rule.role is None
    assert set(Capability.objects.values_list("name", flat=True)) == {"send_email", "read_web"}


def test_a_first_run_waits_for_an_approval(local):
    demo()
    run = Run.objects.get()
    approval = Approval.objects.get()

    assert (run.status, run.waiting_reason, run.user.username) == ("waiting", "approval", "member")
    assert approval.tool_call.arguments["to"] == ["team@example.com"]
    with pytest.raises(DecisionRefused) as refused:
        approve(approval.pk, get_user_model().objects.get(username="member"))
    assert refused.value.code == "NOT_ENTITLED"
    assert approve(approval.pk, get_user_model().objects.get(username="approver")).status == "approved"


def test_another_model_is_not_asked_without_anybodys_wish():
    demo()
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_at_once_make_one():
    def once():
        try:
            return world.load()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        made = [future.result() for future in [pool.submit(once), pool.submit(once)]]

    assert made[0].groups == made[1].groups
    assert sorted(one.issued for one in made) == [False, True]
    assert GroupMember.objects.count() == sum(len(team.seats) for one in world.SETS for team in one.teams)
