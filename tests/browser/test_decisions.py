"""What a decider sees of a call, in a real browser, at both doors: whole, marked, compared, decided."""

import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from runs.api.queue_stream import LOOK_SECONDS
from runs.execution import executor
from runs.models import Approval
from tests.acting import approve, start
from tests.factories import MembershipFactory
from tests.scripted import Scripted, by_role, call

from .chromium import PHONE
from .test_everywhere import AXE, findings
from .world import DECIDES, acme, member

pytestmark = pytest.mark.django_db(transaction=True)

PICTURES: Path | None = None  # a folder, to look at what the tests see
PARAGRAPH = "Dear all,\n\nthe release moves to Friday. Please tell your own customers, too.\n\n"
LONG = (PARAGRAPH * 80)[:4_698]
PEOPLE = [f"person{n}@firm{n}.example" for n in range(28)]
KNOWN = ["ada@acme.example", "bo@bond.example"]


def asked(made: Any, who: Any, to: list[str], subject: str = "Prices", body: str = "Six euros.") -> Approval:
    letter = {"to": to, "subject": subject, "body": body}
    Scripted.play = staticmethod(by_role(Personal_agent=[call(("send_email", letter))]))
    run_id = start(user=who, project=made.project, goal=f"Write to {to[0]}: {subject}")
    executor.run(run_id)
    return Approval.objects.get(run=run_id)


def picture(page: Any, name: str) -> None:
    if PICTURES is not None:
        page.screenshot(path=PICTURES / f"{name}.png")


@pytest.fixture
def world() -> Any:
    """Two addresses that were written to before, and what waits now."""
    made = acme()
    made.ines = member(made, "ines", *DECIDES)
    mia = MembershipFactory(organization=made.organization, user__username="mia").user
    approve(asked(made, mia, KNOWN, body=LONG.replace("Friday", "Monday")).pk, made.ines)
    made.many = asked(made, mia, [*PEOPLE, *KNOWN], "Release", LONG)
    made.odd = asked(made, mia, ["p\u0430y@\u0430cme.example"], "Pay\u200bment", "xn--pypal-4ve.com")
    made.again = asked(made, mia, KNOWN, body=LONG)
    made.mia = mia
    return made


def at(door: str, approval: Approval) -> str:
    return f"/admin/runs/approval/{approval.pk}/change/" if door == "admin" else f"/approvals/{approval.pk}/"


def test_a_long_mail_to_thirty_is_understood_and_not_approved_unread(open_page: Any, world: Any) -> None:
    for door in ("admin", "web"):
        page = open_page(world.ines, (1440, 900))
        page.goto(at(door, world.many))
        button = page.locator("button[data-key=a]")
        whole = page.locator(".ap-part-body .ap-whole")

        expect(button).to_contain_text("Approve and send to 30 people")
        expect(page.locator(".ap-part-to .ap-summary")).to_have_text(
            "30 recipients in 30 domains, 28 never approved before"
        )
        assert page.locator(".ap-items li").count() == 30
        assert len(whole.text_content()) == 4_698  # entire, with its line breaks
        expect(page.locator(".ap-callouts")).to_contain_text("28 of 30 are new")
        expect(page.locator(".ap-sources summary")).to_contain_text("32 values")
        box = button.bounding_box()
        assert box["y"] + box["height"] <= 900  # at hand without scrolling
        expect(button).to_be_disabled()
        picture(page, f"many-{door}-1440")
        if door == "admin":
            whole.evaluate("text => text.scrollTo(0, text.scrollHeight)")
        else:
            page.get_by_role("button", name="Show all 4698 characters").click()
        expect(button).to_be_enabled()
        page.evaluate(AXE)
        assert findings(page) == []

    plain = open_page(world.ines, PHONE, java_script_enabled=False)
    plain.goto(at("web", world.many))
    expect(plain.locator("button[data-key=a]")).to_be_enabled()  # nothing is folded, so nothing is hidden
    body = plain.locator(".ap-part-body .ap-whole").bounding_box()
    assert body["height"] > PHONE[1]


