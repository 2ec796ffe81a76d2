"""A real web process on a free port, and people who use it as a browser does."""

import os
import signal
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx

from common.processes import die_with_parent
from launch.home import PROJECT
from launch.run import WEB_COMMAND
from tests.acceptance.house import House, until


class Web:
    """The server of `make run`, with one worker."""

    def __init__(self, house: House, release: Path = PROJECT, **environment: str) -> None:
        self.environment, self.release = house.environment(**environment), release
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        self.url, self.log = f"http://127.0.0.1:{port}", house.logs / f"web-{port}.log"
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        listening = self.listener.fileno()
        with open(self.log, "ab") as output:
            return subprocess.Popen(
                [sys.executable, *WEB_COMMAND, "--bind", f"fd://{listening}", "--workers", "1"],
                cwd=self.release,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(listening,),
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )

    def restart(self) -> None:
        """Stop it and start another on the same port, as a supervisor does."""
        self._stop()
        self.process = self._start()

    def wait(self) -> None:
        """Until it answers."""
        until(self._answers, said=self.said)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.said()
        try:
            return httpx.get(f"{self.url}/healthz", timeout=30).is_success
        except httpx.TransportError:
            return False

    def said(self) -> str:
        return self.log.read_text()

    def api(self, token: str) -> httpx.Client:
        """A program with an API token."""
        return httpx.Client(
            base_url=f"{self.url}/api/", headers={"Authorization": f"Bearer {token}"}, timeout=30
        )

    def browser(self) -> httpx.Client:
        """A person's browser, not signed in."""
        origin = {"Origin": self.url}
        return httpx.Client(base_url=self.url, headers=origin, follow_redirects=True, timeout=30)

    def end(self) -> None:
        self._stop()
        self.listener.close()

    def _stop(self) -> None:
        """Stop it in order; what does not stop is ended with its group, which is this server's alone."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def sign_in(browser: httpx.Client, name: str, password: str) -> httpx.Response:
    """Fill in the form of the one door; the page that comes after it."""
    form = forms(browser.get("/sign-in/", params={"next": "/admin/runs/approval/"}))["login"]
    return browser.post("/sign-in/", data=form | {"login": name, "password": password})


def forms(page: httpx.Response) -> dict[str, dict[str, str]]:
    """What the page's POST forms would send as they stand, under the name of each of their fields."""
    reader = _Forms()
    reader.feed(page.text)
    return {name: form for form in reader.found for name in form}


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self.form: dict[str, str] | None = None
        self.area: str | None = None

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if tag == "form" and given.get("method", "").lower() == "post":
            self.form = {}
            self.found.append(self.form)
        elif self.form is not None and tag in ("input", "textarea") and given.get("name"):
            self.form[given["name"]] = given.get("value") or ""
            self.area = given["name"] if tag == "textarea" else None

    def handle_data(self, data: str) -> None:
        if self.form is not None and self.area:
            self.form[self.area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.form is not None and self.area:  # as browsers do
            self.form[self.area] = self.form[self.area].removeprefix("\n")
        if tag == "form":
            self.form = None
        self.area = None
