"""`make run`: one process that starts everything Deputy needs and stops it again.

In order: the folder and the secret, the port, PostgreSQL, migrations and the demo, then web and
workers, whose output it shows under their names. What dies is started again. Ctrl-C stops web, then
workers, then PostgreSQL; a second Ctrl-C does not wait.
"""

import contextlib
import errno
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from common import env
from common.processes import Make, die_with_parent
from launch import locks, postgres
from launch.errors import LaunchError, one_line
from launch.home import PROJECT, WEB_PROCESSES, keep_address, make_home, secret_key
from launch.prepare import ACCOUNTS

WEB_COMMAND = (
    *("-m", "gunicorn", "config.asgi:application", "--log-level", "warning"),
    "--preload",  # loaded once, for all its processes
)
WORKER_COMMAND = ("manage.py", "cluster")
LONGEST_PAUSE = 30  # seconds before a child that keeps dying is started once more
SETTLED = 30  # a child that lived this long starts over with short pauses
GROUP_SECONDS = 2  # for what was killed to be gone
LAST_RUN_SECONDS = 25  # what a killed supervisor left behind gets this long to end


def say(words: str) -> None:
    """One line of the supervisor's own. A terminal that is gone must not end it half-way."""
    with contextlib.suppress(OSError):
        print(f"deputy: {words}", flush=True)


@dataclass
class Child:
    """A program the supervisor keeps running."""

    name: str
    command: Sequence[str]
    patience: float  # seconds it gets to stop
    files: tuple[int, ...] = ()  # descriptors it inherits
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float = 0.0
    deaths: int = 0
    unfinished: bytes = field(default=b"", repr=False)

    def start(self) -> IO[bytes]:
        """Start it in a session of its own, out of Ctrl-C's reach. Returns its output."""
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, *self.command],
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            pass_fds=self.files,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        assert self.process.stdout is not None  # noqa: S101  (asked for above)
        os.set_blocking(self.process.stdout.fileno(), False)
        return self.process.stdout

    def ended(self) -> bool:
        """Whether it is over; then whatever it left of its group is ended too."""
        if self.process is None:
            return True
        if self.process.returncode is None:
            # looked at before it is collected: until then nobody else can get its number
            if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return False
            self.kill()
        return True

    def kill(self) -> None:
        """End the whole group at once and wait until it is gone, with the locks it held."""
        if self.process is None or self.process.returncode is not None:
            return
        group = self.process.pid
        deadline = time.monotonic() + GROUP_SECONDS
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses a group of zombies
            os.killpg(group, signal.SIGKILL)
            self.process.wait()
            while time.monotonic() < deadline:
                os.killpg(group, 0)
                time.sleep(0.01)
        self.process.wait()

    def pause(self) -> float:
        """Seconds to wait before the next start: 1, 2, 4 … after one death, two, three."""
        self.deaths = 1 if time.monotonic() - self.started > SETTLED else self.deaths + 1
        return min(2.0 ** (self.deaths - 1), LONGEST_PAUSE)


