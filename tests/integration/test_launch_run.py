"""`make run` from start to end: its supervisor with real children and a real database."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from http.client import HTTPConnection

import pytest

from launch import postgres
from launch.home import PROJECT
from tests.ports import free_port


class Run:
    """One supervisor and what it says."""

    def __init__(self, home, port, demo="no"):
        self.home = home
        self.port = port
        environment = {key: value for key, value in os.environ.items() if key not in HIDDEN}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "launch.run"],
            cwd=PROJECT,
            env=environment | {"DEPUTY_HOME": str(home), "PORT": str(port), "DEMO": demo},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, words):
        """The line that contains `words`; fails when the supervisor ends without it."""
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if words in line:
                return line
        raise AssertionError("".join(seen))

    def get(self, path, token=""):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status

    def children(self):
        """PIDs of every process of this home, the supervisor included."""
        return [pid for pid in running() if self.home_of(pid) == str(self.home)]

    def home_of(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                pairs = environment.read().split(b"\0")
        except OSError:
            return None
        return next((os.fsdecode(pair[12:]) for pair in pairs if pair.startswith(b"DEPUTY_HOME=")), None)

    def end(self):
        """Whatever happened: nothing of this home stays."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


HIDDEN = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", "MAKELEVEL", "SECRET_KEY")


def running():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


@pytest.fixture
def home():
    home = postgres.temporary_home()
    yield home
    postgres.place.remove(home)


@pytest.fixture
def run(home):
    run = Run(home, free_port())
    yield run
    run.end()


def test_everything_starts_answers_and_leaves_nothing_behind(run, home):
    run.wait_for("ready at")
    assert run.get("/healthz") == 200
    assert run.get("/readyz") == 200
    assert run.get("/static/admin/css/base.css") == 200
    assert (home / "secret_key").stat().st_mode & 0o777 == 0o600

    second = Run(home, free_port())
    said, _ = second.process.communicate(timeout=30)
    assert second.process.returncode == 1
    assert said.startswith("deputy: already running")
    assert said.count("\n") == 1

    run.process.send_signal(signal.SIGINT)
    said, _ = run.process.communicate(timeout=60)
    assert run.process.returncode == 0
    assert said.splitlines()[-1] == "deputy: stopped"
    assert run.children() == []


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux to follow a parent's death")
def test_a_child_that_dies_is_started_again_and_a_killed_supervisor_takes_all_along(run):
    run.wait_for("ready at")
    web = next(pid for pid in run.children() if parent(pid) == run.process.pid and "gunicorn" in words(pid))
    os.kill(web, signal.SIGKILL)
    assert "signal 9" in run.wait_for("web ended")
    assert run.get("/readyz") == 200  # the port stayed open: the question waited for the new one

    run.process.kill()
    run.process.wait()
    deadline = time.monotonic() + 40
    while run.children():
        assert time.monotonic() < deadline, [words(pid) for pid in run.children()]
        time.sleep(0.1)


def test_a_program_that_asks_every_two_seconds_keeps_its_connection(run):
    run.wait_for("ready at")
    kept = HTTPConnection("127.0.0.1", run.port, timeout=20)
    for _ in range(2):
        kept.request("GET", "/healthz")
        answer = kept.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        first = kept.sock
        time.sleep(2.5)  # gunicorn's own patience is 2 s
    assert kept.sock is first
    kept.close()


def test_a_busy_port_is_one_line(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        run = Run(home, taken.getsockname()[1])
        said, _ = run.process.communicate(timeout=30)
    assert run.process.returncode == 1
    assert "is in use" in said
    assert said.count("\n") == 1


def words(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return line.read().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def parent(pid):
    with open(f"/proc/{pid}/stat") as line:
        return int(line.read().rsplit(")", 1)[1].split()[1])
