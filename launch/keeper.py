"""The process that keeps the embedded server: restarts it if it dies, stops it when nobody uses it.

Started by launch/postgres.py with its instructions as one JSON argument.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from common.processes import die_with_parent
from launch import locks, place
from launch.postgres import STOP_SECONDS, clean_environment

QUICK_FAILURES = 5  # this many deaths in a row, each within QUICK_SECONDS of its start, and it gives up
QUICK_SECONDS = 10


class Keeper:
    """One server, from its start to its last user's leaving."""

    def __init__(self, instructions: dict[str, Any]) -> None:
        self.folder = Path(instructions["folder"])
        self.command: list[str] = instructions["command"]
        self.owner: dict[str, Any] = instructions["owner"]
        self.leaving = threading.Event()
        self.server: subprocess.Popen[bytes] | None = None

    def keep(self) -> int:
        """Run the server until the last user has left. Returns an exit status."""
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        signal.signal(signal.SIGINT, lambda *_: self.stop())
        threading.Thread(target=self._wait_for_last_user, daemon=True).start()
        failures = 0
        while not self.leaving.is_set():
            began = time.monotonic()
            status = self._serve()
            failures = failures + 1 if time.monotonic() - began < QUICK_SECONDS else 1
            if failures == QUICK_FAILURES:
                return status or 1
            self.leaving.wait(0 if self.leaving.is_set() else 0.1 * 2**failures)
        return 0

    def stop(self) -> None:
        """Ask for a fast shutdown: sessions end, data is written, the server leaves."""
        self.leaving.set()
        self._send(signal.SIGINT)
        # a server that cannot finish its last checkpoint recovers at the next start
        impatience = threading.Timer(STOP_SECONDS, self._send, [signal.SIGQUIT])
        impatience.daemon = True
        impatience.start()

    def _send(self, number: int) -> None:
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(number)

    def _serve(self) -> int:
        end_leftover(self.folder / "data")
        self.server = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=clean_environment(),
            preexec_fn=die_with_parent(signal.SIGINT),
            **self.owner,
        )
        if self.leaving.is_set():
            self.stop()
        return self.server.wait()

    def _wait_for_last_user(self) -> None:
        descriptor = locks.open_lock(self.folder / "users.lock")
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # and kept: who comes now waits until the server is down
        os.kill(os.getpid(), signal.SIGTERM)


def end_leftover(data: Path) -> None:
    """Deal with the postmaster.pid of a crash.

    A server whose keeper was killed is told to stop and waited for. A PID that now belongs to
    another program, or to a dead child nobody collected, must not pass for a live server.
    """
    pid_file = data / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
        os.kill(pid, 0)
    except (OSError, ValueError):
        return  # no file, or nobody of that PID: PostgreSQL recovers by itself
    if not _serves(pid, data):
        pid_file.unlink(missing_ok=True)
        return
    os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    while _serves(pid, data) and time.monotonic() < deadline:
        time.sleep(0.05)


def _serves(pid: int, data: Path) -> bool:
    """Whether the process is a live server of this very folder, by its command line."""
    if Path("/proc/self").exists():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return os.fsencode(data) in words
    listed = subprocess.run(["ps", "-p", str(pid), "-o", "stat=,command="], capture_output=True, text=True)
    return str(data) in listed.stdout and not listed.stdout.startswith("Z")


def main() -> int:
    """Keep a server unless another keeper already does."""
    instructions = json.loads(sys.argv[1])
    lock = Path(instructions["folder"]) / "keeper.lock"
    for _ in range(50):  # somebody may be looking whether a keeper is there
        if (descriptor := locks.alone(lock)) is not None:
            break
        time.sleep(0.02)
    else:
        return 0
    status = Keeper(instructions).keep()
    if instructions["remove"]:
        place.remove(Path(instructions["remove"]))
    os.close(descriptor)
    return status


if __name__ == "__main__":
    sys.exit(main())
