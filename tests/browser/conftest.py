"""Debian's Chromium, driven by Playwright; the tests are skipped where there is none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import no_hints_left  # noqa: F401  (browser tests commit too)

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
def page(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A page 1280 pixels wide, in a browser with an empty profile that closes before the server does."""
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; install the package chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    # Playwright's loop lives in this thread, where the test also uses the database
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()
