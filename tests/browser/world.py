"""Who the browser's tests are about: a project with a group, and people with different rights."""

from types import SimpleNamespace
from typing import Any

from policy.models import CapabilityRule
from runs.execution import executor
from runs.models import Approval
from tests.acting import start
from tests.admin_world import PASSWORD, person
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory, permit
from tests.scripted import Scripted, by_role, call, say

GOAL = "Find out what our competitors charge and write to Ada about it"
ASKS = ("runs.view_run", "runs.start_run", "runs.cancel_run")
DECIDES = ("runs.view_run", "runs.view_approval", "runs.decide_approval")
CURATES = ("memory.view_memory", "memory.curate_memory")
LETTER = {
    "to": ["ada@example.org"],
    "subject": "What our competitors charge",
    "body": "Dear Ada,\n\nRival A charges 5 euros a seat, Rival B 7.\nWe suggest 6.\n\nYour agent",
}


def acme() -> SimpleNamespace:
    """An organization with a group of three, and a rule that asks for an approval of e-mail."""
    project = ProjectFactory(name="Atlas", organization__name="Acme")
    group = GroupFactory(project=project, name="Market research", description="Competitors and prices")
    for ordinal, role in enumerate(("researcher", "analyst", "lead")):
        MemberFactory(group=group, role__name=role, ordinal=ordinal, is_lead=role == "lead")
    CapabilityRule.objects.create(
        organization=project.organization, tool="send_email", effect="require_approval", name="Ask for mail"
    )
    return SimpleNamespace(project=project, organization=project.organization, group=group)


def member(made: SimpleNamespace, name: str, *rights: str, **fields: Any) -> Any:
    """Somebody of the organization who may sign in to the admin."""
    user = person(None, name, is_staff=True)
    MembershipFactory(organization=made.organization, user=user, **fields)
    return permit(user, *rights)


def plays() -> Any:
    return by_role(
        Personal_agent=[
            call(("escalate_to_group", {"goal": "Compare the prices of Rival A and Rival B"})),
            call(("send_email", LETTER), content="The group has decided. I write to Ada now."),
            say("Ada has been told: 6 euros a seat."),
        ],
        researcher=[say("EVIDENCE: Rival A charges 5 euros a seat, Rival B charges 7.")],
        analyst=[say("PROPOSAL: Charge 6 euros, between the two.")],
        lead=[say("DECISION: Charge 6 euros a seat.")],
    )


def sign_in(page: Any, user: Any) -> None:
    page.goto("/admin/")
    page.fill("input[name=login]", user.username)
    page.fill("input[name=password]", PASSWORD)
    page.click("button.primary")
    page.wait_for_url("**/admin/")


def waiting(made: SimpleNamespace, name: str) -> Approval:
    """An approval that somebody's agent waits for."""
    asker = MembershipFactory(organization=made.organization, user__username=name).user
    Scripted.play = staticmethod(by_role(Personal_agent=[call(("send_email", LETTER))]))
    run_id = start(user=asker, project=made.project, goal="Write to Ada")
    executor.run(run_id)
    return Approval.objects.get(run=run_id)