def test_what_deceives_is_said_and_what_is_alike_is_compared(open_page: Any, world: Any) -> None:
    page = open_page(world.ines, PHONE, color_scheme="dark", locale="zh-CN")
    for door in ("web", "admin"):
        page.goto(at(door, world.odd))
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        picture(page, f"odd-{door}-390-dark-zh")
        box = page.locator("button[data-key=a]").bounding_box()
        assert box["y"] + box["height"] <= PHONE[1]
    english = open_page(world.ines, PHONE)
    english.goto(at("web", world.odd))
    said = english.locator(".ap-callouts").inner_text()
    for word in (
        "Latin and Cyrillic",
        "zero width space",
        "is written in addresses",
        "looks like acme.example",
    ):
        assert word in said, word
    expect(english.locator(".ap-part-subject")).to_contain_text("Pay⟨U+200B⟩ment")

    english.goto(at("web", world.again))
    english.get_by_text("What changed since the last time").click()
    assert "Monday" in english.locator(".ap-diff del").first.inner_text()
    assert "Friday" in english.locator(".ap-diff ins").first.inner_text()
    assert english.locator(".ap-callouts").count() == 0  # nothing is new
    picture(english, "again-web-390")


def test_short_ones_are_decided_by_keys_alone_and_the_queue_follows(open_page: Any, world: Any) -> None:
    short = [asked(world, world.mia, [KNOWN[0]], f"Number {n}") for n in range(3)]
    watching = open_page(world.ines, PHONE)
    watching.goto("/waiting/")
    expect(watching).to_have_title("(6) Waiting for me · Deputy")
    watching.wait_for_selector("[data-to-decide][data-following=yes]")
    shown = watching.locator("#to-decide .card a").evaluate_all("links => links.map(link => link.pathname)")
    ids = [world.many.pk, world.odd.pk, world.again.pk, *(one.pk for one in short)]
    assert shown == [f"/approvals/{pk}/" for pk in ids]  # the oldest first, as everywhere
    picture(watching, "queue-390")

    page = open_page(world.ines, (1440, 900))
    page.goto(at("admin", short[0]))
    for one in short:
        page.wait_for_url(f"**/{one.pk}/**")
        page.wait_for_load_state()
        page.keyboard.press("a")
        page.keyboard.press("Enter")
    page.wait_for_url(f"**/{world.many.pk}/**")  # from the front again
    assert {one.status for one in Approval.objects.filter(pk__in=[one.pk for one in short])} == {"approved"}
    expect(watching.locator("#to-decide .card")).to_have_count(3)  # nobody reloads
    expect(watching).to_have_title("(3) Waiting for me · Deputy")


def test_a_queue_that_nobody_looked_at_shows_what_has_changed_since(open_page: Any, world: Any) -> None:
    page = open_page(world.ines, PHONE)
    page.goto("/waiting/")
    page.wait_for_selector("[data-to-decide][data-following=yes]")
    away = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
    turned = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(f"{away % 'true'}; {turned}")
    approve(world.odd.pk, world.ines)
    time.sleep(2 * LOOK_SECONDS)  # what others were told of the queue is forgotten
    page.evaluate(f"{away % 'false'}; {turned}")
    expect(page.locator("#to-decide .card")).to_have_count(2)
    expect(page).to_have_title("(2) Waiting for me · Deputy")


def test_of_two_changes_the_second_is_shown_although_the_first_is_still_asked_for(
    open_page: Any, world: Any
) -> None:
    page = open_page(world.ines, PHONE)
    page.goto("/waiting/")
    page.wait_for_selector("[data-to-decide][data-following=yes]")
    later = [world.again]

    def slowly(route: Any) -> None:
        answer = route.fetch()
        if later:
            approve(later.pop().pk, world.ines)
            time.sleep(2 * LOOK_SECONDS)  # the stream says so meanwhile
        route.fulfill(response=answer)

    page.route("**/waiting/to-decide/", slowly)
    approve(world.odd.pk, world.ines)
    expect(page.locator("#to-decide .card")).to_have_count(1, timeout=10_000)


@pytest.mark.slow
def test_a_body_of_900_kilobytes_is_shown_whole_and_decided(open_page: Any, world: Any) -> None:
    lines = "".join(f"{n:06} of the minutes of a very long meeting, word by word\n" for n in range(20_000))
    huge = asked(world, world.mia, [KNOWN[0]], "Minutes", lines[:900_000])
    for door in ("admin", "web"):
        page = open_page(world.ines, (1440, 900))
        page.goto(at(door, huge))
        whole = page.locator(".ap-part-body .ap-whole")
        assert len(whole.text_content()) == 900_000
        assert page.locator("textarea[name^=argument]").count() == 0  # they come when somebody changes them
        page.get_by_role("link", name="Change the arguments").click()
        expect(page.locator("textarea[name^=argument]").first).to_be_visible()
        page.go_back()
    page.locator(".ap-part-body .ap-whole").evaluate("text => text.scrollTo(0, text.scrollHeight)")
    page.locator("button[data-key=a]").click()
    expect(page.get_by_role("status").first).to_have_text("Approved; the call runs now.")
