"""What people do with Deputy, in a real browser: ask, look, change, approve, read, keep."""

from typing import Any

import pytest
from django.core import mail
from playwright.sync_api import expect

from memory.models import DepositedKnowledge
from runs.execution import executor
from runs.models import Approval, Run
from tests.scripted import Scripted

from .world import ASKS, CURATES, DECIDES, GOAL, acme, member, plays, sign_in, waiting

pytestmark = pytest.mark.django_db(transaction=True)


def test_from_the_question_to_knowledge_that_everybody_finds(open_page: Any) -> None:
    made = acme()
    ada = member(made, "ada", *ASKS, *DECIDES, *CURATES)
    Scripted.play = staticmethod(plays())
    page = open_page()
    sign_in(page, ada)

    page.click("text=Ask an agent")
    page.fill("textarea[name=goal]", GOAL)
    page.click("button:text-is('Ask')")
    page.wait_for_selector(".dp-run[data-following=yes]")  # the stream is open
    run = Run.objects.get(depth=0)
    executor.run(run.pk)

    page.wait_for_selector("text=waits for a decision on send_email")  # without anybody's reload
    assert page.locator(".dp-tree .dp-kin").count() == 2
    story = page.locator("[data-part=timeline]")
    assert "DECISION: Charge 6 euros a seat." in story.inner_text()  # the group's words, in the same story
    assert story.locator(".dp-legend span").all_inner_texts() == [
        "Personal agent",
        "Market research: researcher",
        "Market research: analyst",
        "Market research: lead",
    ]

    page.click("text=Look and decide")
    assert "The group has decided. I write to Ada now." in page.locator(".ap-says").inner_text()
    page.wait_for_load_state()  # keys work once the page's script has been loaded
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    page.get_by_label("subject", exact=True).fill("Prices")
    assert mail.outbox == []
    page.click("text=Approve with these arguments")
    page.wait_for_selector("text=Approved; the call runs now.")
    edited = Approval.objects.exclude(replaces=None).get()  # changed arguments are another approval
    assert (edited.status, edited.edited_arguments["subject"]) == ("approved", "Prices")
    assert edited.replaces.status == "superseded"

    page.goto(f"/admin/runs/run/{run.pk}/change/")
    page.wait_for_selector(".dp-run[data-following=yes]")
    executor.run(run.pk)
    page.wait_for_selector(".dp-output")
    assert "Ada has been told" in page.locator(".dp-output").inner_text()
    assert [sent.subject for sent in mail.outbox] == ["Prices"]
    assert mail.outbox[0].body.startswith("Dear Ada,\n\nRival A")  # what was left alone is as it was

    page.goto("/admin/memory/depositedknowledge/?q=Charge")
    row = page.locator("tbody tr", has_text="Charge 6 euros a seat.")
    row.locator("input[type=checkbox]").first.check()
    page.select_option("select[name=action]", "promote")
    page.click("button:has-text('Run'), button[title*='Run']")
    page.wait_for_selector("text=1 promoted.")
    promoted = DepositedKnowledge.objects.get(content__startswith="Group Run Result", project=None)
    assert "Charge 6 euros" in promoted.content


def test_keys_bring_the_focus_and_the_next_approval_opens(open_page: Any) -> None:
    made = acme()
    ines = member(made, "ines", *DECIDES)
    first, second = (waiting(made, f"mia{n}") for n in (1, 2))
    page = open_page(ines)

    page.goto("/admin/runs/approval/next/")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_url(f"**/{second.pk}/change/")
    page.keyboard.press("k")
    page.wait_for_url(f"**/{first.pk}/change/")
    page.keyboard.press("a")
    expect(page.locator("button[data-key=a]")).to_be_focused()
    assert Approval.objects.get(pk=first.pk).status == "pending"  # a key alone decides nothing
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/{second.pk}/change/")
    assert "Approved; the call runs now." in page.locator("body").inner_text()
    assert Approval.objects.get(pk=first.pk).status == "approved"
    page.keyboard.press("r")
    page.keyboard.type("Not on a Friday, please")  # letters are words here, and no keys
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Rejected; the agent is told why.")
    assert Approval.objects.get(pk=second.pk).reason == "Not on a Friday, please"


def test_a_decision_made_elsewhere_is_said_and_what_was_written_stays(open_page: Any) -> None:
    made = acme()
    ines, omar = member(made, "ines", *DECIDES), member(made, "omar", *DECIDES)
    approval = waiting(made, "mia")
    page, other = open_page(ines), open_page(omar)
    for each in (page, other):
        each.goto(f"/admin/runs/approval/{approval.pk}/change/")
    page.fill("#reason", "Let me think")

    other.fill("#reason", "Too early")
    other.click("button[data-key=r]")
    other.wait_for_selector("text=Rejected; the agent is told why.")

    page.wait_for_selector("text=Decided meanwhile: Rejected by omar")
    assert page.input_value("#reason") == "Let me think"
    assert page.locator("button[data-key=a]").is_disabled()


def test_somebody_without_rights_sees_and_cannot_decide(open_page: Any) -> None:
    made = acme()
    lou = member(made, "lou", "runs.view_run", "runs.view_approval")
    approval = waiting(made, "mia")
    page = open_page(lou)

    page.goto("/admin/")
    assert "Waiting for me\n0" in page.locator(".dp-figures").inner_text()
    assert page.locator("nav >> text=Rules").count() == 0
    page.goto(f"/admin/runs/approval/{approval.pk}/change/")
    body = page.locator("body").inner_text()
    assert "You may not decide approvals of this project." in body and "ada@example.org" in body
    assert page.locator("button[name=decision]").count() == 0
    page.goto(f"/admin/runs/run/{approval.run_id}/change/")
    assert page.locator(".dp-say, .dp-danger, .dp-again").count() == 0
