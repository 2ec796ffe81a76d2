"""A person's own page in a real browser: from the question to the answer, by mouse, by keys, on a phone."""

from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import expect

from groups.member_permissions import standard
from runs.execution import executor
from runs.models import Approval, Run
from tests.admin_world import PASSWORD, person
from tests.factories import MembershipFactory, permit
from tests.scripted import Scripted, by_role, call, say

from .chromium import PHONE
from .test_everywhere import findings
from .world import GOAL, LETTER, acme, plays

pytestmark = pytest.mark.django_db(transaction=True)

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
DESK = (1440, 900)
ARRANGES = ("groups.add_groupmember", "groups.add_agentinstance", "groups.add_role")


def somebody(made: Any, name: str, *rights: str) -> Any:
    """A member who is not staff; `rights` beside those every member has."""
    user = person(None, name)
    MembershipFactory(organization=made.organization, user=user)
    return permit(user, *standard()["member"], *rights)


def sign_in(page: Any, name: str) -> None:
    page.goto("/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/")


def test_from_the_question_to_the_answer_through_a_group_and_a_decision(open_page: Any) -> None:
    made = acme()
    somebody(made, "mia")
    ines = somebody(made, "ines", "runs.decide_approval")
    Scripted.play = staticmethod(plays())
    page, decider = open_page(size=DESK), open_page(ines, DESK)
    sign_in(page, "mia")
    expect(page.get_by_role("heading", name="Welcome, mia")).to_be_visible()

    page.get_by_label("What should your agent do?").fill(GOAL)
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn[data-following=yes]")
    run = Run.objects.get(depth=0)
    executor.run(run.pk)

    expect(page.locator("[data-now]")).to_have_text("Your agent waits for a decision on send_email")
    page.locator(".story summary").click()
    story = page.locator(".story")
    expect(story).to_contain_text("Asks the group Market research")
    expect(story).to_contain_text("DECISION: Charge 6 euros a seat.")

    decider.goto("/")
    decider.get_by_role("link", name="1 thing waits for you").click()
    decider.get_by_role("link", name="Look and decide").click()
    expect(decider.locator(".ap-lines").first).to_contain_text("ada@example.org")
    decider.get_by_role("button", name="Reject").click()  # the browser asks for a reason first
    assert Approval.objects.get().status == "pending"
    decider.get_by_role("button", name="Approve and send to ada@example.org").click()
    expect(decider.get_by_role("status").first).to_have_text("Approved; the call runs now.")
    executor.run(run.pk)

    expect(page.locator(".answer")).to_contain_text("Ada has been told: 6 euros a seat.")  # nobody reloads
    assert page.locator(".turn").get_attribute("data-active") == "no"
    expect(page.locator(".stop")).to_have_count(0)


def test_a_question_is_answered_where_it_stands_and_the_next_words_follow(open_page: Any) -> None:
    made = acme()
    mia = somebody(made, "mia")
    asked = call(("ask_user", {"question": "In which currency?", "choices": ["Euros", "Dollars"]}))
    Scripted.play = staticmethod(by_role(Personal_agent=[asked, say("Six **dollars**."), say("Noted.")]))
    page = open_page(mia, DESK)
    page.goto("/")
    page.get_by_label("What should your agent do?").fill("What is the price?")
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector(".turn[data-following=yes]")
    first = Run.objects.get()
    executor.run(first.pk)

    page.get_by_role("button", name="Dollars").click()
    page.wait_for_selector(".ask", state="detached")
    executor.run(first.pk)
    expect(page.locator(".answer strong")).to_have_text("dollars")
    page.get_by_label("What should your agent do?").fill("Thank you")
    page.keyboard.press("Enter")  # the page stays, the thread grows

    expect(page.locator(".turn")).to_have_count(2)
    page.wait_for_selector(".turn[data-following=yes] >> nth=-1")
    executor.run(Run.objects.latest("id").pk)
    expect(page.locator(".answer").last).to_have_text("Noted.")
    expect(page.locator("#conversations a")).to_have_count(1)


