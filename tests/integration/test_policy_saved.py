"""Rules, bindings and standing approvals are refused, when they are saved, with words that help."""

from contextlib import closing
from datetime import timedelta
from threading import Thread

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from groups.models import Role
from policy import cache
from policy.cache import as_rule, compiled
from policy.models import Capability, CapabilityRule, Grant, PolicyVersion, ToolBinding
from tests.factories import GroupFactory, ProjectFactory, RoleFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def sending(world):
    return Capability.objects.create(organization=world.organization, name="send_email")


@pytest.fixture
def checked(world):
    """The errors of a rule with these fields; none when it may be saved."""

    def _checked(**fields):
        return refused(CapabilityRule(organization=world.organization, effect="deny", **fields))

    return _checked


def refused(row):
    try:
        row.full_clean()
    except ValidationError as error:
        return error.message_dict
    return {}


# conditions


def test_a_condition_that_fits_the_tool_is_saved(checked, sending):
    assert checked(tool="send_email", condition='subject.startsWith("Re:") && size(to) < 3') == {}
    assert checked(capability=sending, condition="size(to) > 10") == {}
    assert checked(tool="send_email") == {}


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("subject ==", "line 1, column 11: something is missing at the end"),
        (
            'size(to) > 3\n&& recipient == "x"',
            "line 2, column 4: there is no argument or function “recip",
        ),
        ("args.recipient == 'x'", "line 1, column 6: the tool has no argument 'recipient'"),
        ("subject > 3", "line 1, column 9: “>” does not go with a text and a whole number"),
        ('subject.matches("(")', "line 1, column 17: "),
        ("size(to)", "it is int, not true or false"),
    ],
)
def test_a_bad_condition_is_refused_with_line_column_and_cause(checked, condition, said):
    (problem,) = checked(tool="send_email", condition=condition)["condition"]
    assert said in problem


def test_a_browsers_line_breaks_leave_a_condition_as_it_was(world):
    """It sends others than it was shown, and a text over two lines would ask for these."""
    said = 'body.contains("""first\nsecond""")'
    rule = CapabilityRule(organization=world.organization, effect="deny", tool="send_email")
    rule.condition = said.replace("\n", "\r\n")
    rule.full_clean()
    assert rule.condition == said


def test_a_capabilitys_condition_is_checked_against_each_of_its_tools(checked, sending, world):
    ToolBinding.objects.create(organization=world.organization, pattern="http_*", capability=sending)

    (problem,) = checked(capability=sending, condition="size(to) > 3")["condition"]
    assert "column 6: there is no argument or function “to”" in problem
    assert problem.endswith("(for http_get)")


def test_a_condition_may_test_for_an_argument_only_some_of_the_tools_have(checked, sending, world):
    ToolBinding.objects.create(organization=world.organization, pattern="http_*", capability=sending)

    assert checked(capability=sending, condition="has(args.to) && size(args.to) > 3") == {}
    assert "has no argument 'too'" in str(checked(capability=sending, condition="has(args.too)"))


def test_a_condition_about_a_tool_that_is_not_there_yet_is_checked_for_what_can_be_known(checked):
    assert checked(tool="later_tool", not_known_yet=True, condition="anything == 3") == {}
    found = checked(tool="later_tool", not_known_yet=True, condition="anything == ")
    assert "something is missing at the end" in str(found)


# subject and scope


def test_a_rule_is_about_a_capability_or_a_tool(checked, sending):
    said = {"tool": ["A rule is about a capability or about a tool: name exactly one."]}
    assert checked() == said
    assert checked(tool="send_email", capability=sending) == said
    assert checked(tool="  ") == said


def test_a_rules_scope_is_of_its_own_organization(checked):
    foreign = {"project": ProjectFactory(), "group": GroupFactory(), "role": RoleFactory()}
    foreign["capability"] = Capability.objects.create(
        organization=foreign["project"].organization, name="other"
    )

    assert checked(**foreign) == {name: ["This belongs to another organization."] for name in foreign}


def test_a_rules_group_is_of_its_project(checked, world):
    other = ProjectFactory(organization=world.organization)

    assert checked(tool="send_email", project=other, group=world.group) == {
        "group": ["The group belongs to another project."]
    }
    assert checked(tool="send_email", project=world.project, group=world.group) == {}


# bindings


