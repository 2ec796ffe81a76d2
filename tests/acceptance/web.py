"""A real web process on a free port, and people who use it as a browser does."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from common.processes import die_with_parent
from launch.home import PROJECT
from launch.run import WEB_COMMAND
from tests.acceptance.house import House, until
from tests.forms import forms as read


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
    found = [{name: values[0] for name, values in form.items()} for _, form in read(page.text)]
    return {name: form for form in found for name in form}
