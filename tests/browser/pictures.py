"""The pictures of docs/tour.md and README.md, made anew from this very build: `make pictures`.

Starts Deputy in a folder of its own, asks the demo's agents a few things, and photographs what people see.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import sync_playwright

from tests.browser.chromium import CHROMIUM, FLAGS, PHONE
from tests.ports import free_port

PROJECT = Path(__file__).resolve().parents[2]
IMAGES = PROJECT / "docs" / "images"
MOST_BYTES = 150_000
SIZE = (1280, 860)
QUESTIONS = (
    ("member", "How do we restore a backup?", "atlas"),
    ("approver", "代码审查：吞掉异常的代码怎么处理？", "atlas-zh"),
    ("member", "Email ann@example.com that the release moves to Friday and that we are sorry", "atlas"),
    ("approver", "Email bob@example.com that the release moves to Monday", "atlas"),
)
WAITS = 3  # how `manage.py ask` says that only a person can go on


@contextmanager
def deputy() -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """A running Deputy: its address, its environment, and the demo's passwords by name."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"DEPUTY_HOME": home, "PORT": str(free_port())}
        environment.pop("DATABASE_URL", None)
        address = f"http://127.0.0.1:{environment['PORT']}"
        running = subprocess.Popen([sys.executable, "-m", "launch.run"], cwd=PROJECT, env=environment)
        try:
            wait_for(address, running)
            told = (Path(home) / "demo.txt").read_text()
            yield address, environment, dict(re.findall(r"^ +(\w+) +(\S+-\S+) +dpt_", told, re.MULTILINE))
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(60)


def wait_for(address: str, running: "subprocess.Popen[bytes]") -> None:
    while running.poll() is None:
        try:
            if httpx.get(f"{address}/healthz").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.3)
    raise SystemExit("Deputy did not start")


def ask(environment: dict[str, str]) -> None:
    for name, question, project in QUESTIONS:
        command = [sys.executable, "manage.py", "ask", question, "--as", name]
        command += ["--project", project, "--no-wait"]
        found = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True)
        if found.returncode not in (0, WAITS):
            raise SystemExit(f"asking failed: {found.stdout.decode()}{found.stderr.decode()}")


class Visitor:
    """Somebody who has signed in, with a camera."""

    def __init__(self, browser: Any, address: str, name: str, password: str, **context: Any) -> None:
        size = context.pop("size", SIZE)
        viewport = {"width": size[0], "height": size[1]}
        self.page = browser.new_context(base_url=address, viewport=viewport, **context).new_page()
        self.page.goto("/sign-in/")
        self.page.fill("input[name=login]", name)
        self.page.fill("input[name=password]", password)
        self.page.click("button.primary")
        self.page.wait_for_load_state("load")

    def go(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_load_state("load")

    def take(self, name: str, at: str = "", height: int = 0) -> None:
        """Keep what is on the screen, from the element `at` on; `height` of it, where not all."""
        self.page.wait_for_timeout(400)
        if at:
            self.page.locator(at).first.evaluate("one => one.scrollIntoView({block: 'start'})")
        path = IMAGES / f"{name}.png"
        size = self.page.viewport_size
        part = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"]}
        self.page.screenshot(path=path, clip=part)
        if path.stat().st_size > MOST_BYTES:
            print(f"{path.name} has {path.stat().st_size} bytes")


def converse(browser: Any, address: str, password: str) -> None:
    """A member's own page, with the answer of a group; asked first: what it found answers the next."""
    member = Visitor(browser, address, "member", password)
    member.go("/")
    member.page.fill("#id_goal", "What do our competitors charge?")
    member.page.keyboard.press("Enter")
    member.page.wait_for_selector(".answer")
    member.page.wait_for_timeout(600)
    member.take("own-page", at=".thread")


def photograph(browser: Any, address: str, passwords: dict[str, str]) -> None:
    approver = Visitor(browser, address, "approver", passwords["approver"])
    approver.go("/admin/runs/approval/next/")
    approver.page.click("button[data-key=a]")  # something to compare the others with
    approver.page.wait_for_selector(".ap-callouts")
    approver.take("approval", height=840)
    approver.page.keyboard.press("e")
    approver.take("edit", at="details[data-key=e]")
    approver.go("/admin/")
    approver.take("overview")
    phone = Visitor(browser, address, "approver", passwords["approver"], size=PHONE)
    phone.go("/admin/runs/approval/next/")
    phone.take("phone")
    admin = Visitor(browser, address, "admin", passwords["admin"])
    admin.go("/admin/runs/run/?level=root&q=competitors")
    admin.page.click("tbody a >> nth=0")
    admin.page.wait_for_selector(".dp-timeline")
    admin.take("run", height=840)
    admin.take("timeline", at=".dp-timeline li:nth-child(6)", height=640)
    admin.go(admin.page.url.partition("?")[0] + "?at=last")
    admin.take("context-at", at="#context-at", height=700)
    admin.go("/admin/memory/depositedknowledge/")
    admin.take("knowledge", height=480)
    admin.go("/admin/groups/group/where/?goal=What+do+our+competitors+charge%3F")
    admin.take("where")
    chinese = Visitor(browser, address, "admin", passwords["admin"], locale="zh-CN", color_scheme="dark")
    chinese.go("/admin/runs/approval/next/")
    chinese.take("chinese")


def main() -> None:
    with deputy() as (address, environment, passwords), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        converse(browser, address, passwords["member"])
        ask(environment)
        photograph(browser, address, passwords)
        browser.close()


if __name__ == "__main__":
    main()