@pytest.mark.parametrize("pattern", ["", "send email", "send_(a|b)", "mail?", "[ab]"])
def test_a_binding_that_is_no_pattern_is_refused(world, sending, pattern):
    binding = ToolBinding(organization=world.organization, pattern=pattern, capability=sending)
    assert "pattern" in refused(binding)


def test_a_bindings_capability_is_of_its_own_organization(sending):
    elsewhere = ProjectFactory().organization
    assert refused(ToolBinding(organization=elsewhere, pattern="mail_*", capability=sending)) == {
        "capability": ["This belongs to another organization."]
    }


# standing approvals


def granted(world, **fields):
    given = {"arguments": {"to": ["a@example.com"]}, "max_uses": 3, "tool": "send_email", **fields}
    return Grant(
        organization=world.organization, granted_by=world.user, **{"project": world.project, **given}
    )


def test_a_grant_that_names_arguments_of_its_tool_and_ends_is_saved(world):
    assert refused(granted(world)) == {}
    assert refused(granted(world, arguments={}, any_arguments=True)) == {}


@pytest.mark.parametrize(
    ("fields", "name", "said"),
    [
        ({"arguments": {"recipient": "x"}}, "arguments", "The tool send_email has no argument 'recipient'."),
        ({"arguments": {"to": "a@example.com"}}, "arguments", "/to: 'a@example.com' is not of type 'array'"),
        ({"arguments": {"to": [1]}}, "arguments", "/to/0: 1 is not of type 'string'"),
        ({"arguments": {}}, "arguments", "Name the arguments that must stay the same"),
        ({"any_arguments": True}, "arguments", "one of the two"),
        ({"arguments": ["to"]}, "arguments", "The arguments are an object"),
        ({"tool": "send_mail"}, "tool", "There is no tool 'send_mail'."),
        ({"max_uses": None}, "expires_at", "needs an end"),
    ],
)
def test_a_grant_that_could_cover_nothing_or_for_ever_is_refused(world, fields, name, said):
    assert said in str(refused(granted(world, **fields))[name])


def test_a_grants_project_is_of_its_own_organization(world):
    assert refused(granted(world, project=ProjectFactory()))["project"] == [
        "This belongs to another organization."
    ]


def test_a_saved_grant_may_still_be_ended_after_its_tool_is_gone(world):
    grant = granted(world, tool="gone", max_uses=1)
    grant.save()
    grant.expires_at = timezone.now() + timedelta(days=1)

    assert refused(grant) == {}


# versions


def test_what_was_decided_by_before_a_change_was_undone_decides_nothing_later(world):
    """Compiled rules are kept by the version, which the database took back with the change."""

    def effects():
        version = PolicyVersion.objects.of(world.organization.pk)
        return {rule.effect for rule in compiled(world.organization.pk, version).rules}

    rule = CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_human"
    )
    undone = transaction.savepoint()
    CapabilityRule.objects.filter(pk=rule.pk).update(effect="allow")
    assert effects() == {"allow"}
    transaction.savepoint_rollback(undone)

    CapabilityRule.objects.filter(pk=rule.pk).update(effect="deny")
    assert effects() == {"deny"}


@pytest.mark.django_db(transaction=True)
def test_a_change_that_comes_between_two_statements_is_read_whole(world, monkeypatch):
    """A rule takes over what a role's list has forbidden so far, in one transaction of somebody else's."""
    organization = world.organization
    CapabilityRule.objects.create(organization=organization, tool="http_get", effect="deny")
    role = Role.objects.create(organization=organization, name="clerk", denied_tools=["send_email"])
    todo = [None]

    def change():
        with closing(connection), transaction.atomic():
            CapabilityRule.objects.create(organization=organization, tool="send_email", effect="deny")
            Role.objects.filter(pk=role.pk).update(denied_tools=[])

    def read(rule):
        if todo:
            todo.pop()
            other = Thread(target=change)
            other.start()
            other.join()
        return as_rule(rule)

    monkeypatch.setattr(cache, "as_rule", read)
    found = compiled(organization.pk, PolicyVersion.objects.of(organization.pk))
    assert found.role(role.pk).denied_tools == ()
    assert {rule.tool for rule in found.rules} == {"http_get", "send_email"}
    assert found.version == PolicyVersion.objects.of(organization.pk)
    assert compiled(organization.pk, found.version) is found
