"""Every page for everybody: on a phone, in both themes, in both languages, without a mouse."""

import json
from importlib.resources import files
from typing import Any

import pytest

from tests.admin_world import objects_of, registered, superuser, tenant, url

from .chromium import PHONE

pytestmark = pytest.mark.django_db(transaction=True)

SERIOUS = ("serious", "critical")
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
NAMED = (
    "!document.querySelector('.select2-hidden-accessible')"
    " || document.querySelector('.select2-selection[aria-label]')"
)
CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}


def findings(page: Any, options: dict[str, Any] | None = None) -> list[str]:
    """What axe-core takes for serious or worse on this page."""
    found = page.evaluate(
        f"axe.run(document, {json.dumps({'resultTypes': ['violations'], **(options or {})})})"
    )
    return [
        f"{page.url} {violation['id']}: {node['html'][:160]}"
        for violation in found["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]


def in_both_themes(page: Any, address: str) -> list[str]:
    page.goto(address)
    page.wait_for_load_state("load")
    page.wait_for_function(NAMED)
    page.evaluate(AXE)
    light = findings(page)
    page.evaluate("document.documentElement.classList.add('dark')")
    return light + findings(page, CONTRAST)


def own_pages(made: Any) -> list[str]:
    """The pages that Deputy brings itself."""
    return [
        url("index"),
        url("runs_run_ask"),
        url("runs_approval_changelist"),
        url("runs_approval_change", made.approval.pk),
        url("runs_run_changelist"),
        url("runs_run_change", made.run.pk) + "?at=last",
        url("runs_run_change", made.asking.pk),
        url("runs_run_cancel", made.run.pk),
        url("runs_decisions"),
        url("runs_what_if"),
        url("runs_health"),
        url("groups_group_where", goal="Compare prices"),
        url("groups_group_change", made.group.pk),
        url("policy_capabilityrule_change", made.rule.pk),
    ]


@pytest.mark.slow
def test_no_page_of_its_own_keeps_anybody_out(open_page: Any) -> None:
    made = tenant()
    page = open_page(superuser(made))

    found = [finding for address in own_pages(made) for finding in in_both_themes(page, address)]

    assert found == []


@pytest.mark.slow
def test_no_page_at_all_keeps_anybody_out(open_page: Any) -> None:
    made = tenant()
    page = open_page(superuser(made))
    addresses = [url("memory_depositedknowledge_changelist"), url("runs_queuemessage_changelist")]
    for stem in registered():
        addresses += [url(f"{stem}_changelist"), url(f"{stem}_change", objects_of(made)[stem].pk)]

    found = [finding for address in addresses for finding in in_both_themes(page, address)]

    assert found == []


@pytest.mark.slow
def test_a_phone_shows_everything_and_decides(open_page: Any) -> None:
    made = tenant()
    page = open_page(superuser(made), PHONE)

    for address in own_pages(made):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], address
    page.goto(url("runs_approval_changelist"))
    shown = page.locator("td:has(.dp-call-name)").first
    assert shown.evaluate("cell => cell.scrollHeight <= cell.clientHeight + 1")  # nothing is cut off
    page.goto(url("runs_approval_change", made.approval.pk))
    assert page.locator("button[data-key=a]").is_visible()  # at hand without scrolling
    box = page.locator("button[data-key=a]").bounding_box()
    assert box["y"] + box["height"] <= PHONE[1]
    page.click("button[data-key=a]")
    page.wait_for_selector("text=Approved; the call runs now.")


def test_the_interface_speaks_chinese_to_whom_it_should(open_page: Any) -> None:
    made = tenant()
    root = superuser(made)
    chinese, english = open_page(root, locale="zh-CN"), open_page(root, locale="en-GB")
    address = url("runs_approval_change", made.approval.pk)

    for page in (chinese, english):
        page.goto(address)

    assert "的智能体想要" in chinese.locator("body").inner_text()
    assert "批准并发送" in chinese.locator("button[data-key=a]").inner_text()
    assert chinese.locator("html").get_attribute("lang") == "zh-hans"
    assert "agent wants to send a mail" in english.locator("body").inner_text()
    english.locator("form[action*=setlang]:has(input[value=zh-hans])").evaluate("form => form.submit()")
    english.wait_for_selector("text=的智能体想要")
