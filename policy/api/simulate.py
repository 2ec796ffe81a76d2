"""What policy would say to a call that nobody makes."""

from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from config.api.errors import Problem, invalid
from groups.models import AgentInstance, Group, Project
from policy import book as policy_book
from policy import tools
from policy.evaluate import bind
from policy.explain import explain
from policy.terms import AgentContext, Context, Decision, DelegatedPermissions


@dataclass(frozen=True)
class Question:
    """Who would call what, and where."""

    project: Project
    user_id: int
    tool: str
    arguments: dict[str, Any]
    role: str | None = None
    group: str | None = None
    delegated: dict[str, Any] | None = None


def answer(question: Question) -> Decision:
    """The decision with all that was considered. Raises Problem about what does not exist or does not fit."""
    organization, project = question.project.organization_id, question.project.pk
    facts = tools.tools(organization).get(question.tool)
    if facts is None:
        raise invalid("/tool", "not_found", f"There is no tool '{question.tool}'.")
    _check(facts, question.arguments)
    if question.group and not Group.objects.filter(pk=question.group, project=question.project).exists():
        raise invalid("/group", "not_found", f"No group '{question.group}' is in this project.")
    standing = policy_book.standing(organization, question.user_id, project)
    book = policy_book.book(organization, standing.version)
    context = Context(
        agent=_agent(question, book),
        boundary=standing.boundary,
        rules=book.rules,
        organization=organization,
        project=project,
        group=question.group,
        grants=policy_book.live_grants(organization, project, question.tool, question.arguments),
    )
    return explain(context, bind(facts.info, book.bindings), question.arguments)


def _agent(question: Question, book: policy_book.Book) -> AgentContext:
    """The role asked about, or that of the user's own agent; who has none yet is bound by no role."""
    given = None if question.delegated is None else DelegatedPermissions.from_json(question.delegated)
    role_id = question.role
    if role_id is None:
        own = AgentInstance.objects.filter(
            organization=question.project.organization_id, user=question.user_id
        )
        role_id = own.values_list("role_id", flat=True).first()
    elif role_id not in book.roles:
        raise invalid("/role", "not_found", f"There is no role '{role_id}'.")
    if role_id is None:
        return AgentContext("", delegated_permissions=given)
    role = book.role(role_id)
    return AgentContext("", role_id, role.allowed_tools, role.denied_tools, given)


def _check(facts: tools.ToolFacts, arguments: dict[str, Any]) -> None:
    found = [
        {
            "pointer": "/arguments" + "".join(f"/{part}" for part in error.absolute_path),
            "code": "INVALID_ARGUMENTS",
            "detail": error.message[:300],
        }
        for error in Draft202012Validator(facts.parameters).iter_errors(arguments)
    ]
    if found:
        raise Problem(
            422, "INVALID_ARGUMENTS", f"These are no arguments for '{facts.name}'.", sorted(found, key=str)
        )
