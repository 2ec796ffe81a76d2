"""No page of the admin asks for a script that its Content-Security-Policy does not allow."""

from typing import Any

import pytest
from django.urls import reverse

from tests.admin_pages import OTHERS, PAGES, address_of, things_of
from tests.admin_world import superuser, tenant, url

pytestmark = pytest.mark.django_db(transaction=True)

STREAMED = {"runs_run_stream", "runs_decisions_export", "runs_decided_export"}  # no pages
LISTEN = """
window.violations = [];
addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective + ' ' + e.blockedURI));
"""
ATTACK = """
document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.attacked = 1">');
const script = document.createElement('script');
script.text = 'window.attacked = 1';
document.body.append(script);
"""


def violations(page: Any, address: str) -> list[str]:
    page.goto(address)
    page.wait_for_load_state("load")
    return [f"{address} {one}" for one in page.evaluate("window.violations")]


@pytest.mark.slow
def test_no_page_violates_it(open_page: Any) -> None:
    made = tenant()
    root = superuser(made)
    things = things_of(made)
    page = open_page(root)
    page.add_init_script(LISTEN)
    named = [
        name for name in PAGES if name not in STREAMED and (name not in OTHERS or OTHERS[name][0] == "get")
    ]
    addresses = [address_of(name, things) for name in named]
    addresses += [
        url("index"),
        reverse("account_login"),
        reverse("account_change_password"),
        "/api/docs/",
        "/nothing/",
    ]
    addresses.append(url("runs_run_change", made.run.pk) + "?at=last")

    assert [one for address in addresses for one in violations(page, address)] == []


def test_a_script_in_a_page_would_not_run(open_page: Any) -> None:
    page = open_page(superuser(), attacked=True)
    page.add_init_script(LISTEN)
    page.goto(url("index"))
    page.evaluate(ATTACK)
    page.wait_for_function("window.violations.length > 1")

    assert page.evaluate("window.attacked") is None


@pytest.mark.slow
def test_the_menus_of_the_theme_open(open_page: Any) -> None:
    page = open_page(superuser(tenant()))
    page.goto(url("runs_run_changelist"))
    page.locator("[x-on\\:click*='openUserLinks'], [x-on\\:click*='open']").first.click()

    assert page.evaluate("!!window.Alpine")
