"""Debian's Chromium, driven by Playwright; the tests are skipped where there is none."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from tests.integration.conftest import no_notifications_left  # noqa: F401  (browser tests commit too)
from tests.server import serving

from .chromium import CHROMIUM, FLAGS, WIDE


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One browser for all tests of this folder; each opens a profile of its own in it."""
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; install the package chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with pytest.MonkeyPatch.context() as patch, playwright.sync_playwright() as driver:
        # Playwright's loop lives in this thread, where the tests also use the database
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        running = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def server(transactional_db: Any) -> Iterator[str]:
    """The address of Deputy, streams included."""
    with serving() as address:
        yield address


@pytest.fixture
def open_page(browser: Any, server: str) -> Iterator[Callable[..., Any]]:
    """open_page(user, size, attacked, **context): a page of somebody who has signed in, if they are named.

    What went wrong in its scripts, what the Content-Security-Policy stopped (unless it is `attacked`), and
    any other host it wanted to reach, fails the test.
    """
    opened: list[Any] = []
    problems: list[str] = []

    def _open(user: Any = None, size: tuple[int, int] = WIDE, attacked: bool = False, **context: Any) -> Any:
        made = browser.new_context(
            viewport=dict(zip(("width", "height"), size, strict=True)), base_url=server, **context
        )
        made.set_default_timeout(40_000)
        if user is not None:
            client = Client()
            client.force_login(user)
            cookie = client.cookies["sessionid"].value
            made.add_cookies([{"name": "sessionid", "value": cookie, "url": server}])
        page = made.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        if not attacked:
            page.on("console", lambda said: _violation(said.text, problems))
        page.on("request", lambda request: _same_host(request.url, server, problems))
        opened.append(made)
        return page

    yield _open
    for made in opened:
        made.close()
    assert problems == []


def _violation(text: str, problems: list[str]) -> None:
    if "Content Security Policy" in text:
        problems.append(text)


def _same_host(url: str, server: str, problems: list[str]) -> None:
    if not url.startswith((server, "data:", "blob:")):
        problems.append(f"another host: {url}")
