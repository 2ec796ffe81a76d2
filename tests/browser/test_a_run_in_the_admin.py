"""What a person does with Deputy, in a real browser: ask, look, approve, and read the result."""

from typing import Any

import pytest
from django.core import mail

from runs import executor
from runs.models import Run
from tests.admin_world import PASSWORD, person
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory
from tests.scripted import Scripted, by_role, call, say

pytestmark = pytest.mark.django_db(transaction=True)

GOAL = "Find out what our competitors charge and write to Ada about it"


@pytest.fixture
def ada() -> Any:
    """Somebody who may ask, look and decide, in a project with a group."""
    project = ProjectFactory(name="Atlas", organization__name="Acme")
    group = GroupFactory(project=project, name="Market research", description="Competitors and prices")
    for ordinal, role in enumerate(("researcher", "analyst", "lead")):
        MemberFactory(group=group, role__name=role, ordinal=ordinal, is_lead=role == "lead")
    rights = (
        "runs.view_run",
        "runs.start_run",
        "runs.cancel_run",
        "runs.view_approval",
        "runs.decide_approval",
    )
    user = person(None, "ada", *rights, is_staff=True)
    MembershipFactory(organization=project.organization, user=user)
    return user


def plays() -> Any:
    letter = {
        "to": ["ada@example.org"],
        "subject": "What our competitors charge",
        "body": "Dear Ada,\n\nRival A charges 5 euros a seat, Rival B 7.\nWe suggest 6.\n\nYour agent",
    }
    return by_role(
        Personal_agent=[
            call(("escalate_to_group", {"goal": "Compare the prices of Rival A and Rival B"})),
            call(("send_email", letter), content="The group has decided. I write to Ada now."),
            say("Ada has been told: 6 euros a seat."),
        ],
        researcher=[say("EVIDENCE: Rival A charges 5 euros a seat, Rival B charges 7.")],
        analyst=[say("PROPOSAL: Charge 6 euros, between the two.")],
        lead=[say("DECISION: Charge 6 euros a seat.")],
    )


def sign_in(page: Any, address: str, user: Any) -> None:
    page.goto(f"{address}/admin/")
    page.fill("input[name=username]", user.username)
    page.fill("input[name=password]", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url("**/admin/")


def test_ask_look_approve_and_read_the_result(page: Any, live_server: Any, ada: Any) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    Scripted.play = staticmethod(plays())
    sign_in(page, live_server.url, ada)

    page.click("text=Ask an agent")
    page.fill("textarea[name=goal]", GOAL)
    page.click("button:text-is('Ask')")
    page.wait_for_selector("text=Pending")
    run = Run.objects.get(depth=0)
    executor.run(run.pk)

    page.wait_for_selector("text=a decision on send_email")  # the page has followed by itself
    assert page.locator(".dp-tree .dp-kin").count() == 2
    assert page.locator(".dp-tree").get_by_text("Market research").count() == 1
    assert "DECISION: Charge 6 euros a seat." in page.locator("[data-part=timeline]").inner_text()

    page.click("text=Look and decide")
    assert "ada@example.org" in page.locator(".dp-lines").first.inner_text()
    assert mail.outbox == []
    page.click("button:text-is('Approve')")
    page.wait_for_selector("text=Approved; the call runs now.")

    page.goto(f"{live_server.url}/admin/runs/run/{run.pk}/change/")
    executor.run(run.pk)
    page.wait_for_selector(".dp-output")
    assert "Ada has been told" in page.locator(".dp-output").inner_text()
    assert [sent.subject for sent in mail.outbox] == ["What our competitors charge"]
    assert Run.objects.get(pk=run.pk).status == "completed"
    assert problems == []