class Supervisor:
    """Runs the children until it is told to stop."""

    def __init__(
        self, children: Sequence[Child], server: postgres.Server | None, probe: "Probe", make: Make
    ) -> None:
        self.children = children
        self.server = server
        self.probe = probe
        self.make = make
        self.stops = 0
        self.width = max(len(child.name) for child in children)
        self.selector = selectors.DefaultSelector()
        self.next_look = 0.0

    def run(self) -> None:
        """Until the first signal; then everything is stopped in order."""
        self._wake_on_signals()
        self.probe.begin(self.selector)
        while not self.stops:
            for child in self.children:
                self._look_after(child)
            self._look_after_server()
            self._wait(0.5)
            if self.make.interrupted():
                break
        self._stop()

    def _look_after(self, child: Child) -> None:
        if child.process is not None and child.ended():
            status = child.process.returncode
            self._drain(child)
            child.process = None
            pause = child.pause()
            child.start_at = time.monotonic() + pause
            say(f"{child.name} ended ({_ending(status)}); starting it again in {pause:g} s")
        if child.process is None and time.monotonic() >= child.start_at:
            self.selector.register(child.start(), selectors.EVENT_READ, child)

    def _look_after_server(self) -> None:
        if self.server is None or time.monotonic() < self.next_look:
            return
        if not self.server.kept():
            say("PostgreSQL is gone; starting it again")
            try:
                self.server.start()
            except LaunchError as reason:
                say(str(reason))
        self.next_look = time.monotonic() + 2

    def _stop(self) -> None:
        say("stopping (Ctrl-C again ends it at once)")
        self.probe.listener.close()
        for child in self.children:
            self._stop_child(child)

    def _stop_child(self, child: Child) -> None:
        if child.process is not None and not child.ended():
            child.process.terminate()  # the main process alone: it stops its own
        deadline = time.monotonic() + child.patience
        while not child.ended() and time.monotonic() < deadline and self.stops < 2:
            self._wait(0.1)
        if not child.ended():
            say(f"{child.name}: not stopped yet, ended")
            child.kill()
        self._drain(child)

    def _wait(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            if isinstance(key.data, Child):
                self._forward(key.data)
            else:
                key.data()

    def _forward(self, child: Child) -> bool:
        """Show what a child said, line by line. False at the end of its output."""
        if child.process is None or child.process.stdout is None or child.process.stdout.closed:
            return False
        try:
            said = os.read(child.process.stdout.fileno(), 65536)
        except BlockingIOError:
            return False
        *lines, child.unfinished = (child.unfinished + said).split(b"\n")
        if not said:
            lines, child.unfinished = [child.unfinished] if child.unfinished else [], b""
            self.selector.unregister(child.process.stdout)
            child.process.stdout.close()
        self._show(child, lines)
        return bool(said)

    def _drain(self, child: Child) -> None:
        while self._forward(child):
            pass

    def _show(self, child: Child, lines: list[bytes]) -> None:
        name = f"{child.name:<{self.width}} | ".encode()
        try:
            sys.stdout.buffer.write(b"".join(name + line + b"\n" for line in lines))
            sys.stdout.buffer.flush()
        except OSError:
            pass

    def _wake_on_signals(self) -> None:
        """A signal counts, and wakes the loop at once."""
        awake, wake = socket.socketpair()
        awake.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self.selector.register(awake, selectors.EVENT_READ, lambda: awake.recv(64))
        self._kept_open = wake
        for number in STOPPING:
            signal.signal(number, self._count)

    def _count(self, *_: object) -> None:
        self.stops += 1


STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Probe:
    """Asks for /healthz once and says where Deputy is when the answer comes."""

    def __init__(self, listener: socket.socket, host: str) -> None:
        self.listener = listener
        self.address = listener.getsockname()[:2]
        self.family = listener.family
        self.host = host

    def begin(self, selector: selectors.BaseSelector) -> None:
        """The listening socket takes the question now; web answers it when it is up."""
        self.selector = selector
        name = env.names("ALLOWED_HOSTS", ("localhost",))[0].lstrip(".").replace("*", "") or "localhost"
        self.connection = socket.socket(self.family, socket.SOCK_STREAM)
        self.connection.connect(_reachable(self.address))
        self.connection.sendall(
            f"GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode()
        )
        selector.register(self.connection, selectors.EVENT_READ, self.answered)

    def answered(self) -> None:
        """Say where to go."""
        try:
            answer = self.connection.recv(64)
        except OSError:
            answer = b""
        self.selector.unregister(self.connection)
        self.connection.close()
        if not answer:  # web died before it answered: ask again
            self.begin(self.selector)
            return
        shown = f"[{self.host}]" if ":" in self.host else self.host
        url = f"http://{'localhost' if shown in ('0.0.0.0', '[::]') else shown}:{self.address[1]}/"  # noqa: S104
        accounts = make_home() / ACCOUNTS
        say(f"ready at {url}  (Ctrl-C stops it)")
        if accounts.exists():
            say(f"sign in there with a name and password from {accounts}; administration: {url}admin/")
        else:
            say(f"administration: {url}admin/; a first account: .venv/bin/python manage.py createsuperuser")


def supervise() -> None:
    """All of `make run`. Raises LaunchError and BadSetting before anything is left running."""
    make = Make()
    for number in STOPPING:
        signal.signal(number, _interrupt)
    host, port = env.host(), env.port()
    family = take_turn()
    secret_key()
    listener = listen(host, port)
    keep_address(host, port)
    server = None
    try:
        server = postgres.ensure()
        prepare()
        web = (*WEB_COMMAND, "--bind", f"fd://{listener.fileno()}", "--workers", str(WEB_PROCESSES))
        children = [
            Child("web", web, patience=10, files=(listener.fileno(), family)),
            Child("workers", WORKER_COMMAND, patience=20, files=(family,)),
        ]
        Supervisor(children, server, Probe(listener, host), make).run()
    except KeyboardInterrupt:
        say("stopping")
    finally:
        if server is not None:
            for number in STOPPING:
                signal.signal(number, signal.SIG_IGN)
            if not server.leave():
                say("PostgreSQL stays up for another program that uses it")
    say("stopped")


def take_turn() -> int:
    """One run a folder. Returns the descriptor every child holds, so that what a kill left is seen."""
    folder = make_home()
    if locks.alone(folder / "run.lock") is None:
        raise LaunchError(f"already running from {folder}; stop that first, or name another DEPUTY_HOME.")
    deadline = time.monotonic() + LAST_RUN_SECONDS
    while (family := locks.alone(folder / "children.lock")) is None:
        if time.monotonic() > deadline:
            raise LaunchError(f"processes of the last run do not end; see `fuser {folder}/children.lock`.")
        time.sleep(0.1)
    return family


def listen(host: str, port: int) -> socket.socket:
    """The port, taken before anything starts. Raises LaunchError where it is not to be had."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except socket.gaierror:
        raise LaunchError("HOST is no address of this machine and no name that leads to one.") from None
    except PermissionError:
        raise LaunchError(f"port {port} is reserved; choose one above 1023: PORT=8001 make run") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise LaunchError(f"port {port} is in use; choose another: PORT={port + 1} make run") from None
        raise LaunchError(f"cannot listen on HOST {host}, PORT {port}: {error.strerror}.") from None
    return listener


def prepare() -> None:
    """Migrations and the demo. Raises LaunchError if they fail; they have said why themselves."""
    preparation = subprocess.Popen(
        [sys.executable, "-m", "launch.prepare"],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        if preparation.wait() != 0:
            sys.exit(1)
    except KeyboardInterrupt:
        preparation.terminate()
        preparation.wait()
        raise


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _ending(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _reachable(address: tuple[str, int]) -> tuple[str, int]:
    """An address to connect to, for one to listen on."""
    anywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
    return anywhere.get(address[0], address[0]), address[1]


def main() -> None:
    """Entry point of `make run`."""
    with one_line():
        try:
            supervise()
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