def test_words_appear_as_they_come_and_never_as_markup(open_page: Any) -> None:
    made = acme()
    mia = somebody(made, "mia")
    Scripted.play = staticmethod(by_role(Personal_agent=[say("Six euros <b>net</b>.")]))
    page = open_page(mia, DESK)
    body = 'event: delta\ndata: {"text": "Six <b>"}\n\nevent: delta\ndata: {"text": "euros"}\n\n'
    page.route(
        "**/stream/*",
        lambda route: route.fulfill(content_type="text/event-stream", body=f"retry: 60000\n\n{body}"),
    )
    page.goto("/")
    page.get_by_label("What should your agent do?").fill("What is the price?")
    page.keyboard.press("Enter")

    expect(page.locator("[data-live]")).to_have_text("Six <b>euros")
    executor.run(Run.objects.get().pk)
    expect(page.locator(".answer")).to_have_text("Six euros <b>net</b>.", timeout=30_000)
    expect(page.locator("[data-live]")).to_be_hidden()


def test_words_that_could_not_be_sent_are_not_lost(open_page: Any) -> None:
    made = acme()
    mia = somebody(made, "mia")
    Scripted.play = staticmethod(by_role(Personal_agent=[say("Six euros.")]))
    page = open_page(mia, DESK)
    page.goto("/")
    page.get_by_label("What should your agent do?").fill("What is the price?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn")
    page.context.clear_cookies()
    page.get_by_label("What should your agent do?").fill("And in dollars?")
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert")).to_contain_text("What you wrote is still there")
    expect(page.get_by_label("What should your agent do?")).to_have_value("And in dollars?")


def test_without_scripts_everything_but_the_live_part_works(open_page: Any) -> None:
    made = acme()
    somebody(made, "mia")
    Scripted.play = staticmethod(by_role(Personal_agent=[say("Six euros."), say("Seven dollars.")]))
    page = open_page(size=DESK, java_script_enabled=False)
    sign_in(page, "mia")
    for goal in ("What is the price?", "And in dollars?"):
        page.locator("#id_goal").fill(goal)
        page.locator(".send").click()
        executor.run(Run.objects.latest("id").pk)
        page.reload()
    assert page.locator(".answer").all_inner_texts() == ["Six euros.", "Seven dollars."]
    page.locator("button[name=good]").first.click()
    expect(page.get_by_role("status").first).to_have_text("Thank you: your agent learns from it.")
    page.locator("#search").fill("dollars")
    page.locator("#search").press("Enter")
    expect(page.locator(".conversations.wide a")).to_have_text("What is the price?")


def test_everything_is_done_by_keys_alone(open_page: Any) -> None:
    made = acme()
    ines = somebody(made, "ines", "runs.decide_approval")
    Scripted.play = staticmethod(by_role(Personal_agent=[call(("send_email", LETTER)), say("Sent.")]))
    page = open_page(ines, DESK)
    page.goto("/")
    page.keyboard.type("Write to Ada")  # the words have the focus from the start
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn[data-following=yes]")
    run = Run.objects.get()
    executor.run(run.pk)
    press_until(page, "See what would run")
    page.wait_for_url("**/approvals/**")
    press_until(page, "Approve and send to ada@example.org")
    expect(page.get_by_role("status").first).to_have_text("Approved; the call runs now.")
    assert Approval.objects.get().status == "approved"


def press_until(page: Any, name: str) -> None:
    """Go on with Tab until what has this name has the focus, then press it."""
    page.get_by_role("link", name=name, exact=True).or_(
        page.get_by_role("button", name=name, exact=True)
    ).wait_for()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate('document.activeElement.innerText?.trim() ?? ""').startswith(name):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"{name} cannot be reached by keys")


def a_page_of_each_kind(made: Any, user: Any) -> list[str]:
    """The addresses of the person's pages, with something on each."""
    play = [
        call(("memory_write", {"content": "Prefers euros", "pa_preference": True})),
        say("Six **euros**.\n\n- one\n- two"),
        call(("ask_user", {"question": "Which currency?", "choices": ["Euros", "Dollars"]})),
        call(("send_email", LETTER), content="I write now."),
    ]
    Scripted.play = staticmethod(by_role(Personal_agent=play))
    from tests.acting import start

    runs = []
    for goal in ("What is the price?", "And elsewhere?", "Write to Ada"):
        runs.append(start(user=user, project=made.project, goal=goal, session_key="one"))
        executor.run(runs[-1])
    approval = Approval.objects.get()
    return [
        "/",
        f"/talk/{runs[0]}/",
        "/waiting/",
        f"/approvals/{approval.pk}/",
        "/known/",
        "/settings/",
        "/conversations/?q=price",
    ]


MORE_PAGES = ("/decided/", "/schedules/", "/schedules/new/", "/groups/", "/groups/new/", "/settings/notices/")
LONG = pytest.mark.slow


@pytest.mark.parametrize(
    ("size", "scheme", "language", "more"),
    [
        (PHONE, "dark", "en", ()),
        pytest.param(DESK, "light", "en", MORE_PAGES, marks=LONG),
        pytest.param(DESK, "dark", "zh-CN", MORE_PAGES, marks=LONG),
        pytest.param(PHONE, "light", "zh-CN", MORE_PAGES, marks=LONG),
        pytest.param(PHONE, "dark", "en", MORE_PAGES, marks=LONG),
    ],
)
def test_no_page_keeps_anybody_out(open_page: Any, size: Any, scheme: Any, language: str, more: Any) -> None:
    made = acme()
    user = somebody(made, "ines", "runs.decide_approval", "groups.add_token", "groups.add_group", *ARRANGES)
    page = open_page(user, size, color_scheme=scheme, locale=language)
    found, wide = [], []

    for address in (*a_page_of_each_kind(made, user), *more):
        page.goto(address)
        page.evaluate(AXE)
        page.evaluate(
            "document.querySelectorAll('details').forEach((one) => (one.open = !one.matches('.pop')))"
        )
        found += findings(page)
        if page.evaluate("document.documentElement.scrollWidth") > size[0]:
            wide.append(address)
        assert page.locator("html").get_attribute("lang") == ("en" if language == "en" else "zh-hans")

    assert (found, wide) == ([], [])


def test_the_door_keeps_nobody_out_and_speaks_chinese(open_page: Any) -> None:
    made = acme()
    somebody(made, "mia")
    page = open_page(size=PHONE, locale="en-GB")
    page.goto("/")
    page.evaluate(AXE)
    assert findings(page) == []
    page.get_by_role("button", name="简体中文").click()

    expect(page.get_by_role("heading", name="登录")).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "zh-hans"
    page.locator("#id_login").fill("mia")
    page.locator("#id_password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("欢迎，mia")


def test_a_phone_has_everything_behind_one_button(open_page: Any) -> None:
    made = acme()
    mia = somebody(made, "mia")
    page = open_page(mia, PHONE)
    page.goto("/")
    expect(page.get_by_role("link", name="What my agent knows")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="What my agent knows").click()
    expect(page.get_by_role("heading", name="What my agent knows")).to_be_visible()


def test_a_page_is_light_on_the_wire(open_page: Any) -> None:
    made = acme()
    user = somebody(made, "mia")
    Scripted.play = staticmethod(by_role(Personal_agent=[say("Six euros.")]))
    page = open_page(user, DESK)
    page.goto("/")
    page.wait_for_load_state("load")
    sizes = page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map((one) => [one.name, one.encodedBodySize])"
    )
    assert len(sizes) > 4 and sum(size for _, size in sizes) <= 100_000, sizes


@pytest.mark.parametrize(("size", "language"), [(DESK, "en"), (PHONE, "zh-hans")])
def test_a_schedule_says_when_it_is_due_before_it_is_saved(open_page: Any, size: Any, language: str) -> None:
    made = acme()
    mia = somebody(made, "mia")
    page = open_page(mia, size, locale=language)
    page.goto("/schedules/new/")
    page.locator("#id_goal").fill("What did our competitors change?")
    page.locator("#id_repeat").select_option("daily")
    page.locator("#id_time_zone").select_option("Europe/Berlin")
    page.locator("#id_at").fill("2027-03-01T02:30")
    page.locator("#id_at").dispatch_event("change")
    expect(page.locator("#times li").first).to_contain_text("02:30")  # without a click
    expect(page.locator("#times")).to_contain_text("02:00")
    page.evaluate(AXE)
    assert findings(page) == []
    page.locator("form button.primary").click()
    page.wait_for_url("**/schedules/sch_*/")
    expect(page.locator("main")).to_contain_text("30 2 * * *")
    page.evaluate(AXE)
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto("/schedules/")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
